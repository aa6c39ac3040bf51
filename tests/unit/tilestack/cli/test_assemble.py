"""The forms of `assemble` that need no tool, and what it refuses. Cubins: tests/compile/tilestack/."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from toolchain.knobs import ROOT
from toolchain.tileir import bytecode

from ..conftest import Run

GELU = ROOT / "kernels_mlir" / "gelu.mlir"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--emit", "sass"], "--emit sass is machine code of one GPU\n  next: name it with --target"),
        (["--emit", "cubin"], "--emit cubin is machine code of one GPU"),
        (["--emit", "mlir", "--target", "sm_90"], "--emit mlir is the same for every target"),
        (["--emit", "bytecode", "--target", "sm_90"], "--emit bytecode is the same for every target"),
        (["--emit", "ptx"], "tileiras 13.5.37 makes a cubin of it in one step and hands out no PTX"),
        (["--emit", "nvvm"], "invalid choice: 'nvvm'"),
        (["--debug-info", "--target", "sm_90"], "--debug-info is for bytecode and text"),
        (["--debug-info", "--emit", "sass"], "--debug-info is for bytecode and text"),
    ],
)
def test_forms_that_a_kernel_does_not_take(
    run: Run, add_one: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    ran = run("assemble", add_one, *words, "-o", tmp_path / "out")
    assert ran.code == 2 and said in ran.err
    assert not (tmp_path / "out").exists()


def test_text_and_bytecode_by_name(run: Run, add_one: Path, tmp_path: Path) -> None:
    for form in ("mlir", "bytecode"):
        assert run("assemble", add_one, "--emit", form, "-o", tmp_path / form) == (0, "", "")
    assert b"addf" in (tmp_path / "mlir").read_bytes()
    assert run("assemble", tmp_path / "mlir", "-o", tmp_path / "again").code == 0
    assert (tmp_path / "again").read_bytes() == (tmp_path / "bytecode").read_bytes()


def test_from_standard_input_to_standard_output(run: Run, add_one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = run("assemble", add_one, "--emit", "mlir").out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(add_one.read_bytes())))
    assert run("assemble", "-", "--emit", "mlir", "-o", "-") == (0, wanted, "")


def test_what_is_made_on_the_way_is_kept(run: Run, add_one: Path, tmp_path: Path) -> None:
    assert run("assemble", add_one, "--save-temps", tmp_path / "kept" / "here", "-o", tmp_path / "out").code == 0
    kept = tmp_path / "kept" / "here"
    assert sorted(path.name for path in kept.iterdir()) == ["add_one.mlir", "add_one.tilebc"]
    assert (kept / "add_one.tilebc").read_bytes() == (tmp_path / "out").read_bytes()
    assert list(bytecode.read((tmp_path / "out").read_bytes()).entries) == ["add_one"]
    ran = run("assemble", add_one, "--save-temps", add_one, "-o", tmp_path / "more")
    assert ran.code == 2 and f"--save-temps {add_one}: add_one.tilebc cannot be written" in ran.err
    assert not (tmp_path / "more").exists()


def test_a_dry_run_writes_nothing(run: Run, add_one: Path, tmp_path: Path) -> None:
    ran = run("assemble", add_one, "--dry-run", "--save-temps", tmp_path / "kept", "-o", tmp_path / "out")
    command = f"tilestack assemble {add_one} --emit bytecode --bytecode 13.4 -o {tmp_path / 'out'}\n"
    assert ran == (0, command, "")
    assert [path.name for path in tmp_path.iterdir()] == ["add_one.mlir"]


def test_an_entry_of_a_source_is_assembled(run: Run, tmp_path: Path) -> None:
    assert run("assemble", "--entry", "gelu_1024_f16", "--bytecode", "13.2", "-o", tmp_path / "k").code == 0
    data = (tmp_path / "k").read_bytes()
    assert bytecode.version_of(data) == (13, 2)
    assert list(bytecode.read(data).entries) == ["gelu_1024_f16"]


def test_assemble_wants_one_input_and_a_known_version(run: Run, add_one: Path, tmp_path: Path) -> None:
    assert run("assemble").code == 2
    assert run("assemble", add_one, "--entry", "gelu_1024_f16").code == 2
    assert "no entry 'gelu'" in run("assemble", "--entry", "gelu").err
    for version in ("12.0", "x"):
        assert "one of 13.1" in run("assemble", add_one, "--bytecode", version).err
    assert "no target sm_1\n" in run("assemble", add_one, "--target", "sm_1").err
    assert "one target" in run("assemble", add_one, "--target", "all").err
    ran = run("assemble", add_one, "-o", tmp_path / "no" / "folder")
    assert ran.code == 2 and "cannot be written: No such file or directory" in ran.err
