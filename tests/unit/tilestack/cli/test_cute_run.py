"""`tilestack cute-run`: the command; tests/unit/toolchain/cute/executor/ has the executor."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from toolchain.cute.compile import to_ptx

from ..conftest import Run

TEXT = """gpu.module @kernels {
  llvm.func @double(%x: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %s = nvvm.read.ptx.sreg.ntid.x : i32
    %c = arith.muli %b, %s : i32
    %i = arith.addi %c, %t : i32
    %in = arith.cmpi ult, %i, %n : i32
    scf.if %in {
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %v = llvm.load %p : !llvm.ptr<1> -> f32
      %w = arith.addf %v, %v : f32
      llvm.store %w, %p : f32, !llvm.ptr<1>
    }
    llvm.return
  }
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "double.mlir"
    made.write_text(TEXT)
    np.save(tmp_path / "x.npy", np.arange(70, dtype=np.float32))
    return made


def test_a_kernel_runs_and_its_argument_is_saved(run: Run, file: Path) -> None:
    x, out = file.parent / "x.npy", file.parent / "out.npy"
    said = run("cute-run", file, "--grid", "3", "--threads", "32", "--arg", x, "--arg", "70", "--save", f"0={out}")
    assert said.code == 0 and "double: 3 blocks ran, no error" in said.out and "arg 0: float32 70  sum 4830" in said.out
    assert (np.load(out) == 2 * np.arange(70)).all()
    rows = run("cute-run", file, "--threads", "32", "--arg", x, "--arg", "70", "--json")
    assert json.loads(rows.out) == {"kernel": "double", "blocks": 1, "shared_memory": []}


def test_a_mistake_is_named(run: Run, file: Path) -> None:
    wrong = run("cute-run", file, "--grid", "3", "--threads", "32", "--arg", file.parent / "x.npy", "--arg", "80")
    assert wrong.code == 8
    assert f"{file}:11:7, block (2, 0, 0), thread 6: reads 4 bytes from argument 0[70] on" in wrong.err


def test_bad_input_is_named(run: Run, file: Path) -> None:
    assert "2 parameters, 0 arguments" in run("cute-run", file).err
    assert "--threads '0'" in run("cute-run", file, "--threads", "0").err
    assert "no one kernel 'k'" in run("cute-run", file, "--entry", "k").err


def test_clusters(run: Run, tmp_path: Path) -> None:
    kernel = tmp_path / "ranks.mlir"
    body = TEXT.replace("sreg.ntid.x", "sreg.cluster.ctarank").replace("ptr<1>, f32", "ptr<1>, i32")
    start, end = body.index("    scf.if"), body.index("    llvm.return")
    store = "    %p = llvm.getelementptr %x[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
    kernel.write_text(body[:start] + store + "    llvm.store %s, %p : i32, !llvm.ptr<1>\n" + body[end:])
    arguments = ["--grid", "6", "--arg", "zeros:i32:6", "--arg", "0", "--save", f"0={tmp_path / 'ranks.npy'}"]
    run("cute-run", str(kernel), "--cluster", "3", *arguments)
    assert np.load(tmp_path / "ranks.npy").tolist() == [0, 1, 2, 0, 1, 2]


def test_its_ptx_runs_and_so_does_ptx_itself(run: Run, file: Path) -> None:
    x, out = file.parent / "x.npy", file.parent / "out.npy"
    words = ("--grid", "3", "--threads", "32", "--arg", x, "--arg")
    assert run("cute-run", file, "--ptx", "sm_80", *words, "70", "--save", f"0={out}").code == 0
    assert (np.load(out) == 2 * np.arange(70)).all()
    wrong = run("cute-run", file, "--ptx", "sm_80", *words, "80")
    assert wrong.code == 8
    assert (
        f"{file} for sm_80:" in wrong.err
        and "block (2, 0, 0), thread 6: reads 4 bytes from argument 0[70] on" in wrong.err
    )
    ptx = file.with_suffix(".ptx")
    ptx.write_text(to_ptx(TEXT, "sm_80"))
    assert "double: 3 blocks ran, no error" in run("cute-run", ptx, *words, "70").out
    ptx.write_text(ptx.read_text().replace("add.rn.f32", "add.rz.f32"))
    assert f"{ptx}:" in (said := run("cute-run", ptx, *words, "70").err) and "know the instruction add.rz.f32" in said
    assert "needs no --ptx" in run("cute-run", ptx, "--ptx", "sm_80", *words, "70").err
