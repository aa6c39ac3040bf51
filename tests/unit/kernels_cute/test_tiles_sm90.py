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
