"""The table of instructions has a row for each that the compiler has."""

from __future__ import annotations

import pytest

from toolchain.cute.executor import NoSemantics, run
from toolchain.cute.executor.instructions.table import ROWS
from toolchain.cute.nvgpu import ARCH
from toolchain.cute.nvvm.dialect import CALLS

# docs/cute-executor.md names these limits.
WITHOUT = ("tmem.copy", "tcgen05.mma_sp", "tcgen05.mma_scaled")


def test_every_other_instruction_has_a_row() -> None:
    known = {kind.name for name, kind in ARCH.items() if name not in WITHOUT}
    assert set(ROWS) == known | {call.name for call in CALLS} | {"llvm.call"}


SPARSE = """
gpu.module @m {
  llvm.func @sparse(%sums: i32, %side: i64) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    cute_nvgpu.arch.tcgen05.mma_sp(%sums, %side, %side, %sums, %sums, %sums) {atom = "f16"}
      : (i32, i64, i64, i32, i32, i32) -> ()
    llvm.return
  }
}
"""


def test_an_instruction_without_a_row_is_named_before_anything_runs() -> None:
    with pytest.raises(NoSemantics, match=r"<kernel>:4:5: the executor does not know what \S+tcgen05.mma_sp does"):
        run(SPARSE, (1, 1))


BRANCHES = """
gpu.module @m {
  llvm.func @jump() attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    cf.br ^end
  ^end:
    llvm.return
  }
}
"""


def test_branches_between_blocks_are_refused() -> None:
    with pytest.raises(NoSemantics, match="jump has branches between blocks"):
        run(BRANCHES, ())


PRINT = """
gpu.module @kernels {
  llvm.func @show(%n: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 40>} {
    %i = nvvm.read.ptx.sreg.tid.x : i32
    %few = arith.constant 38 : i32
    %last = arith.cmpi sge, %i, %few : i32
    scf.if %last {
      %at = cute.make_coord(%i, %n) : (i32, i32) -> !cute.coord<"(?,?)">
      cute.print(%at) : !cute.coord<"(?,?)">
    }
    llvm.return
  }
}
"""


def test_a_kernel_prints_thread_after_thread(capsys: pytest.CaptureFixture[str]) -> None:
    run(PRINT, (7,))
    assert capsys.readouterr().out == "(38,7)\n(39,7)\n"


CALL = """
gpu.module @kernels {
  llvm.func @other() -> i32
  llvm.func @k() attributes {nvvm.kernel, nvvm.reqntid = array<i32: 1>} {
    %v = llvm.call @other() : () -> i32
    llvm.return
  }
}
"""


def test_no_other_function_is_called() -> None:
    with pytest.raises(NoSemantics, match="calls vprintf alone"):
        run(CALL, ())
