from __future__ import annotations

import pytest

from toolchain.cute.nvvm import compile_to_ptx
from toolchain.errors import SourceError, ToolchainError, UsageError

KERNEL = """gpu.module @kernels {
  llvm.func @scale(%x: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128>} {
    %i = nvvm.read.ptx.sreg.tid.x : i32
    %in = arith.cmpi slt, %i, %n : i32
    scf.if %in {
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %v = llvm.load %p : !llvm.ptr<1> -> f32
      %w = arith.addf %v, %v : f32
      llvm.store %w, %p : f32, !llvm.ptr<1>
    }
    llvm.return
  }
}"""


def test_a_kernel_is_ptx_for_its_architecture() -> None:
    made = compile_to_ptx(KERNEL, "sm_90a")
    assert ".version 8.5\n.target sm_90a" in made
    assert ".visible .entry scale(" in made
    assert ".maxntid 128" in made
    assert compile_to_ptx(KERNEL, "sm_90a") == made


def test_an_unknown_architecture_or_level_is_bad_usage() -> None:
    with pytest.raises(UsageError, match="no PTX version is known for sm_42"):
        compile_to_ptx(KERNEL, "sm_42")
    with pytest.raises(UsageError, match="optimization level 9"):
        compile_to_ptx(KERNEL, "sm_80", level=9)


def test_a_module_without_a_kernel_is_refused() -> None:
    with pytest.raises(SourceError, match="has no kernel"):
        compile_to_ptx("gpu.module @m { llvm.func @f() { llvm.return } }", "sm_80")


def test_the_error_of_llvm_names_its_version_and_the_file() -> None:
    asm = (
        '"llvm.inline_asm"() <{asm_string = "bar.sync $0;", constraints = "r", has_side_effects, '
        "tail_call_kind = #llvm.tailcallkind<none>}> : () -> ()"
    )
    text = f"gpu.module @m {{ llvm.func @k() attributes {{nvvm.kernel}} {{ {asm}\nllvm.return }} }}"
    with pytest.raises(ToolchainError, match=r"LLVM 22\.\d.*refuses k\.mlir"):
        compile_to_ptx(text, "sm_80", name="k.mlir")
