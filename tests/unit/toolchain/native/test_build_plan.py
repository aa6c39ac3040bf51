"""What makes a native build another one, and what it is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.native import build as module
from toolchain.native.build import BuildPlan, Folders
from toolchain.pinned.stacks import stacks

STACK = stacks().stack()
PLAN = BuildPlan(STACK.name, "system")


@pytest.fixture(autouse=True)
def debian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESTACK_DEBIAN_MIRROR", "http://deb.example/debian")


@pytest.mark.parametrize("name", stacks().stacks)
def test_a_plan_has_its_image(name: str):
    assert BuildPlan(name, "source").image == "compilers"
    assert BuildPlan(name, "system").image == f"llvm-{stacks().stack(name).series}"
    assert BuildPlan(name, "system", llvm_version="99.1.0").image == "llvm-99"
    assert BuildPlan(name, "source", llvm_version="99.1.0").image == "compilers"


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that has the inputs of a build and nothing else."""
    root = tmp_path / "checkout"
    for name in module.INPUTS:
        path = root / name
        if (module.ROOT / name).is_dir():
            path = path / "deep/file"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    monkeypatch.setattr(module, "ROOT", root)
    return root


def test_the_inputs_are_there():
    assert [name for name in module.INPUTS if not (module.ROOT / name).exists()] == []


@pytest.mark.parametrize("name", module.INPUTS)
def test_another_input_is_another_outcome(inputs: Path, name: str):
    before = PLAN.digest("here")
    path = inputs / name
    if path.is_dir():
        (path / "new").touch()
        added = PLAN.digest("here")
        (path / "new").rename(path / "newer")
        assert len({before, added, PLAN.digest("here")}) == 3
        (path / "newer").unlink()
        path = path / "deep/file"
    assert PLAN.digest("here") == before
    path.write_text("changed")
    assert PLAN.digest("here") != before


def test_another_plan_or_image_is_another_outcome(inputs: Path, monkeypatch: pytest.MonkeyPatch):
    plans = [
        PLAN,
        replace(PLAN, llvm="source"),
        replace(PLAN, stack="another"),
        replace(PLAN, only_llvm=True),
        replace(PLAN, without_nvptx=True),
        replace(PLAN, llvm_version="1.2.3"),
    ]
    digests = [plan.digest("here") for plan in plans] + [PLAN.digest("sha256:1")]
    assert len(set(digests)) == len(digests)
    assert all(len(digest) == 16 for digest in digests)
    monkeypatch.setenv("TILESTACK_JOBS", "77")
    (inputs / "third_party/__pycache__").mkdir()
    (inputs / "third_party/__pycache__/x.pyc").touch()
    (inputs / "other").touch()
    assert [plan.digest("here") for plan in plans] == digests[:-1]


def test_arguments(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_JOBS", "7")
    bare = Folders(Path("/p"), Path("/w"), Path("/k"), None)
    usual = ["-m", "toolchain.native.recipes", "--stack", STACK.name, "--llvm", "system", "--jobs", "7"]
    usual += ["--work", "/w", "--prefix", "/p", "--packages", "/k"]
    assert PLAN.arguments(bare) == [*usual, "--debian-mirror", "http://deb.example/debian"]
    plan = replace(PLAN, only_llvm=True, without_nvptx=True, llvm_version="1.2.3")
    monkeypatch.setattr(module, "mirror", _no_mirror)
    expected = [*usual, "--source-mirror", "/s", "--llvm-version", "1.2.3", "--only-llvm", "--without-nvptx"]
    assert plan.arguments(replace(bare, sources=Path("/s"))) == expected


def _no_mirror() -> str:
    raise ToolchainError("no mirror of Debian is known")


def test_the_recipes_take_these_arguments():
    from toolchain.native import recipes

    plan = replace(PLAN, only_llvm=True, without_nvptx=True, llvm_version="1.2.3")
    args = recipes.parser().parse_args(plan.arguments(Folders(Path("/p"), Path("/w"), Path("/k"), Path("/s")))[2:])
    assert (args.stack, args.llvm, args.llvm_version) == (STACK.name, "system", "1.2.3")
    assert (args.work, args.prefix, args.packages, args.source_mirror) == tuple(map(Path, ("/w", "/p", "/k", "/s")))
    assert (args.only_llvm, args.without_nvptx) == (True, True)
