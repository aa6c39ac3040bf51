"""The system LLVM's package for real: built and tested in a container, kept, had again without building, refused when
somebody changed it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.native import build as module
from toolchain.native.build import Plan, build
from toolchain.native.engine import Engine
from toolchain.native.tools import NativeToolchain

pytestmark = [pytest.mark.needs("engine"), pytest.mark.needs("native")]

PLAN = Plan("13.1", "system", only_llvm=True)


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Has builds start from nothing, in folders of the test's own; gets their output."""
    monkeypatch.setattr(module, "prefixes", lambda: tmp_path / "native")
    monkeypatch.setattr(module, "cache_dir", lambda: tmp_path / "cache")
    return []


def make(tmp_path: Path, lines: list[str]) -> Path:
    return build(
        PLAN, engine=Engine.find(), sources=None, packages=tmp_path / "packages", on_line=lines.append
    )  # fmt: skip


def forget(tmp_path: Path) -> None:
    """All but the kept packages, and Conan itself."""
    shutil.rmtree(tmp_path / "native")
    shutil.rmtree(tmp_path / "cache/native/llvm-22/home")


def test_a_package_is_built_once_and_a_changed_one_is_refused(tmp_path: Path, lines: list[str]):
    prefix = make(tmp_path, lines)
    assert "== llvm 22.1.8: building" in lines
    facts = json.loads((prefix / "tools.json").read_text())
    assert facts["llvm"]["version"] == "22.1.8"
    with NativeToolchain.load(prefix).open() as tools:
        assert "LLVM version 22.1.8" in tools.run("mlir-opt", ["--version"], files={}).stdout

    forget(tmp_path)
    lines.clear()
    assert make(tmp_path, lines) == prefix
    assert "== llvm 22.1.8: restored" in lines
    assert "== llvm 22.1.8: building" not in lines

    forget(tmp_path)
    (archive,) = (tmp_path / "packages").glob("*.tgz")
    changed = bytearray(archive.read_bytes())
    changed[len(changed) // 2] ^= 1
    archive.write_bytes(changed)
    with pytest.raises(ToolchainError, match=r"sha256 \w{64}, but \w{64} was saved: changed or damaged"):
        make(tmp_path, lines)
    assert not prefix.exists()
