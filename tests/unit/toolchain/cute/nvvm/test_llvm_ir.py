"""The functions and globals of a module in LLVM IR."""

from __future__ import annotations

import pytest

from toolchain.cute.nvvm import parse, to_llvm_ir
from toolchain.errors import SourceError


def test_functions_and_globals_of_every_module_come_one_after_the_other() -> None:
    text = """gpu.module @m {
      llvm.mlir.global external @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
      llvm.mlir.global internal constant @text("ab") {addr_space = 4 : i32} : !llvm.array<2 x i8>
      llvm.func @k() attributes {nvvm.kernel} { nvvm.barrier0
        nvvm.barrier0
        llvm.return }
    }
    llvm.func @f() { llvm.return }"""
    made = to_llvm_ir(parse(text))
    assert made.startswith('target triple = "nvptx64-nvidia-cuda"\n')
    assert "@tile = external addrspace(3) global [0 x i8], align 128\n" in made
    assert '@text = internal addrspace(4) constant [2 x i8] c"ab"\n' in made
    assert "define ptx_kernel void @k()" in made and "define void @f()" in made
    assert made.endswith("\ndeclare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n")  # once


def test_what_has_no_place_in_it_is_named() -> None:
    with pytest.raises(SourceError, match=r"arith\.constant cannot stand in a module that is lowered to LLVM IR"):
        to_llvm_ir(parse("%c = arith.constant 1 : i32"))
