"""Operations of a whole warp on vectors and on tiles of 8 rows, of which the decode step is made.

A warp has 64 columns. Lane `l` is at their chunk `l % 8`, 8 columns wide, and in the group `l // 8`; the pair of
columns that is its own has the number `4 * (l % 8) + 2 * (l // 16) + l // 8 % 2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout

CHUNK = 8  # columns of a lane
ROWS = 8  # of a tile
COLUMNS = 64  # of a warp
WARP = 32


def vector(tensor: Any, number: Any, count: int) -> list[Any]:
    """`count` elements that lie side by side, from number * count on."""
    bits = cute.BITS[tensor.dtype]
    one = cute.make_tiled_copy(cute.CopyAtom(f"universal.b{count * bits}", bits), Layout(1), Layout(count))
    held = cute.make_fragment(count, tensor.dtype)
    cute.copy(one, cute.partition(one, "S", cute.local_tile(tensor, (count,), (number,)), 0), held)
    return [held[i] for i in range(count)]


def put(tensor: Any, number: Any, values: Sequence[Any]) -> None:
    """Writes values that lie side by side, as `vector` reads them."""
    bits, count = cute.BITS[tensor.dtype], len(values)
    one = cute.make_tiled_copy(cute.CopyAtom(f"universal.b{count * bits}", bits), Layout(1), Layout(count))
    held = cute.make_fragment(count, tensor.dtype)
    for i, value in enumerate(values):
        held[i] = value
    cute.copy(one, held, cute.partition(one, "D", cute.local_tile(tensor, (count,), (number,)), 0))


def floats(tensor: Any, number: Any, where: Any = None) -> list[Any]:
    """A chunk of bf16 as f32; zeros in lanes where a condition does not hold, which read nothing."""
    words = _raw(tensor, number) if where is None else _raw_where(where, tensor, number)
    pairs = [arch.instruction("unpack.pair", word, results=[f32, f32]) for word in words]
    return [cute.Scalar(value) for pair in pairs for value in pair]


def _raw_where(condition: Any, tensor: Any, number: Any) -> list[Any]:
    held = cute.make_fragment(CHUNK // 2, "i32")
    cute.fill(held, cute.scalar(0, i32))
    with cute.when(condition):  # nothing but loads, so that the warp is not divided
        for i, word in enumerate(_raw(tensor, number)):
            held[i] = word
    return [held[i] for i in range(CHUNK // 2)]


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """The sum of products, in two chains."""
    sums = [x * y for x, y in zip(a[:2], b[:2], strict=True)]
    for i in range(2, len(a)):
        sums[i % 2] = a[i].fma(b[i], sums[i % 2])
    return total(sums)


def across(value: Any, *masks: int) -> Any:
    """The sum over the lanes whose numbers differ in these bits."""
    for mask in masks:
        value = value + exchange(value, mask)
    return value


def greatest(value: Any, *masks: int) -> Any:
    """The maximum over the lanes whose numbers differ in these bits."""
    for mask in masks:
        value = value.maximum(exchange(value, mask))
    return value


def exchange(value: Any, mask: int) -> Any:
    """The value of the lane whose number differs in a bit."""
    return cute.Scalar(arch.instruction("shuffle.xor", value, results=[value.type], n=mask)[0])


def of_lane(value: Any, lane: Any) -> Any:
    """The value of a lane."""
    return cute.Scalar(arch.instruction("shuffle.idx", value, lane, results=[value.type])[0])


def fold(values: list[Any], lane: Any, masks: Sequence[int]) -> list[Any]:
    """Sums over lanes that differ in some bits. With each bit half of the values stay, the upper half where it is
    set."""
    for mask in masks:
        upper, half = cute.same(lane // mask % 2, 1), len(values) // 2
        kept = [cute.select(upper, high, low) for low, high in zip(values[:half], values[half:], strict=True)]
        given = [cute.select(upper, low, high) for low, high in zip(values[:half], values[half:], strict=True)]
        values = [mine + exchange(other, mask) for mine, other in zip(kept, given, strict=True)]
    return values


def pair_of(lane: Any) -> Any:
    """The number of the lane's own pair of columns."""
    return lane % 8 * 4 + lane // 16 * 2 + lane // 8 % 2


# Registers of B: for the columns that a lane's row reads first, and for the others.
Operand = tuple[list[Any], list[Any]]


def split(pair: Sequence[Any]) -> tuple[Any, Any]:
    """Two f32 as two pairs of bf16 that add up to them, up to 2^-17: what is rounded off is the second pair."""
    high = cute.Scalar(arch.instruction("convert.pair", *pair, results=[i32], atom="bf16")[0])
    rounded = [cute.Scalar(value) for value in arch.instruction("unpack.pair", high, results=[f32, f32])]
    rest = [value - near for value, near in zip(pair, rounded, strict=True)]
    return high, cute.Scalar(arch.instruction("convert.pair", *rest, results=[i32], atom="bf16")[0])


def operand(words: Any, first: Any, lane: Any) -> Operand:
    """x of 64 columns as operand B of `tile_times`. `words`: 32 pairs from number `first` on, behind them what is
    rounded off. Columns 0 and 1 of B are these two for rows with even numbers; 2 and 3 are for the others, which read
    the second half of their columns first."""
    column = lane // 4
    half, low = column // 2 % 2, column % 2
    place = first // 4 + low * 8 + lane % 4
    return vector(words, place + half * 4, 4), vector(words, place + (1 - half) * 4, 4)


def tile_times(tensor: Any, firsts: Sequence[Any], stride: int, lane: Any, x: Operand) -> list[Any]:
    """One or two tiles of 8 rows, 64 columns each, times x, by mma.sync: for each tile the sum of row `lane // 4`,
    which only the lanes of `has_row` have. `firsts`: the tiles' first chunks; `stride`: chunks from row to row.

    A lane reads 8 columns of its row at once. Rows with odd numbers read their halves the other way round, so that
    lanes that read at one time find their values in different banks."""
    row, quarter = lane // 4, lane % 4
    odd = row % 2
    read = [
        [_raw(tensor, first + row * stride + half + quarter) for half in (odd * 4, (1 - odd) * 4)] for first in firsts
    ]
    none = cute.scalar(0, i32)
    sums = list[list[Any]]()
    for half in range(2):
        made = [cute.scalar(0.0)] * 4
        for part in (0, 2):
            a = [read[tile][half][part + i] if tile < len(firsts) else none for i in range(2) for tile in range(2)]
            b = x[half][part : part + 2]
            given = arch.instruction("mma.sync", *a, *b, *made, results=[f32] * 4, atom="mma.m16n8k16.f32.bf16")
            made = [cute.Scalar(value) for value in given]
        sums.append(made)
    return [total([each[2 * tile + i] for each in sums for i in range(2)]) for tile in range(len(firsts))]


def has_row(lane: Any) -> Any:
    """True in the lanes that have the sum of row `lane // 4`."""
    return cute.same(lane % 4, lane // 4 % 2)


def _raw(tensor: Any, number: Any) -> list[Any]:
    """A chunk of bf16 as 4 registers."""
    one = cute.make_tiled_copy(cute.CopyAtom("universal.b128", 16), Layout(1), Layout(CHUNK))
    held = cute.make_fragment(CHUNK, "bf16")
    cute.copy(one, cute.partition(one, "S", cute.local_tile(tensor, (CHUNK,), (number,)), 0), held)
    words = cute.registers(held)
    return [words[i] for i in range(CHUNK // 2)]


def spread(pair: Sequence[Any], lane: Any) -> list[Any]:
    """The lane's chunk, of which each lane has its own pair."""
    return [of_lane(pair[i % 2], lane % 8 + i // 2 % 2 * 8 + i // 4 * 16) for i in range(CHUNK)]


def gelu(value: Any) -> Any:
    """By tanh, as GPT-2 has it."""
    inner = value * (value * value).fma(0.7978845608028654 * 0.044715, 0.7978845608028654)
    half = value * 0.5
    return half.fma(arch.tanh(inner), half)


def total(values: Sequence[Any]) -> Any:
    """A sum in pairs, so that few additions wait for each other."""
    values = list(values)
    while len(values) > 1:
        pairs = [a + b for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]
