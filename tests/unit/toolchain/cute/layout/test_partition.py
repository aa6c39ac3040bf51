from __future__ import annotations

import pytest

from toolchain.cute.layout import Layout, LayoutError, local_partition, local_tile, size

MATRIX = Layout.parse("(8,16):(16,1)")


def test_a_tile_begins_at_its_offset() -> None:
    tile, offset = local_tile(MATRIX, (4, 8), (1, 1))
    assert str(tile) == "(4,8):(16,1)"
    assert offset == 4 * 16 + 8


def test_an_open_coordinate_keeps_the_tiles_of_that_mode() -> None:
    tiles, offset = local_tile(MATRIX, (4, 8), (1, None))
    assert str(tiles) == "(4,8,2):(16,1,8)"
    assert offset == 4 * 16


def test_a_number_names_a_tile_as_its_coordinate_does() -> None:
    assert local_tile(MATRIX, (4, 8), 1) == local_tile(MATRIX, (4, 8), (1, 0))


@pytest.mark.parametrize("threads", ["(4,8):(8,1)", "(4,8):(1,4)"])
def test_the_parts_of_all_threads_are_the_whole(threads: str) -> None:
    layout = Layout.parse(threads)
    reached: list[int] = []
    for thread in range(size(layout)):
        part, offset = local_partition(MATRIX, layout, thread)
        reached += [offset + part(i) for i in range(size(part))]
    assert sorted(reached) == list(range(size(MATRIX)))


def test_neighbouring_threads_of_a_row_major_block_take_neighbouring_elements() -> None:
    offsets = [local_partition(MATRIX, Layout.parse("(4,8):(8,1)"), thread)[1] for thread in range(8)]
    assert offsets == list(range(8))


def test_a_thread_that_is_not_there_is_refused() -> None:
    with pytest.raises(LayoutError, match="has no thread 32"):
        local_partition(MATRIX, Layout.parse("(4,8)"), 32)
