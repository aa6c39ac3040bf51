"""Releases of the compiler: their hashes are written down, and they are installed by them. uv is a stand-in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.pinned import toolkits
from toolchain.pinned.pins import pins
from toolchain.pinned.toolkits import PARTS, toolkit
from toolchain.setup import toolkits as setup


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What uv was asked to install. The index has ptxas and libnvvm 1.2.9 for tileiras 1.2.3."""
    asked: list[str] = []

    def uv(args: Sequence[str], *, cwd: Path, doing: str) -> None:
        if args[1] == "compile":
            name, _, wanted = (cwd / "in.txt").read_text().strip().partition("==")
            if wanted == "1.2.3" and name != "nvidia-cuda-tileiras":
                raise ToolchainError(f"{doing} failed")
            version = wanted.replace("*", "9")
            (cwd / "out.lock").write_text(f"{name}=={version} \\\n    --hash=sha256:{'a' * 64}\n")
            return
        asked.extend((cwd / "toolkit.lock").read_text().splitlines())
        assert "--require-hashes" in args
        for name in PARTS:
            path = Path(args[args.index("--target") + 1]) / pins().tools[name].path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)

    monkeypatch.setattr(setup, "uv", uv)
    monkeypatch.setattr(setup, "TABLE", tmp_path / "toolkits.toml")
    monkeypatch.setattr(toolkits, "TABLE", tmp_path / "toolkits.toml")
    (tmp_path / "toolkits.toml").write_text("")
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    toolkits.releases.cache_clear()
    toolkit.cache_clear()
    return asked


@pytest.fixture(autouse=True)
def forget() -> object:
    yield
    toolkits.releases.cache_clear()
    toolkit.cache_clear()


def test_a_release_is_locked_and_installed_once(lines: list[str]) -> None:
    assert setup.main(["--lock", "1.2.3"]) == 0
    hashed = f"--hash=sha256:{'a' * 64}"
    assert lines == [
        f"nvidia-cuda-tileiras==1.2.3 {hashed}", f"nvidia-cuda-nvcc==1.2.9 {hashed}", f"nvidia-nvvm==1.2.9 {hashed}",
    ]  # fmt: skip
    assert setup.main(["1.2.3"]) == 0 and len(lines) == 3
    kit = toolkit("1.2.3")
    assert kit.name == "tileiras 1.2.3 + ptxas 1.2.9 + libnvvm 1.2.9"
    assert kit.tool("ptxas").path.read_text() == "ptxas"


def test_a_release_that_is_not_locked_is_refused(lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert setup.main(["9.9.9"]) == 2
    assert "no tileiras 9.9.9" in capsys.readouterr().err and not lines
