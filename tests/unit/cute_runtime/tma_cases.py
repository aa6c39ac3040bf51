"""What the copy engine takes and refuses, for the descriptors of both languages."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """`says`: the rule that is broken; empty if the descriptor fits."""

    says: str
    dtype: str = "f32"
    address: int = 256
    sizes: tuple[int, ...] = (64, 64)
    strides: tuple[int, ...] = (256,)
    box: tuple[int, ...] = (32, 8)
    element_strides: tuple[int, ...] = (1, 1)
    swizzle: int = 0
    fill: str = "zero"


CASES = [
    Case("", swizzle=128),
    Case("", element_strides=()),
    Case("", "f16", 0, (64, 2, 3, 4, 5), (128, 256, 512, 1024), (8, 1, 1, 1, 256), (1, 1, 1, 1, 8), 0, "nan"),
    Case("rank 1: it must be 2 to 5", sizes=(64,), strides=(), box=(32,), element_strides=(1,)),
    Case("rank 6: it must be 2 to 5", sizes=(1,) * 6, strides=(16,) * 5, box=(4, 1, 1, 1, 1, 1), element_strides=()),
    Case("2 strides: an array of rank 2 needs 1", strides=(256, 256)),
    Case("1 box sizes for rank 2", box=(32,)),
    Case("1 element strides for rank 2", element_strides=(1,)),
    Case("the address is not a multiple of 16 bytes", address=8),
    Case("size 0 of dimension 1: it must be 1 to 2^32", sizes=(64, 0)),
    Case("size 4294967297 of dimension 1: it must be 1 to 2^32", sizes=(64, 2**32 + 1)),
    Case("box size 257 of dimension 1: it must be 1 to 256", box=(32, 257)),
    Case("element stride 9 of dimension 1: it must be 1 to 8", element_strides=(1, 9)),
    Case("stride 264 of dimension 1: it must be a multiple of 16 bytes below 2^40", strides=(264,)),
    Case("stride 1099511627776 of dimension 1: it must be a multiple of 16 bytes below 2^40", strides=(2**40,)),
    Case("the box is 24 bytes wide: it must be a multiple of 16", "f16", box=(12, 8)),
    Case("the box is 64 bytes wide: a swizzle of 32 bytes takes no more than that", box=(16, 8), swizzle=32),
    Case("only elements of a floating-point type can be filled with NaN", "u8", fill="nan"),
]
