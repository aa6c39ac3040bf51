"""Products of weights in bf16 with eight texts on the tensor cores, by a warp: texts are the columns of operand B.

Lane 4 t + q has of text t the columns 8 q to 8 q + 7 of each half of 64: the order of columns within a product does not
matter, so that its chunks of weights are operand A as they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.trace import current

from ..decode.lanes import CHUNK, raw
from ..decode.products import Operand, split


def operand(x: Any) -> list[Operand]:
    """The warp's columns, of which each lane has 16: rounded to bf16, and what is rounded off. Together they are x up
    to 2^-17."""
    high, low = list[list[Any]](), list[list[Any]]()
    for i in range(0, 16, 4):
        pairs = [split([x[i + j], x[i + j + 1]], 16) for j in (0, 2)]
        high.append([pair[0] for pair in pairs])
        low.append([pair[1] for pair in pairs])
    return [high, low]


def columns(tensor: Any, first: Any, stride: int, lane: Any) -> Operand:
    """Registers of A of a tile of 8 rows and 64 columns, for each instruction. Odd rows read their second half first,
    so that lanes that read at one time find their chunks in different banks."""
    row, quarter = lane // 4, lane % 4
    odd = row % 2
    near, far = (
        raw(tensor, first + row * stride + half + quarter, CHUNK) for half in (odd * 4, (1 - odd) * 4)
    )  # fmt: skip
    turned = cute.same(odd, 1)
    halves = [
        [cute.select(turned, b, a) for a, b in zip(near, far, strict=True)],
        [cute.select(turned, a, b) for a, b in zip(near, far, strict=True)],
    ]
    return [half[i : i + 2] for half in halves for i in (0, 2)]


def times(tiles: Sequence[Operand], parts: Sequence[Operand], sums: list[list[Any]] | None = None) -> list[list[Any]]:
    """One or two tiles times x, which is the sum of `parts`, added to `sums`: a list of four for each part."""
    none = cute.scalar(0, i32)
    sums = sums or [[cute.scalar(0.0)] * 4 for _ in parts]
    for i in range(len(parts[0])):
        both = [tile[i] for tile in tiles] + [[none, none]] * (2 - len(tiles))
        a = [tile[part] for part in range(2) for tile in both]
        sums = [_times(a, part[i], sum_) for part, sum_ in zip(parts, sums, strict=True)]
    return sums


def total_of(sums: list[list[Any]], count: int) -> list[list[Any]]:
    """For each tile the sums of row `lane // 4` with texts 2 q and 2 q + 1, q = `lane % 4`."""
    whole = sums[0]
    for more in sums[1:]:
        whole = [a + b for a, b in zip(whole, more, strict=True)]
    return [whole[2 * tile : 2 * tile + 2] for tile in range(count)]


def _times(a: Sequence[Any], b: Sequence[Any], sums: Sequence[Any]) -> list[Any]:
    given = arch.instruction("mma.sync", *a, *b, *sums, results=[f32] * 4, atom="mma.m16n8k16.f32.bf16")
    return [cute.Scalar(value) for value in given]


def bf16_pair(a: Any, b: Any) -> Any:
    """Two f32 rounded to bf16, as the bits of an f32."""
    word = arch.instruction("convert.pair", a, b, results=[i32], atom="bf16")[0]
    return cute.Scalar(current().insert(arith.BitcastOp(word, f32)).result)


def as_bits(value: Any) -> Any:
    """The bits of an f32 as an i32."""
    return cute.Scalar(current().insert(arith.BitcastOp(value.value, i32)).result)
