"""Im2colDescriptor: images, for a copy engine that reads the pixels a convolution multiplies one filter element with.

The rules are those of cuTensorMapEncodeIm2col in the CUDA driver API's manual; PTX ISA 9.0, "Im2col mode", says what a
copy moves.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError
from .tma import refused_names, refused_numbers, refused_width

CORNER_BITS = 16  # of all numbers of a corner together


@dataclass(frozen=True)
class Im2colDescriptor:
    """Images of 1 to 3 spatial dimensions in a GPU's memory. Dimensions begin with the contiguous one: channels, then
    width, height, depth, and last the image's number.

    `address`, `strides` (bytes, of all but the channels), `swizzle`, `l2_promotion`, `fill`: as of a TMADescriptor.
    `sizes`: elements, 3 to 5 dimensions. `lower`, `upper`: of each spatial dimension where the pixels begin that may
    come first, as a place, and where they end, as a distance from the last one. `channels`: of a pixel that a copy
    moves, 1 to 256. `pixels`: that a copy moves, 1 to 1024. `element_strides`: 1 to 8, of all dimensions; a copy steps
    so far from pixel to pixel; empty: all 1.

    Raises UsageError that names the first rule which is broken.
    """

    dtype: str
    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int
    element_strides: tuple[int, ...] = ()
    swizzle: int = 0
    l2_promotion: int = 0
    fill: str = "zero"

    def __post_init__(self) -> None:
        if why := self._refused():
            raise UsageError(f"Im2colDescriptor: {why}")

    @property
    def steps(self) -> tuple[int, ...]:
        """From pixel to pixel, of each spatial dimension."""
        return self.element_strides[1:-1] or (1,) * len(self.lower)

    @property
    def last(self) -> tuple[int, ...]:
        """The last place of each spatial dimension from which a pixel may be taken, before the offset."""
        return tuple(size - 1 + up for size, up in zip(self.sizes[1:-1], self.upper, strict=True))

    def _refused(self) -> str | None:
        limits = (("size", self.sizes, 2**32, "2^32"), ("element stride", self.element_strides, 8, "8"))
        return (
            refused_names(self) or self._refused_lengths() or refused_numbers(self, limits) or self._refused_box()
            or refused_width(self, self.channels, "pixel")
        )  # fmt: skip

    def _refused_lengths(self) -> str | None:
        rank = len(self.sizes)
        if not 3 <= rank <= 5:
            return f"rank {rank}: it must be 3 to 5"
        for what, numbers, count in (
            ("strides", self.strides, rank - 1), ("numbers of the lower corner", self.lower, rank - 2),
            ("numbers of the upper corner", self.upper, rank - 2),
        ):  # fmt: skip
            if len(numbers) != count:
                return f"{len(numbers)} {what} for rank {rank}, which has {count}"
        if self.element_strides and len(self.element_strides) != rank:
            return f"{len(self.element_strides)} element strides for rank {rank}"
        return None

    def _refused_box(self) -> str | None:
        for what, number, most in (("channels", self.channels, 256), ("pixels", self.pixels, 1024)):
            if not 1 <= number <= most:
                return f"{number} {what}: it must be 1 to {most}"
        limit = 2 ** (CORNER_BITS // len(self.lower) - 1)
        for what, corner in (("lower", self.lower), ("upper", self.upper)):
            for dim, number in enumerate(corner, 1):
                if not -limit <= number < limit:
                    return f"{number} of the {what} corner, dimension {dim}: it must be {-limit} to {limit - 1}"
        for dim, (first, last) in enumerate(zip(self.lower, self.last, strict=True), 1):
            if last < first:
                return f"no pixel between the corners, dimension {dim}: they lie from {first} to {last}"
        return None
