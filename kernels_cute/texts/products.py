"""Products of weights in bf16 or in e4m3, which become f16, with eight texts on the tensor cores, by a warp: texts are
the columns of operand B.

Lane 4 t + q has of text t the columns 16 q to 16 q + 15 of 64: the order of columns within a product does not matter,
so that its chunks of weights are operand A as they lie. `bits`: of a weight.
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
from ..decode.products import Operand, kind, split, tile_columns


def operand(x: Any, bits: int) -> list[Operand]:
    """The warp's columns, of which each lane has 16: rounded to 16 bits, and what is rounded off (see `split`)."""
    high, low = list[list[Any]](), list[list[Any]]()
    for i in range(0, 16, 4):
        pairs = [split([x[i + j], x[i + j + 1]], bits) for j in (0, 2)]
        high.append([pair[0] for pair in pairs])
        low.append([pair[1] for pair in pairs])
    return [high, low]


def columns(tensor: Any, first: Any, stride: int, lane: Any, bits: int) -> Operand:
    """Registers of A of a tile of 8 rows and 64 columns, for each instruction. `stride`: chunks from row to row in 16
    bits, where odd rows read their second chunk first, so that lanes that read at one time find theirs in different
    banks. In 8 the rows lie side by side."""
    if bits == 8:
        return tile_columns(tensor, [first], stride, lane, bits)[0]
    row, quarter = lane // 4, lane % 4
    odd = row % 2
    near, far = (raw(tensor, first + row * stride + quarter * 2 + at, CHUNK) for at in (odd, 1 - odd))
    turned = cute.same(odd, 1)
    halves = [
        [cute.select(turned, b, a) for a, b in zip(near, far, strict=True)],
        [cute.select(turned, a, b) for a, b in zip(near, far, strict=True)],
    ]
    return [half[i : i + 2] for half in halves for i in (0, 2)]


def times(
    tiles: Sequence[Operand], parts: Sequence[Operand], bits: int, sums: list[list[Any]] | None = None
) -> list[list[Any]]:  # fmt: skip
    """One or two tiles times x, which is the sum of `parts`, added to `sums`: a list of four for each part."""
    none = cute.scalar(0, i32)
    sums = sums or [[cute.scalar(0.0)] * 4 for _ in parts]
    for i in range(len(parts[0])):
        both = [tile[i] for tile in tiles] + [[none, none]] * (2 - len(tiles))
        a = [tile[part] for part in range(2) for tile in both]
        sums = [_times(a, part[i], sum_, bits) for part, sum_ in zip(parts, sums, strict=True)]
    return sums


def total_of(sums: list[list[Any]], count: int) -> list[list[Any]]:
    """For each tile the sums of row `lane // 4` with texts 2 q and 2 q + 1, q = `lane % 4`."""
    whole = sums[0]
    for more in sums[1:]:
        whole = [a + b for a, b in zip(whole, more, strict=True)]
    return [whole[2 * tile : 2 * tile + 2] for tile in range(count)]


def _times(a: Sequence[Any], b: Sequence[Any], sums: Sequence[Any], bits: int) -> list[Any]:
    given = arch.instruction("mma.sync", *a, *b, *sums, results=[f32] * 4, atom=f"mma.m16n8k16.f32.{kind(bits)}")
    return [cute.Scalar(value) for value in given]


def rounded_pair(a: Any, b: Any, bits: int) -> Any:
    """Two f32 rounded to 16 bits, as the bits of an f32."""
    word = arch.instruction("convert.pair", a, b, results=[i32], atom=kind(bits))[0]
    return cute.Scalar(current().insert(arith.BitcastOp(word, f32)).result)


def as_bits(value: Any) -> Any:
    """The bits of an f32 as an i32."""
    return cute.Scalar(current().insert(arith.BitcastOp(value.value, i32)).result)
