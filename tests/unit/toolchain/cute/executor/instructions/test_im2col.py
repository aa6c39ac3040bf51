"""Copies in im2col mode: a convolution by them against numpy, of the IR and of its PTX; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.executor import Finding, ImageMap, TensorMap, run
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

IMAGES, CHANNELS, PIXELS, FILTER = (2, 5, 6, 8), 4, 16, 3  # (N, H, W, C); two copies have all channels
BLOCKS = 2 * 5 * 6 // PIXELS + 1  # the last one reaches beyond the images
Array = np.ndarray[Any, Any]


def columns(y: int = 0, x: int = 0, *, channel: int = 0, first: tuple[int, int] | None = None) -> cute.Kernel:
    """A block's pixels of filter element (y, x), of 4 channels: `columns(images, out)`, out (pixels, channels)."""

    @cute.kernel(cute.TensorMap(), cute.Array("f32"), threads=32)
    def made(images: Any, out: Any) -> None:
        thread = arch.thread_idx()[0]
        tile = cute.shared_tensor("f32", Layout((PIXELS, CHANNELS), (CHANNELS, 1)))
        full = Barriers(1, 1)
        pixel = arch.block_idx()[0] * PIXELS
        image, line, column = pixel // 30, pixel // 6 % 5 - 1, pixel % 6 - 1
        if first is not None:
            line, column = (cute.scalar(number, "i32") for number in first)
        with cute.when(cute.same(thread, 0)):
            full.init()
            arch.instruction("fence.proxy_async")
            full.expect(0, PIXELS * CHANNELS * 4)
            place = (cute.address(tile), images, full.at(0), channel, column, line, image, x, y)
            arch.instruction("copy.tma_load_im2col", *place)
        arch.instruction("warp_sync")
        full.wait(0)
        for channel_ in range(CHANNELS):
            with cute.when(cute.less(thread, PIXELS)):
                out[pixel + thread, channel_] = tile[thread, channel_]

    return made


def map_of(images: Array, **other: Any) -> ImageMap:
    return ImageMap(images, (-1, -1), (-1, -1), CHANNELS, PIXELS, **other)


@pytest.mark.parametrize("ptx", [False, True])
def test_a_convolution(ptx: bool) -> None:
    """3 x 3, padded by 1, as in a convolution that keeps the size: each filter element multiplies one im2col copy."""
    rng = np.random.default_rng(0)
    images, weights = rng.integers(-3, 4, IMAGES).astype(np.float32), rng.integers(-3, 4, (FILTER, FILTER, 8))
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    found, wanted = np.zeros((BLOCKS * PIXELS,)), np.zeros(IMAGES[:3])
    places = [(y, x) for y in range(FILTER) for x in range(FILTER)]
    for y, x in [(0, 0), (1, 2), (2, 1)] if ptx else places:
        wanted += padded[:, y : y + 5, x : x + 6] @ weights[y, x]
        for channel in (0, CHANNELS):
            out = np.full((BLOCKS * PIXELS, CHANNELS), np.nan, np.float32)
            kernel = columns(y, x, channel=channel)
            run(kernel, (map_of(images), out), (BLOCKS, 1, 1), ptx=kernel.ptx("sm_90a") if ptx else "")
            found += out @ weights[y, x, channel : channel + CHANNELS]
    np.testing.assert_array_equal(found[:60].reshape(IMAGES[:3]), wanted)
    assert (found[60:] == 0).all()  # beyond the last image


def test_every_second_pixel() -> None:
    images = np.arange(np.prod(IMAGES), dtype=np.float32).reshape(IMAGES)
    out = np.zeros((BLOCKS * PIXELS, CHANNELS), np.float32)
    run(columns(1, 1, first=(-1, -1)), (map_of(images, steps=(2, 2)), out))
    taken = images[:, ::2, ::2, :CHANNELS].reshape(-1, CHANNELS)  # 3 x 3 of each image
    np.testing.assert_array_equal(out[:PIXELS], taken[:PIXELS])


@pytest.mark.parametrize(
    ("x", "first", "said"),
    [
        (256, None, "an offset of 256 along dimension 1: it must be 0 to 255"),
        (0, (0, -2), "a first pixel at -2 along dimension 1: the corners are -1 and 4"),
        (0, (4, 0), "a first pixel at 4 along dimension 2: the corners are -1 and 3"),
    ],
)
def test_what_is_wrong_with_a_copy(x: int, first: tuple[int, int] | None, said: str) -> None:
    out = np.zeros((BLOCKS * PIXELS, CHANNELS), np.float32)
    with pytest.raises(Finding, match=said):
        run(columns(0, x, first=first), (map_of(np.zeros(IMAGES, np.float32)), out))


def test_a_map_of_tiles_is_none_of_images() -> None:
    images, out = np.zeros(IMAGES, np.float32), np.zeros((BLOCKS * PIXELS, CHANNELS), np.float32)
    with pytest.raises(Finding, match="a copy of images by a tensor map of tiles"):
        run(columns(), (TensorMap(images, (1, 1, 16, 4)), out))
    with pytest.raises(UsageError, match="the pixel is 12 bytes wide"):
        run(columns(), (ImageMap(images, (-1, -1), (-1, -1), 3, PIXELS), out))
