from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.pinned.manifest import InstalledFile, Manifest
from toolchain.pinned.pins import pins
from toolchain.pinned.tools import tool

pytestmark = pytest.mark.needs("toolchain")


@pytest.mark.parametrize("name", ["cuobjdump", "nvdisasm", "ptxas", "tileiras"])
def test_the_tool_is_of_the_pinned_version(name: str):
    found = tool(name)
    assert f"V{found.version}" in found.run(["--version"]).stdout


def test_a_fingerprint_covers_what_the_tool_runs():
    assert tool("tileiras").fingerprint != tool("tileiras").sha256
    assert len({tool(name).fingerprint for name in pins().tools}) == len(pins().tools)


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A toolchain that holds a copy of tileirdisasm alone."""
    original = tool("tileirdisasm")
    path = Path(shutil.copy2(original.path, tmp_path))
    stat = path.stat()
    row = InstalledFile(path.name, "w==1", original.version, original.sha256, stat.st_size, stat.st_mtime_ns)
    Manifest("identity", "3", {"tileirdisasm": row}).save(tmp_path)
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path))
    tool.cache_clear()
    yield path
    tool.cache_clear()


def test_a_tool_comes_from_the_chosen_toolchain(copied: Path):
    assert tool("tileirdisasm").path == copied


def test_a_damaged_tool_is_not_run(copied: Path):
    data = bytearray(copied.read_bytes())
    data[len(data) // 2] ^= 1
    copied.write_bytes(data)
    with pytest.raises(ToolchainError, match="damaged") as caught:
        tool("tileirdisasm")
    expected = pins().tools["tileirdisasm"].expected()
    assert all(part in str(caught.value) for part in (str(copied), expected, "nox -s build_toolchain"))


def test_a_missing_tool_is_not_looked_for_elsewhere(copied: Path):
    copied.unlink()
    with pytest.raises(ToolchainError, match=f"{copied}: missing"):
        tool("tileirdisasm")


def test_a_toolchain_of_other_pins_is_refused(copied: Path):
    manifest = Manifest.load(copied.parent)
    row = manifest.tools["tileirdisasm"]
    other = InstalledFile(row.path, row.wheel, "13.0", "0" * 64, row.size, row.mtime_ns)
    Manifest("identity", "3", {"tileirdisasm": other}).save(copied.parent)
    with pytest.raises(ToolchainError, match="built for other pins"):
        tool("tileirdisasm")
