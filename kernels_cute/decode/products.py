"""Products of weights with x on the tensor cores, by a warp: of weights in bf16, and in e4m3, which become f16.

x is two numbers of 16 bits that add up to it: those that are rounded off are the second one. Columns of operand B with
even numbers are the first, the others the second. `bits`: of a weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from .lanes import CHUNK, WARP, exchange, raw, total, vector

Operand = list[list[Any]]  # registers of B for each instruction


def kind(bits: int) -> str:
    """What is multiplied with weights of so many bits."""
    return "bf16" if bits == 16 else "f16"


def split(pair: Sequence[Any], bits: int) -> tuple[Any, Any]:
    """Two f32 as two pairs that add up to them: up to 2^-17 of them in bf16, up to 2^-22 or 2^-25 in all in f16."""
    atom = kind(bits)
    high = cute.Scalar(arch.instruction("convert.pair", *pair, results=[i32], atom=atom)[0])
    rounded = [cute.Scalar(value) for value in arch.instruction("unpack.pair", high, results=[f32, f32], atom=atom)]
    rest = [value - near for value, near in zip(pair, rounded, strict=True)]
    return high, cute.Scalar(arch.instruction("convert.pair", *rest, results=[i32], atom=atom)[0])


def operand(words: Any, first: Any, lane: Any, bits: int) -> Operand:
    """x of 64 columns, for `tile_times`. `words`: 32 pairs from number `first` on, behind them what is rounded off."""
    low, quarter = lane // 4 % 2, lane % 4
    place = first // 4 + low * 8
    if bits == 8:  # a lane has 16 columns, which lie side by side
        read = vector(words, place + quarter * 2, 4) + vector(words, place + quarter * 2 + 1, 4)
        return [read[i : i + 2] for i in range(0, 8, 2)]
    # Rows with odd numbers read the second half of their columns first: theirs are columns 2 and 3 of every 4 of B.
    half = lane // 8 % 2
    halves = [vector(words, place + at * 4 + quarter, 4) for at in (half, 1 - half)]
    return [read[i : i + 2] for read in halves for i in (0, 2)]


def tile_times(tensor: Any, firsts: Sequence[Any], stride: int, lane: Any, x: Operand, bits: int) -> list[Any]:
    """One or two tiles of 8 rows, 64 columns each, times x: for each tile the sum of row `lane // 4`, which only the
    lanes of `has_row` have. `firsts`: the tiles' first chunks; `stride`: chunks from row to row in 16 bits. In 8 the
    rows lie side by side."""
    return columns_times(tile_columns(tensor, firsts, stride, lane, bits), x, bits)


def tile_columns(tensor: Any, firsts: Sequence[Any], stride: int, lane: Any, bits: int) -> list[list[list[Any]]]:
    """What `tile_times` reads: registers of A of each tile, for each instruction."""
    return [_columns(tensor, first, stride, lane, bits) for first in firsts]


def columns_times(read: list[list[list[Any]]], x: Operand, bits: int) -> list[Any]:
    """What `tile_times` makes of it."""
    none, sums = cute.scalar(0, i32), list[list[Any]]()
    for i, b in enumerate(x):
        both = [each[i] for each in read] + [[none, none]] * (2 - len(read))
        a = [tile[part] for part in range(2) for tile in both]
        made = sums.pop() if i % 2 else [cute.scalar(0.0)] * 4
        sums.append(_times(a, b, made, f"m16n8k16.f32.{kind(bits)}"))
    return [total([each[2 * tile + i] for each in sums for i in range(2)]) for tile in range(len(read))]


def _columns(tensor: Any, first: Any, stride: int, lane: Any, bits: int) -> list[list[Any]]:
    """Registers of A of the lane's row, for each instruction. Lanes that read at one time find their values in
    different banks."""
    if bits == 8:
        return [_widened(word) for word in raw(tensor, first + lane, CHUNK)]
    row, quarter = lane // 4, lane % 4
    odd = row % 2
    chunks = [raw(tensor, first + row * stride + half + quarter, CHUNK) for half in (odd * 4, (1 - odd) * 4)]
    return [words[i : i + 2] for words in chunks for i in (0, 2)]


def has_row(lane: Any) -> Any:
    """True in the lanes that have the sum of row `lane // 4`."""
    return cute.same(lane % 4, lane // 4 % 2)


def unit_operand(words: Any, first: Any, unit: int, lane: Any, bits: int) -> list[Any]:
    """Registers of B: the hidden units of a slot, `unit` and those behind it, for `add_units`. `words`: as those of
    `operand`."""
    place = first + lane // 4 % 2 * WARP
    if bits == 8:
        return vector(words, (place + unit // 2) // 2 + lane % 4, 2)
    return vector(words, place + unit // 2 + lane % 4, 1)


def add_units(tensor: Any, first: Any, lane: Any, b: Sequence[Any], sums: list[list[Any]], bits: int) -> None:
    """Adds to the sums of 64 columns what the hidden units of a slot give them, 4 times 16 columns: `sums[i]` are
    a column in two parts, and its neighbour. `first`: the chunk of the first column; a column
    is a chunk, its hidden units side by side."""
    row, quarter = lane // 4, lane % 4
    near = row * 2 + row // 4  # so that the lanes that read at one time find their values in different banks
    far = near + 1 - row // 4 * 2
    for i in range(4):
        read = [raw(tensor, (first + 16 * i + column) * 4 + quarter, 2)[0] for column in (near, far)]
        if bits == 8:
            pairs = [_widened(word) for word in read]
            a = [pair[part] for part in range(2) for pair in pairs]
            sums[i] = _times(a, b, sums[i], "m16n8k16.f32.f16")
        else:
            sums[i] = _times(read, b, sums[i], "m16n8k8.f32.bf16")


def pair_of_units(sums: list[list[Any]], lane: Any) -> list[Any]:
    """The lane's own pair of 64 columns, number `unit_pair(lane)`."""
    mine = sums[0]
    for i in range(1, 4):
        own = cute.same(lane % 4, i)
        mine = [cute.select(own, new, old) for new, old in zip(sums[i], mine, strict=True)]
    first, second, upper = mine[0] + mine[1], mine[2] + mine[3], cute.less(15, lane)
    return [cute.select(upper, second, first), cute.select(upper, first, second)]


def unit_pair(lane: Any) -> Any:
    return lane % 4 * 8 + lane // 4


def put_units(words: Any, first: Any, values: Sequence[Any], lane: Any, bits: int) -> None:
    """Writes hidden units, in each lane one of every 32, as `unit_operand` reads them."""
    odd = cute.same(lane % 2, 1)
    for i, value in enumerate(values):
        other = exchange(value, 1)
        high, low = split([cute.select(odd, other, value), cute.select(odd, value, other)], bits)
        words[first + lane % 2 * WARP + i * (WARP // 2) + lane // 2] = cute.select(odd, low, high)


def _widened(word: Any) -> list[Any]:
    """Four e4m3 as two pairs of f16."""
    return [cute.Scalar(each) for each in arch.instruction("unpack.quad", word, results=[i32, i32], atom="e4m3")]


def _times(a: Sequence[Any], b: Sequence[Any], sums: Sequence[Any], atom: str) -> list[Any]:
    given = arch.instruction("mma.sync", *a, *b, *sums, results=[f32] * 4, atom=f"mma.{atom}")
    return [cute.Scalar(value) for value in given]
