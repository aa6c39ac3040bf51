"""Products of rows that each rank sends to all: what they are, and what is said of them with a mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels_cute.products.tiles_sm90 import Tiles
from kernels_cute.ranks.meeting import Waits
from tests.unit.kernels_cute.ranks.products import SMALL, Multiplied, f64, made
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute import dsl as cute
from toolchain.cute.executor import Deadlock, Finding, MissingFence, MissingWait, Race

ARCH = "cute_nvgpu.arch."
APART = Tiles(64, 64, 64, 2, 1, apart=True)


@pytest.fixture(scope="module")
def kernel() -> cute.Kernel:
    return made("all_gather_matmul")


@pytest.mark.parametrize(
    ("ranks", "shape", "blocks", "tiles"),
    [
        (2, (70, 72, 136), 3, SMALL),  # remainders
        (3, (40, 72, 72), 2, SMALL),
        (2, (64, 72, 72), 3, APART),  # a block without a tile, which tells the others all the same
    ],
)
def test_each_rank_multiplies_the_rows_of_all(
    ranks: int, shape: tuple[int, int, int], blocks: int, tiles: Tiles, kernel: cute.Kernel
) -> None:
    given = Multiplied.of(ranks, *shape, blocks)
    given.run(kernel if tiles == SMALL else made("all_gather_matmul", tiles), tiles)
    for rank, out in enumerate(given.out):
        wanted = np.stack([f64(x) @ f64(given.weight[rank]) for x in given.x])
        assert np.abs(f64(out) - wanted).max() <= 2**-8 * np.abs(wanted).max()
        assert all(given.counts[rank, s] == 2 * 2 * blocks for s in range(ranks) if s != rank)
        assert (given.turns[rank] == [2 * 2, 0]).all()


@pytest.mark.parametrize(
    ("name", "which", "wanted"),
    [
        ("flag.add", 0, (Deadlock,)),  # the launch has begun
        ("flag.add", 1, (Deadlock,)),  # its rows are stored
        ("copy.bulk_wait_group_all", 0, (Race, MissingWait)),  # before that is told
        ("fence.proxy_async_global", 0, (MissingFence,)),  # TMA reads what arrived
        ("copy.bulk_wait_group", 0, (Race, MissingWait)),  # a buffer is loaded anew
    ],
)
def test_a_missing_operation_is_named(kernel: cute.Kernel, name: str, which: int, wanted: tuple[type[Finding]]) -> None:
    with pytest.raises(wanted):
        Multiplied.of(2, 64, 72, 264, 1).run(without(kernel, ARCH + name, which))


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_wait_is_a_race(which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one is for what others store, the second until they read no more what was there before."""
    calls, wait = list[int](), Waits.wait

    def once_less(self: Waits, *where: Any) -> None:
        calls.append(len(calls))
        if calls[-1] != which:
            wait(self, *where)

    monkeypatch.setattr(Waits, "wait", once_less)
    with pytest.raises(Race):
        Multiplied.of(2, 64, 72, 72, 1).run(made("all_gather_matmul"))
