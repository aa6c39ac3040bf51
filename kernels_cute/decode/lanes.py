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


def floats(words: Sequence[Any]) -> list[Any]:
    """Registers of two bf16 as f32, where they are used: a load is waited for where its result is changed."""
    pairs = [arch.instruction("unpack.pair", word, results=[f32, f32], atom="bf16") for word in words]
    return [cute.Scalar(value) for pair in pairs for value in pair]


def chunks_where(condition: Any, tensor: Any, numbers: Sequence[Any], each: int = CHUNK // 2) -> list[list[Any]]:
    """Chunks of `each` registers; zeros in lanes where a condition does not hold, which read nothing."""
    held = cute.make_fragment(each * len(numbers), "i32")
    cute.fill(held, cute.scalar(0, i32))
    with cute.when(condition):  # nothing but loads, so that the warp is not divided
        for i, number in enumerate(numbers):
            for j, word in enumerate(raw(tensor, number, 2 * each)):
                held[i * each + j] = word
    return [[held[i * each + j] for j in range(each)] for i in range(len(numbers))]


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """The sum of products, in two chains."""
    sums = [x * y for x, y in zip(a[:2], b[:2], strict=True)]
    for i in range(2, len(a)):
        sums[i % 2] = a[i].fma(b[i], sums[i % 2])
    return total(sums)


def across(values: Sequence[Any], *masks: int) -> list[Any]:
    """Sums over the lanes whose numbers differ in these bits, side by side."""
    values = list(values)
    for mask in masks:
        values = [value + other for value, other in zip(values, [exchange(one, mask) for one in values], strict=True)]
    return values


class Across:
    """Sums over all lanes, added up in steps between other instructions, for whose results a step need not wait."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values, self._masks = list(values), [16, 8, 4, 2, 1]

    def step(self) -> None:
        """One more, if one is left."""
        if self._masks:
            self._values = across(self._values, self._masks.pop(0))

    def made(self) -> list[Any]:
        """The sums."""
        while self._masks:
            self.step()
        return self._values


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


def raw(tensor: Any, number: Any, count: int) -> list[Any]:
    """`count` bf16 that lie side by side, from number * count on, as registers of two."""
    one = cute.make_tiled_copy(cute.CopyAtom(f"universal.b{count * 16}", 16), Layout(1), Layout(count))
    held = cute.make_fragment(count, "bf16")
    cute.copy(one, cute.partition(one, "S", cute.local_tile(tensor, (count,), (number,)), 0), held)
    words = cute.registers(held)
    return [words[i] for i in range(count // 2)]


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
