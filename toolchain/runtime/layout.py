"""The layout of an array in memory: dtype, shape and strides. Equal layouts are the same object."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ..contract.entry import ALIGNMENT
from ..contract.op import ITEMSIZE
from ..errors import UsageError

NUMPY: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}
_NAMES = {dtype: name for name, dtype in NUMPY.items()}


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Our name of a numpy dtype. Raises UsageError for a dtype that no entry supports."""
    if dtype not in _NAMES:
        raise UsageError(
            f"a buffer cannot hold numpy's {dtype}: it can be {', '.join(NUMPY)}",
            hint="convert the array first, for example with .astype(np.float32)",
        )
    return _NAMES[dtype]


@dataclass(frozen=True, eq=False, slots=True)
class Layout:
    """Equal layouts are the same object (see `layout`), so they are compared and hashed by identity.

    `strides`: in elements. `aligned`: the address and the outer strides are multiples of 16 bytes.
    `aligned_contiguous`: the address is, and there are no gaps between elements. `span`: bytes from the first element
    to the end of the last.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    aligned: bool
    aligned_contiguous: bool
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
        """True if two indices may refer to the same element; such an array cannot be an output."""
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
    """The Layout object with these properties. If the last dimension has at most one element, its stride becomes 1, as
    entries require; no element is reached by it. Raises UsageError for a negative size or stride."""
    if any(number < 0 for number in (*shape, *strides)):
        raise UsageError(f"shape {list(shape)} and strides {list(strides)}: sizes and strides must not be negative")
    itemsize = ITEMSIZE[dtype]
    if shape and shape[-1] <= 1:
        strides = (*strides[:-1], 1)
    aligned = address_aligned and all(stride * itemsize % ALIGNMENT == 0 for stride in strides[:-1])
    aligned_contiguous = address_aligned and _contiguous(shape, strides)
    empty = 0 in shape
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return Layout(dtype, shape, strides, aligned, aligned_contiguous, itemsize, 0 if empty else (reach + 1) * itemsize)


class Chunk(NamedTuple):
    """A 2D copy: `rows` runs of `width` bytes, `pitch` bytes apart, from byte `offset` of the array on. In a contiguous
    copy they begin at byte `at`."""

    at: int
    offset: int
    rows: int
    pitch: int
    width: int


def chunks(of: Layout, max_pitch: int = 2**31 - 1) -> Iterator[Chunk]:
    """The smallest number of 2D copies that cover the layout, in row-major order."""
    if of.size == 0:
        return
    merged: list[
        tuple[int, int]
    ] = []  # (size, byte stride), outermost first; adjacent contiguous dimensions are merged
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
