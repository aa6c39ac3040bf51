"""The rules of descriptors of images: each is broken once."""

from __future__ import annotations

from typing import Any

import pytest

from toolchain.contract.im2col import Im2colDescriptor
from toolchain.errors import UsageError

FITS: dict[str, Any] = {
    "dtype": "f16", "address": 4096, "sizes": (64, 9, 7, 2), "strides": (128, 1152, 8064), "lower": (-1, -2),
    "upper": (1, 2), "channels": 32, "pixels": 128,
}  # fmt: skip


def test_the_last_pixels_and_the_steps() -> None:
    made = Im2colDescriptor(**FITS, element_strides=(1, 2, 3, 1))
    assert (made.last, made.steps) == ((9, 8), (2, 3))
    assert Im2colDescriptor(**FITS).steps == (1, 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dtype": "f12"}, "dtype 'f12'"),
        ({"sizes": (64, 9)}, "rank 2: it must be 3 to 5"),
        ({"lower": (-1,)}, "1 numbers of the lower corner for rank 4, which has 2"),
        ({"element_strides": (1, 1)}, "2 element strides for rank 4"),
        ({"element_strides": (1, 9, 1, 1)}, "element stride 9 of dimension 1: it must be 1 to 8"),
        ({"strides": (128, 1152, 8065)}, "stride 8065 of dimension 3"),
        ({"address": 8}, "the address is not a multiple of 16"),
        ({"channels": 257}, "257 channels: it must be 1 to 256"),
        ({"pixels": 1025}, "1025 pixels: it must be 1 to 1024"),
        ({"lower": (-129, 0)}, "-129 of the lower corner, dimension 1: it must be -128 to 127"),
        ({"upper": (1, -9)}, "no pixel between the corners, dimension 2: they lie from -2 to -3"),
        ({"channels": 12}, "the pixel is 24 bytes wide"),
        ({"swizzle": 32}, "the pixel is 64 bytes wide: a swizzle of 32 bytes takes no more"),
    ],
)
def test_a_rule_that_is_broken_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=f"Im2colDescriptor: {said}"):
        Im2colDescriptor(**{**FITS, **changes})
