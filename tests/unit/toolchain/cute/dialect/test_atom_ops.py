"""Atoms as values: their fields and types, and what is refused."""

from __future__ import annotations

import pytest

from toolchain.cute.parse import parse
from toolchain.errors import SourceError

LOAD, STORE = '!cute_nvgpu.tma_atom<"load">', '!cute_nvgpu.tma_atom<"store">'
BOX = '!cute.memref<bf16, smem, align<16>, "(8,64):(64,1)">'
WHERE = '!cute.coord_tensor<"(0,0)", "(8,64):(1@1,1@0)">'
SET = "%r = cute_nvgpu.atom_set_value(%l, %i)"
HEAD = f"func.func @f(%l: {LOAD}, %s: {STORE}, %p: !llvm.ptr<3>, %i: i32, %b: {BOX}, %w: {WHERE}) {{\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f'{SET} {{field = "mbarrier"}} : ({LOAD}, i32) -> {LOAD}', "is !llvm.ptr<3>, not i32"),
        (f'{SET} {{field = "mask"}} : ({LOAD}, i32) -> {LOAD}', "no field 'mask'; its fields are"),
        (f'%r = cute_nvgpu.atom_get_value(%s) {{field = "mbarrier"}} : ({STORE}) -> !llvm.ptr<3>', "it has none"),
        (f"%r = cute_nvgpu.make_copy_atom() : () -> {LOAD}", "takes its tensor map"),
        (f"%r = cute_nvgpu.make_mma_atom() : () -> {LOAD}", "gives a mma_atom"),
        (f"cute_nvgpu.tma_copy(%s, %b, %w) : ({STORE}, {BOX}, {WHERE}) -> ()", "aligned to 128 bytes"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(line: str, said: str) -> None:
    with pytest.raises(SourceError, match=rf"^k\.mlir:2:1: cute_nvgpu\..*{said}"):
        parse(f"{HEAD}{line}\nfunc.return\n}}", "k.mlir")


def test_a_copy_by_tma_that_is_not_there_is_named() -> None:
    with pytest.raises(SourceError, match="no copy 'gather' by TMA"):
        parse('func.func @f(%a: !cute_nvgpu.tma_atom<"gather">) {\nfunc.return\n}')
