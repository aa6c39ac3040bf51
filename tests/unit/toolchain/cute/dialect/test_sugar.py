"""Operations on whole tensors: what is wrong is refused with its place. test_examples.py has their text."""

from __future__ import annotations

import pytest

from toolchain.cute.parse import parse
from toolchain.errors import SourceError

F4, F8 = '!cute.memref<f32, rmem, align<16>, "4:1">', '!cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">'
APART = '!cute.memref<f32, gmem, align<16>, "4:2">'
OPEN = '!cute.memref<f32, gmem, align<16>, "?:1">'
MMA = '!cute.tiled_mma<"wgmma.m64n8k16.f32.bf16", atom_layout_MNK = "(1,1,1):(0,0,0)", permutation_MNK = "[_;_;_]">'
HEAD = f"func.func @f(%x: {F4}, %y: {F8}, %a: {APART}, %o: {OPEN}, %v: f32, %i: i32, %m: {MMA}) {{\n"
ATOM = '!cute_nvgpu.mma_atom<"mma.m16n8k16.f32.bf16">'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"cute.fill(%x, %i) : ({F4}, i32) -> ()", "writes a f32, not i32"),
        (f"cute.fill(%x) : ({F4}) -> ()", r"takes 2 operands \(memref, value\), not 1"),
        ("cute.clear(%v) : (f32) -> ()", "operand 0 is a cute.memref, not f32"),
        (f"cute.clear(%o) : ({OPEN}) -> ()", "is not known; it is unrolled"),
        (f"cute.axpby(%v, %x, %v, %y) : (f32, {F4}, f32, {F8}) -> ()", "different numbers of elements"),
        (f"cute.gemv(%x, %y, %x, %x) : ({F4}, {F8}, {F4}, {F4}) -> ()", r"A \(M, K\), b \(K\)"),
        (f"%r = cute.memref.load_vec(%a) : ({APART}) -> vector<4xf32>", "others between them"),
        (f"%r = cute.memref.load_vec(%x) : ({F4}) -> vector<8xf32>", "gives vector<4xf32>"),
        (f"%r = cute.make_fragment_like(%a) : ({APART}) -> {APART}", "one memref in rmem"),
        (f"%r = cute.make_fragment_like(%a) : ({APART}) -> {F8}", "does not hold the 4 elements"),
        (f"%r = cute.mma.make_fragment_B(%m, %x) : ({MMA}, {F4}) -> {F4}", "reads it in smem"),
        (f"%r = cute.get_leaves(%x) : {F4}", "takes a tuple or a tile"),
    ],
)
def test_what_is_wrong_is_refused(line: str, said: str) -> None:
    with pytest.raises(SourceError, match=rf"^k\.mlir:2:\d+: .*{said}"):
        parse(f"{HEAD}{line}\nfunc.return\n}}", "k.mlir")


def test_a_tiled_mma_is_of_its_atom() -> None:
    line = f"%r = cute.make_tiled_mma(%t) : ({ATOM}) -> {MMA}"
    with pytest.raises(SourceError, match=r"gives a tiled_mma of mma\.m16n8k16\.f32\.bf16"):
        parse(f"func.func @f(%t: {ATOM}) {{\n{line}\nfunc.return\n}}")
