"""`tilestack disassemble`, and text that becomes bytecode and text again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.contract.targets import BYTECODE
from toolchain.knobs import ROOT
from toolchain.tileir import bytecode, text
from toolchain.tileir.bytecode.writer import parse_version
from toolchain.tileir.dialect.memory import MakeTensorViewOp
from toolchain.tileir.dialect.types import DYNAMIC, TensorViewType, f32

from ..conftest import Run


def test_text_to_bytecode_to_text(run: Run, add_one: Path, tmp_path: Path) -> None:
    binary, again, twice = tmp_path / "k.tilebc", tmp_path / "k.mlir", tmp_path / "k2.tilebc"
    assert run("assemble", add_one, "-o", binary) == (0, "", "")
    assert bytecode.version_of(binary.read_bytes()) == parse_version(BYTECODE)
    assert run("disassemble", binary, "-o", again).code == 0
    assert run("assemble", again, "-o", twice).code == 0
    assert binary.read_bytes() == twice.read_bytes()
    assert run("disassemble", binary).out == again.read_text()
    assert "addf" in again.read_text()


def test_bytecode_that_is_not_right_has_no_text(run: Run, tmp_path: Path) -> None:
    parameters = "%p: tile<ptr<f32>>, %n: tile<i32>"
    view = "make_tensor_view %p, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>"
    module = text.parse(f"entry @k({parameters}) {{\n%v = {view}\nreturn\n}}\n", filename="k")
    made = next(op for op in module.walk() if isinstance(op, MakeTensorViewOp))
    made.result._type = TensorViewType((DYNAMIC, DYNAMIC), (4, 1), f32)  # pyright: ignore[reportPrivateUsage]
    path = tmp_path / "k.tilebc"
    path.write_bytes(bytecode.write(module))
    for command in ("disassemble", "verify"):
        ran = run(command, path)
        assert ran.code == 3 and ran.out == ""
        assert ran.err.startswith(f"error: {path}:0:0: error: make_tensor_view: ") and "(in @k)" in ran.err


@pytest.mark.parametrize("size", [1, 7, 8])
def test_bytecode_cut_off_in_its_header_is_no_text(size: int, run: Run, add_one: Path, tmp_path: Path) -> None:
    path = tmp_path / "k.tilebc"
    run("assemble", add_one, "-o", path)
    path.write_bytes(path.read_bytes()[:size])
    ran = run("verify", path)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == f"error: {path}: Tile IR bytecode that ends inside its header, after {size} bytes\n"


def test_output_that_cannot_be_written() -> None:
    for output in ("-o /dev/full", "> /dev/full"):
        command = f"exec {sys.executable} -m tilestack assemble kernels_mlir/gelu.mlir {output}"
        done = subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "cannot be written: No space left on device" in done.stderr


def test_text_is_what_the_printer_prints(run: Run, add_one: Path, tmp_path: Path) -> None:
    run("assemble", add_one, "-o", tmp_path / "k")
    assert run("disassemble", tmp_path / "k").out == text.print_module(bytecode.read((tmp_path / "k").read_bytes()))


def test_debug_information_is_written_when_asked_for(run: Run, add_one: Path, tmp_path: Path) -> None:
    code = tmp_path / "k.tilebc"
    assert run("assemble", add_one, "-o", code).code == 0
    assert add_one.name.encode() not in code.read_bytes()
    assert run("assemble", add_one, "--debug-info", "-o", code).code == 0
    assert add_one.name.encode() in code.read_bytes()
    printed = run("assemble", add_one, "--debug-info", "--emit", "mlir").out
    assert f'in "{tmp_path}">' in printed and " loc(#cuda_tile.di_loc<loc(" in printed
    ran = run("assemble", add_one, "--debug-info", "--target", "sm_90")
    assert ran.code == 2 and "a cubin is made without it" in ran.err
