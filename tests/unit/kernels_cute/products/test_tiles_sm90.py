"""Tiles for sm_90a: what they take, and what is refused."""

from __future__ import annotations

import pytest

from kernels_cute.products.tiles_sm90 import Tiles
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


def test_loads_of_a_tile_of_160_begin_at_multiples_of_64_but_for_one_of_32() -> None:
    tiles = Tiles(64, 160, 64, 2)
    assert (tiles.row, tiles.pieces) == (32, 3)
    assert tiles.bytes == (64 + 160) * 128
    assert tiles.stage_bytes == (64 + 192) * 128
    for column in range(4):
        parts = [tiles.place(column, part) for part in range(5)]
        assert sorted(parts) == [*range(5 * column, 5 * column + 5)]
        assert [part % 2 for part in parts[0:4:2]] == [0, 0]
        assert parts[1] == parts[0] + 1 and parts[3] == parts[2] + 1
    assert [Tiles(64, 192, 64, 2).place(2, part) for part in range(3)] == [6, 7, 8]


@pytest.mark.parametrize("early", [-1, 3])
def test_no_more_stages_are_early_than_there_are(early: int) -> None:
    with pytest.raises(UsageError, match=f"{early} stages early"):
        Tiles(64, 64, 64, 2, early=early)
    assert Tiles(64, 64, 64, 2, early=2).early == 2


def test_a_pair_of_blocks_walks_whole_pairs_of_rows() -> None:
    for group, paired in ((0, False), (3, True)):
        with pytest.raises(UsageError, match=f"{group} rows of tiles together"):
            Tiles(64, 64, 64, 2, group=group, paired=paired)
    assert Tiles(64, 64, 64, 2, group=3).group == 3


def test_the_threads_that_load_keep_what_registers_those_that_compute_leave() -> None:
    assert Tiles(64, 64, 64, 2).loading_registers == Tiles(128, 64, 64, 2).loading_registers == 40
    assert Tiles(192, 192, 64, 4, registers=160).loading_registers == 24


@pytest.mark.parametrize(("n", "width"), [(0, 2), (80, 2), (288, 2), (160, 1)])
def test_columns_that_no_tile_has_are_refused(n: int, width: int) -> None:
    with pytest.raises(UsageError, match=f"a tile of 64 x {n} x "):
        Tiles(64, n, 128 // width, 2, width=width)
