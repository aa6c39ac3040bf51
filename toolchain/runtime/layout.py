"""How an array lies in memory: dtype, shape and strides, interned so that equal layouts are one object."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ..entry import ALIGNMENT, ITEMSIZE
from ..errors import UsageError

NUMPY: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i32": np.dtype(np.int32),
}
_NAMES = {dtype: name for name, dtype in NUMPY.items()}


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Our name of a numpy dtype. Raises UsageError for one that no entry takes."""
    if dtype not in _NAMES:
        raise UsageError(
            f"a buffer cannot hold numpy's {dtype}: it can be {', '.join(NUMPY)}",
            hint="convert the array first, for example with .astype(np.float32)",
        )
    return _NAMES[dtype]


@dataclass(frozen=True, eq=False, slots=True)
class Layout:
    """Equal layouts are one object (see `layout`), so comparing and hashing is by identity.

    `strides` in elements. `aligned`: the address and the outer strides are multiples of 16 bytes. `dense`: the address
    is, and the elements lie without gaps. `span`: bytes from the first to past the last element.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    aligned: bool
    dense: bool
    itemsize: int
    span: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def contiguous(self) -> bool:
        return _contiguous(self.shape, self.strides)

    @property
    def byte_strides(self) -> tuple[int, ...]:
        return tuple(stride * self.itemsize for stride in self.strides)

    @property
    def overlaps_itself(self) -> bool:
        """Whether two indices may name the same element; such an array cannot be an output."""
        reach = 0  # the largest element offset that the dimensions of smaller stride reach
        steps = sorted((stride, size) for size, stride in zip(self.shape, self.strides, strict=True) if size > 1)
        for stride, size in steps:
            if stride <= reach:
                return self.size > 0
            reach += stride * (size - 1)
        return False

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)} strides {list(self.strides)}"


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    steps = zip(shape, strides, contiguous_strides(shape), strict=True)
    return 0 in shape or all(stride == want for size, stride, want in steps if size > 1)


@functools.lru_cache(maxsize=1 << 16)
def layout(dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], address_aligned: bool) -> Layout:
    """The one Layout of these properties. A last dimension of at most one element gets the unit stride that entries
    want: no element is reached by it. Raises UsageError for a negative size or stride."""
    if any(number < 0 for number in (*shape, *strides)):
        raise UsageError(f"no array of shape {list(shape)} and strides {list(strides)}: none may be negative")
    itemsize = ITEMSIZE[dtype]
    if shape and shape[-1] <= 1:
        strides = (*strides[:-1], 1)
    aligned = address_aligned and all(stride * itemsize % ALIGNMENT == 0 for stride in strides[:-1])
    dense = address_aligned and _contiguous(shape, strides)
    empty = 0 in shape
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return Layout(dtype, shape, strides, aligned, dense, itemsize, 0 if empty else (reach + 1) * itemsize)


class Chunk(NamedTuple):
    """`rows` runs of `width` bytes, `pitch` bytes apart, from byte `offset` on; in a dense copy from byte `at` on."""

    at: int
    offset: int
    rows: int
    pitch: int
    width: int


def chunks(of: Layout, max_pitch: int = 2**31 - 1) -> Iterator[Chunk]:
    """The layout as as few 2D copies as its strides allow, in row-major order."""
    if of.size == 0:
        return
    merged: list[tuple[int, int]] = []  # (size, byte stride), outermost first; adjacent dense dimensions are one
    for size, stride in zip(of.shape, of.byte_strides, strict=True):
        if size == 1:
            continue
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    width = of.itemsize
    if merged and merged[-1][1] == of.itemsize:
        width *= merged.pop()[0]
    rows, pitch = 1, width
    if merged and width <= merged[-1][1] <= max_pitch:
        rows, pitch = merged.pop()
    at = 0
    for index in np.ndindex(*(size for size, _ in merged)):
        yield Chunk(at, sum(i * stride for i, (_, stride) in zip(index, merged, strict=True)), rows, pitch, width)
        at += rows * width
