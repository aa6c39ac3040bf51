"""Numbers of 8 and 16 bits in registers of 32: moved, widened and multiplied for attention to a cache in e4m3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.trace import current
from toolchain.cute.layout import Layout

LARGEST, SMALLEST = 448.0, 2.0**-126  # of e4m3; of scales
PRODUCT = "mma.m16n8k16.f32.f16"


def raw(tensor: Any, number: Any, size: int) -> list[Any]:
    """`size` bytes in global memory, from number * size on, as registers."""
    start = cute.address(cute.local_tile(tensor, (size * 8 // cute.BITS[tensor.dtype],), (number,)))
    read = arch.instruction("copy.load_once", start, results=[i32] * (size // 4), n=size)
    return [cute.Scalar(word) for word in read]


def put_raw(tensor: Any, number: Any, word: Any) -> None:
    """Writes four numbers of 8 bits, from number * 4 on."""
    one = cute.make_tiled_copy(cute.CopyAtom("universal.b32", 8), Layout(1), Layout(4))
    held = cute.make_fragment(4, tensor.dtype)
    cute.registers(held)[0] = word
    cute.copy(one, held, cute.partition(one, "D", cute.local_tile(tensor, (4,), (number,)), 0))


def widened(word: Any) -> list[Any]:
    """Four e4m3 as pairs of f16."""
    return [cute.Scalar(each) for each in arch.instruction("unpack.quad", word, results=[i32, i32], atom="e4m3")]


def permuted(a: Any, b: Any, order: int) -> Any:
    return cute.Scalar(arch.instruction("permute", a, b, results=[i32], n=order)[0])


def transposed(word: Any) -> Any:
    """A warp's 8 x 8 numbers of 16 bits."""
    return cute.Scalar(arch.instruction("transpose", word, results=[i32])[0])


def pair(a: Any, b: Any) -> Any:
    """Two f32 rounded to f16."""
    return cute.Scalar(arch.instruction("convert.pair", a, b, results=[i32], atom="f16")[0])


def product(operands: list[Any], sums: list[Any]) -> list[Any]:
    return [
        cute.Scalar(each) for each in arch.instruction("mma.sync", *operands, *sums, results=[f32] * 4, atom=PRODUCT)
    ]


def exp2(value: Any) -> Any:
    return cute.Scalar(arch.instruction("exp2", value, results=[f32])[0])


def magnitude(value: Any) -> Any:
    return value.maximum(value * -1.0)


def largest_or_nan(a: Any, b: Any) -> Any:
    return cute.Scalar(current().insert(arith.MaximumfOp(a.value, b.value)).result)


def scale_of(largest: Any) -> Any:
    """What numbers are divided by that become e4m3, from their largest magnitude."""
    return largest_or_nan(largest / LARGEST, cute.scalar(SMALLEST))


def quad(four: Sequence[Any]) -> Any:
    """Four f32 rounded to e4m3."""
    return cute.Scalar(arch.instruction("convert.quad", *four, results=[i32], atom="e4m3")[0])


def as_float(word: Any) -> Any:
    """The bits of an i32 as an f32."""
    return cute.Scalar(current().insert(arith.BitcastOp(word.value, f32)).result)


def as_int(value: Any) -> Any:
    """The bits of an f32 as an i32."""
    return cute.Scalar(current().insert(arith.BitcastOp(value.value, i32)).result)


def power_of_two(value: Any) -> Any:
    """The power of two below a number that is not negative: from 2^-100 to 2^100."""
    bounded = value.maximum(2.0**-100)
    bounded = cute.select(cute.less(bounded, 2.0**100), bounded, 2.0**100)
    bits = current().insert(arith.BitcastOp(bounded.value, i32)).result
    exponent = current().insert(arith.AndIOp(bits, cute.scalar(0x7F800000, i32).value)).result
    return as_float(cute.Scalar(exponent))
