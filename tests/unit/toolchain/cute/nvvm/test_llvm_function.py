"""The head of a function in LLVM IR, the phis of its blocks, and what it refuses."""

from __future__ import annotations

import pytest

from toolchain.cute import parse as cute
from toolchain.cute.nvvm import parse, to_llvm_ir
from toolchain.cute.nvvm.llvm_function import LOWER
from toolchain.cute.passes import PIPELINE
from toolchain.errors import SourceError

from .lowered import lowered


def kernel(parameter: str, attributes: str = "") -> str:
    return to_llvm_ir(
        parse(f"gpu.module @m {{ llvm.func @k({parameter}) attributes {{nvvm.kernel{attributes}}} {{ llvm.return }} }}")
    )


def test_what_a_launch_promises_is_written_as_attributes() -> None:
    map_ = "%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64, nvvm.grid_constant}"
    made = kernel(map_, ", nvvm.maxntid = array<i32: 384>, nvvm.minctasm = 1 : i32")
    assert 'define ptx_kernel void @k(ptr byval([128 x i8]) align 64 "nvvm.grid_constant" %v0)' in made
    assert '"nvvm.maxntid"="384" "nvvm.minctasm"="1" {' in made


def test_an_attribute_without_a_form_is_named() -> None:
    with pytest.raises(SourceError, match=r"attribute llvm\.sret has no form"):
        kernel("%p: !llvm.ptr {llvm.sret = !llvm.array<128 x i8>}")


def test_what_was_not_lowered_is_an_error_with_the_passes_that_lower_it() -> None:
    shape = 'cute.make_shape() : () -> !cute.shape<"(4,8)">'
    module = cute.parse(f"gpu.module @m {{\n  llvm.func @k() {{\n%0 = {shape}\nllvm.return }} }}", "k.mlir")
    assert ",".join(PIPELINE) in LOWER
    with pytest.raises(SourceError, match=r"k\.mlir:3:1: k: cute\.make_shape: this operation has no form") as said:
        to_llvm_ir(module)
    assert said.value.hint == LOWER


def test_a_function_without_a_body_is_declared() -> None:
    assert "declare float @f(i32)\n" in to_llvm_ir(parse("llvm.func @f(i32) -> f32"))


def test_arguments_of_a_block_are_phis_of_all_that_branch_to_it() -> None:
    lines = lowered("""
    %in = arith.cmpi slt, %i, %i : i32
    cf.cond_br %in, ^end(%i : i32), ^other
  ^other:
    %two = arith.constant 2 : i32
    cf.br ^end(%two : i32)
  ^end(%a: i32):""")
    (phi,) = [line for line in lines if "phi" in line]
    assert lines[lines.index(phi) - 1] == "b2:"
    assert phi.endswith("= phi i32 [ %v1, %b0 ], [ 2, %b1 ]")


def test_both_ways_to_one_block_are_refused() -> None:
    with pytest.raises(SourceError, match="both ways lead to one block"):
        lowered("""
    %in = arith.cmpi slt, %i, %i : i32
    cf.cond_br %in, ^end(%i : i32), ^end(%i : i32)
  ^end(%a: i32):""")
