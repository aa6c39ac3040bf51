"""TMADescriptor: what the copy engine of a GPU from sm_90 on must know of an array, in 128 bytes.

The rules are those of cuTensorMapEncodeTiled in the CUDA driver API's manual. cute_runtime's tma_descriptor.hpp has
them in C++; one table of cases tests both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..errors import UsageError

BYTES, ALIGNED = 128, 64  # bytes of a descriptor, and the multiple that its address in memory must be
# By dtype: bytes of an element, the driver's name, and if it may be filled with NaN.
TYPES: Mapping[str, tuple[int, str, bool]] = {
    "f32": (4, "FLOAT32", True), "tf32": (4, "TFLOAT32", True), "f16": (2, "FLOAT16", True),
    "bf16": (2, "BFLOAT16", True), "f64": (8, "FLOAT64", True), "i32": (4, "INT32", False), "i64": (8, "INT64", False),
    "u32": (4, "UINT32", False), "u64": (8, "UINT64", False), "u16": (2, "UINT16", False), "u8": (1, "UINT8", False),
    "i8": (1, "UINT8", False), "f8E4M3FN": (1, "UINT8", False), "f8E5M2": (1, "UINT8", False),
}  # fmt: skip
SWIZZLES = (0, 32, 64, 128)  # bytes
L2_PROMOTIONS = (0, 64, 128, 256)  # bytes
FILLS = ("zero", "nan")


@dataclass(frozen=True)
class TMADescriptor:
    """An array in a GPU's memory and the box of it that one copy moves. Dimensions begin with the contiguous one.

    `address`: of its first element. `sizes`: elements, 2 to 5 dimensions. `strides`: bytes, of all dimensions but the
    first. `box`: elements, 1 to 256 in each dimension. `element_strides`: 1 to 8; empty: all 1. `swizzle` and
    `l2_promotion`: in bytes, 0 for none. `fill`: what a copy reads outside of the array, "zero" or "nan".

    Raises UsageError that names the first rule which is broken.
    """

    dtype: str
    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    swizzle: int = 0
    l2_promotion: int = 0
    fill: str = "zero"

    def __post_init__(self) -> None:
        if why := self._refused():
            raise UsageError(f"TMADescriptor: {why}")

    def _refused(self) -> str | None:
        limits = (("size", self.sizes, 2**32, "2^32"), ("box size", self.box, 256, "256"),
                  ("element stride", self.element_strides, 8, "8"))  # fmt: skip
        return (
            refused_names(self) or self._refused_lengths() or refused_numbers(self, limits)
            or refused_width(self, self.box[0], "box")
        )  # fmt: skip

    def _refused_lengths(self) -> str | None:
        rank = len(self.sizes)
        if not 2 <= rank <= 5:
            return f"rank {rank}: it must be 2 to 5"
        if len(self.strides) != rank - 1:
            return (
                f"{len(self.strides)} strides: an array of rank {rank} needs {rank - 1}, for all dimensions but the "
                "contiguous one"
            )
        if len(self.box) != rank:
            return f"{len(self.box)} box sizes for rank {rank}"
        if self.element_strides and len(self.element_strides) != rank:
            return f"{len(self.element_strides)} element strides for rank {rank}"
        return None


class Described(Protocol):
    """What descriptors have in common."""

    @property
    def dtype(self) -> str: ...
    @property
    def address(self) -> int: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def swizzle(self) -> int: ...
    @property
    def l2_promotion(self) -> int: ...
    @property
    def fill(self) -> str: ...


def refused_names(of: Described) -> str | None:
    """The first of a descriptor's choices that there is not, and those that there are."""
    for what, value, known in (
        ("dtype", of.dtype, tuple(TYPES)), ("swizzle", of.swizzle, SWIZZLES),
        ("l2_promotion", of.l2_promotion, L2_PROMOTIONS), ("fill", of.fill, FILLS),
    ):  # fmt: skip
        if value not in known:
            return f"{what} {value!r}: it must be one of {', '.join(map(str, known))}"
    return None


def refused_numbers(of: Described, limits: Iterable[tuple[str, Sequence[int], int, str]]) -> str | None:
    """What is wrong with an array's address and strides. `limits`: of other numbers, which begin at 1, their name, the
    largest, and how it is shown."""
    if of.address % 16:
        return "the address is not a multiple of 16 bytes"
    for what, numbers, limit, shown in limits:
        for dim, number in enumerate(numbers):
            if not 1 <= number <= limit:
                return f"{what} {number} of dimension {dim}: it must be 1 to {shown}"
    for dim, stride in enumerate(of.strides, 1):
        if stride % 16 or not 0 <= stride < 2**40:
            return f"stride {stride} of dimension {dim}: it must be a multiple of 16 bytes below 2^40"
    return None


def refused_width(of: Described, elements: int, what: str) -> str | None:
    """What is wrong with the elements that a copy moves side by side, and with what it fills."""
    size, _, is_float = TYPES[of.dtype]
    inner = elements * size
    if inner % 16:
        return f"the {what} is {inner} bytes wide: it must be a multiple of 16"
    if of.swizzle and inner > of.swizzle:
        return f"the {what} is {inner} bytes wide: a swizzle of {of.swizzle} bytes takes no more than that"
    if of.fill == "nan" and not is_float:
        return "only elements of a floating-point type can be filled with NaN"
    return None
