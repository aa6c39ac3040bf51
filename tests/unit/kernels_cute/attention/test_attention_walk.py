"""The tiles of attention for sm_90a; test_attention.py beside it runs the kernel that walks them."""

from __future__ import annotations

from typing import Any

import pytest

from kernels_cute.attention.attention import attention
from kernels_cute.attention.attention_walk import REGISTERS, Tiles
from toolchain.errors import UsageError


@pytest.mark.parametrize("tiles", [Tiles(), Tiles(head=128, consumers=3, keys=16, stages=3, blocks=1)])
def test_the_shared_memory_is_what_the_kernel_takes(tiles: Tiles) -> None:
    assert tiles.shared_bytes == attention("bf16", tiles).shared_bytes


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"head": 96}, "a head of 96 elements"),
        ({"head": 192}, "a head of 192 elements"),
        ({"keys": 24}, "a tile of 24 keys is no tile of wgmma"),
        ({"keys": 272}, "a tile of 272 keys"),
        ({"in_turns": True, "ahead": True}, "in turns if there are several"),
        ({"in_turns": True, "consumers": 2}, "in turns if there are several"),
        ({"keys": 256, "stages": 4, "blocks": 1}, "takes 278712 bytes of shared memory, and a block has 232448 where"),
        ({"stages": 3}, "takes 65688 bytes of shared memory, and a block has 57344 where a multiprocessor runs 4"),
    ],
)
def test_tiles_that_do_not_fit_are_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Tiles(**fields)


@pytest.mark.parametrize("tiles", [Tiles(), Tiles(consumers=2, keys=128, blocks=1), Tiles(head=128, blocks=2)])
def test_registers_go_from_the_threads_that_load_to_those_that_compute(tiles: Tiles) -> None:
    loads, computes = tiles.registers
    assert (tiles.rows, tiles.threads) == (64 * tiles.consumers, 128 * (1 + tiles.consumers))
    assert loads < computes <= 240 and computes % 8 == 0
    assert 128 * tiles.blocks * (loads + tiles.consumers * computes) <= REGISTERS
