"""The system LLVM's package for real: built and tested in a container, kept, had again without building, refused when
somebody changed it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.native import build as module
from toolchain.native.build import BuildPlan, build
from toolchain.native.engine import Container, Engine
from toolchain.native.images import image
from toolchain.native.make_images import ensure
from toolchain.native.tools import NativeToolchain

pytestmark = [pytest.mark.needs("engine"), pytest.mark.needs("native")]

PLAN = BuildPlan("13.1", "system", only_llvm=True)


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Makes builds start with empty folders of the test, and collects their output."""
    monkeypatch.setattr(module, "prefixes", lambda: tmp_path / "native")
    monkeypatch.setattr(module, "cache_dir", lambda: tmp_path / "cache")
    return []


def make(tmp_path: Path, lines: list[str]) -> Path:
    return build(
        PLAN, engine=Engine.find(), sources=None, packages=tmp_path / "packages", on_line=lines.append
    )  # fmt: skip


def forget(tmp_path: Path) -> None:
    """Remove everything except the kept packages and Conan itself."""
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


def test_a_container_sees_what_links_in_a_source_mirror_lead_to(tmp_path: Path):
    mirror, elsewhere = tmp_path / "mirror", tmp_path / "elsewhere"
    mirror.mkdir()
    (elsewhere / "clone").mkdir(parents=True)
    (elsewhere / "archive").write_text("an archive\n")
    (elsewhere / "clone/file").write_text("a file\n")
    (mirror / "plain").write_text("plain\n")
    (mirror / "archive").symlink_to(elsewhere / "archive")
    (mirror / "clone").symlink_to("../elsewhere/clone")
    engine = Engine.find()
    container = Container(ensure(engine, image("llvm-22")), mounts=module._source_mounts(mirror))
    said = engine.run(container, ["sh", "-c", "cd /sources && cat plain archive clone/file"])
    assert said.splitlines() == ["plain", "an archive", "a file"]
