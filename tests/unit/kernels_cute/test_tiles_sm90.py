"""Tiles for sm_90a: what they take, and what is refused."""

from __future__ import annotations

import pytest

from kernels_cute.tiles_sm90 import Tiles
from toolchain.errors import UsageError


def test_two_that_share_a_tile_have_one_ring_of_parts() -> None:
    together, apart = Tiles(128, 128, 64, 2), Tiles(128, 128, 64, 2, apart=True)
    assert (together.groups, together.rings, together.threads) == (2, 1, 384)
    assert (apart.groups, apart.rings, apart.threads) == (1, 2, 384)
    assert Tiles(64, 128, 64, 2).threads == 256


def test_shared_memory_counts_stages_parts_and_their_barriers() -> None:
    most = Tiles(128, 192, 64, 4, 2, apart=True)
    assert most.stages * most.bytes + 2 * 2 * most.part_bytes == 229376
    with pytest.raises(UsageError, match="bytes of shared memory"):
        Tiles(128, 192, 64, 4, 3, apart=True)


@pytest.mark.parametrize("summed", [32, 128])
def test_squares_are_of_whole_parts_of_a_tile(summed: int) -> None:
    with pytest.raises(UsageError, match=f"squares of {summed} columns"):
        Tiles(64, 192, 64, 2, summed=summed)
    assert Tiles(64, 192, 64, 2, summed=192).summed == 192


@pytest.mark.parametrize(
    ("n", "row", "tail", "pieces"),
    [(192, 64, 0, 3), (200, 40, 8, 4), (160, 40, 32, 3), (144, 72, 16, 3), (96, 24, 32, 2)],
)
def test_columns_are_stored_in_parts_that_lie_in_all_banks(n: int, row: int, tail: int, pieces: int) -> None:
    tiles = Tiles(64, n, 64, 2)
    assert (tiles.row, tiles.tail, tiles.pieces) == (row, tail, pieces)
    assert row == 64 or row // 8 % 2 == 1  # rows of an odd number of 16 bytes
    assert tiles.bytes == (64 + n) * 128
    assert tiles.stage_bytes == (64 + 64 * pieces) * 128


@pytest.mark.parametrize("n", [0, 100, 264])
def test_a_product_of_a_warpgroup_has_some_eights_of_columns(n: int) -> None:
    with pytest.raises(UsageError, match=f"a tile of 64 x {n} x 64"):
        Tiles(64, n, 64, 2)
