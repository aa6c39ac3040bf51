"""Products that are shared out to ranks: their sums, and what is said of them with a mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels_cute.products.tiles_sm90 import Tiles
from kernels_cute.ranks.meeting import Pieces, Waits
from tests.unit.kernels_cute.ranks.products import SMALL, Model, Scattered, f64, made
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute import dsl as cute
from toolchain.cute.executor import Deadlock, Finding, MissingWait, Race

ARCH = "cute_nvgpu.arch."
APART = Tiles(64, 64, 64, 2, 1, apart=True)


@pytest.fixture(scope="module")
def kernel() -> cute.Kernel:
    return made("matmul_reduce_scatter")


@pytest.mark.parametrize(
    ("ranks", "shape", "blocks", "tiles"),
    [
        (2, (70, 72, 72), 3, SMALL),  # remainders, and blocks that have no tile of their own
        (3, (40, 72, 72), 2, SMALL),
        (2, (64, 136, 72), 2, APART),  # each warpgroup tells the others for itself
    ],
)
def test_each_rank_gets_its_piece_of_the_sum(
    ranks: int, shape: tuple[int, int, int], blocks: int, tiles: Tiles, kernel: cute.Kernel
) -> None:
    given = Scattered.of(ranks, *shape, blocks)
    given.run(kernel if tiles == SMALL else made("matmul_reduce_scatter", tiles), tiles)
    for rank, out in enumerate(given.out):
        wanted = given.wanted(rank)
        assert np.abs(f64(out) - wanted).max() <= 2**-8 * np.abs(wanted).max()
        others = [given.channel.flags[rank, s] for s in range(ranks) if s != rank]
        count = 2 * 2
        assert all((flags == count).all() for flags in others)  # what it met, in two launches
        assert (given.channel.state[rank] == [count, 0]).all()


def test_counts_go_on_from_any_number() -> None:
    given = Scattered.of(2, 64, 72, 72, 1)
    given.channel.flags[0, 1] = given.channel.flags[1, 0] = 2**31 - 2
    for state in given.channel.state:
        state[:, 0] = 2**31 - 2
    given.run(made("matmul_reduce_scatter"))
    assert given.channel.state[0][0, 0] == 2**31 - 2 + 4 - 2**32


@pytest.mark.parametrize(
    ("name", "which", "wanted"),
    [
        ("flag.add", 0, (Deadlock,)),  # the launch has begun
        ("flag.add", 1, (Deadlock,)),  # all for the others is stored
        ("copy.bulk_wait_group_all", 0, (Race, MissingWait)),  # before that is told
    ],
)
def test_a_missing_operation_is_named(kernel: cute.Kernel, name: str, which: int, wanted: tuple[type[Finding]]) -> None:
    with pytest.raises(wanted):
        Scattered.of(2, 64, 136, 72, 2).run(without(kernel, ARCH + name, which))


@pytest.mark.parametrize(("which", "said"), [(0, r"reads arguments\[3\]"), (1, r"writes arguments\[3\]")])
def test_a_missing_wait_is_a_race(which: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one is for what others have stored, the second until they have read what was there before."""
    calls, wait = list[int](), Waits.wait

    def once_less(self: Waits, *where: Any) -> None:
        calls.append(len(calls))
        if (calls[-1] > 0) != (which > 0):
            wait(self, *where)

    monkeypatch.setattr(Waits, "wait", once_less)
    with pytest.raises(Race, match=said):
        Scattered.of(2, 64, 72, 72, 2).run(made("matmul_reduce_scatter"))


def test_a_part_of_the_wrong_rank_is_not_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pieces, "first_other", property(lambda self: self.rank))
    given = Scattered.of(2, 64, 72, 72, 1)
    given.run(made("matmul_reduce_scatter"))
    assert not np.abs(f64(given.out[0]) - given.wanted(0)).max() <= 1


def test_a_block_tells_the_block_that_waits_for_its_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_the_same_number(self: Pieces, rank: Any) -> Any:
        del rank
        return self.block

    monkeypatch.setattr(Pieces, "receiver", of_the_same_number)
    with pytest.raises((Race, MissingWait)):
        Scattered.of(2, 64, 200, 72, 3).run(made("matmul_reduce_scatter"))


@pytest.mark.parametrize("ranks", [2, 3])
def test_all_ranks_get_the_residual_stream_and_its_squares(ranks: int) -> None:
    given = Model.of(ranks, 64, 72, 72, 2)
    start = given.stream[0].copy()
    given.run(made("linear_to_ranks"), made("rms_linear_of_ranks"))
    wanted = given.wanted(start)
    for stream, squares in zip(given.stream, given.squares, strict=True):
        assert (stream.view(np.uint16) == given.stream[0].view(np.uint16)).all()
        assert np.abs(f64(stream) - wanted).max() <= 2**-7 * np.abs(wanted).max()
        sums = (f64(stream) ** 2).sum(axis=1)
        assert np.abs(squares.sum(axis=0) / sums - 1).max() < 2**-8
