"""The elements that a copy in im2col mode moves: pixels of images, each at an offset, the channels side by side.

Source: PTX ISA 9.0, "Im2col mode".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ....contract.im2col import CORNER_BITS, Im2colDescriptor


def refused(said: Im2colDescriptor, where: Sequence[int], offsets: Sequence[int]) -> str | None:
    """What is wrong with a copy's coordinates and offsets."""
    if len(where) != len(said.sizes):
        return f"{len(where)} coordinates for a tensor map of rank {len(said.sizes)}"
    most = 2 ** (CORNER_BITS // len(said.lower))
    for dim, offset in enumerate(offsets, 1):
        if not 0 <= offset < most:
            return f"an offset of {offset} along dimension {dim}: it must be 0 to {most - 1}"
    for dim, (at, first, last) in enumerate(zip(where[1:-1], said.lower, said.last, strict=True), 1):
        if not first <= at <= last:
            return f"a first pixel at {at} along dimension {dim}: the corners are {first} and {last}"
    return None


def columns(
    said: Im2colDescriptor, where: Sequence[int], offsets: Sequence[int], itemsize: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each element, pixel by pixel, its offset in bytes from the array's first, and whether it lies in the array.

    `where`: the coordinates of the first pixel, from channels to image. `offsets`: of each spatial dimension."""
    channel, *_ = where
    channels = channel + np.arange(said.channels)
    places = np.array(list(_pixels(said, where)), np.int64)  # (pixels, spatial dimensions and the image)
    places[:, :-1] += np.asarray(offsets)
    strides, sizes = np.asarray(said.strides), np.asarray(said.sizes[1:])
    inside = np.all((places >= 0) & (places < sizes), axis=1, keepdims=True)
    within = (channels >= 0) & (channels < said.sizes[0])
    return (places @ strides)[:, None] + channels * itemsize, inside & within


def _pixels(said: Im2colDescriptor, where: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The places of the pixels: along the first spatial dimension, from the last corner on to the next row's first, and
    from the last row to the next image."""
    _, *at, image = where
    for _ in range(said.pixels):
        yield (*at, image)
        for dim, (first, last, step) in enumerate(zip(said.lower, said.last, said.steps, strict=True)):
            at[dim] += step
            if at[dim] <= last:
                break
            at[dim] = first
        else:
            image += 1
