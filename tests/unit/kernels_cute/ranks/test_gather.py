"""Products of rows that others have stored: what they wait for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels_cute.products.tiles_sm90 import Tiles
from kernels_cute.ranks.meeting import Waits
from tests.unit.kernels_cute.ranks.products import Model, f64, made
from tests.unit.toolchain.cute.executor.mutate import at_the_end, without
from toolchain.cute import dsl as cute
from toolchain.cute.executor import Deadlock, Finding, MissingFence, MissingWait, Race

ARCH = "cute_nvgpu.arch."


@pytest.fixture(scope="module")
def to() -> cute.Kernel:
    return made("linear_to_ranks")


@pytest.fixture(scope="module")
def of() -> cute.Kernel:
    return made("rms_linear_of_ranks")


def test_rows_of_all_ranks_are_normed_and_multiplied() -> None:
    tiles = Tiles(64, 64, 64, 2, 1, apart=True)
    given = Model.of(2, 64, 136, 72, 3, tiles)
    given.run(made("linear_to_ranks", tiles), made("rms_linear_of_ranks", tiles))
    for rank, out in enumerate(given.out):
        wanted = given.normed(f64(given.stream[0]), rank)
        assert np.abs(f64(out) - wanted).max() <= 2**-7 * np.abs(wanted).max()
        assert given.channel.state[rank][:, 1].sum() == 0


EARLY = Tiles(64, 96, 64, 2, 1, early=2)  # in parts of 32 columns


@pytest.fixture(scope="module")
def early() -> list[cute.Kernel]:
    return [made(op, EARLY) for op in ("linear_to_ranks", "rms_linear_of_ranks")]


def test_weights_may_be_loaded_before_the_launch_before_has_ended(early: list[cute.Kernel]) -> None:
    given = Model.of(2, 64, 136, 200, 2, EARLY)
    start = given.stream[0].copy()
    given.run(early[0], early[1])
    wanted = given.wanted(start)
    for rank, out in enumerate(given.out):
        assert np.abs(f64(given.stream[rank]) - wanted).max() <= 2**-7 * np.abs(wanted).max()
        wanted_out = given.normed(f64(given.stream[0]), rank)
        assert np.abs(f64(out) - wanted_out).max() <= 2**-7 * np.abs(wanted_out).max()
    for sums in given.squares.sum(axis=1):
        assert np.abs(sums / (f64(given.stream[0]) ** 2).sum(axis=1) - 1).max() < 2**-8


@pytest.mark.parametrize("which", [0, 1])
def test_nothing_else_may(early: list[cute.Kernel], which: int) -> None:
    """Rows, counts and flags come from the launch before, or from other ranks."""
    kernels = list(early)
    kernels[which] = at_the_end(kernels[which], ARCH + "grid_wait")
    with pytest.raises(Race, match="before grid_wait: the launch before may still use it"):
        Model.of(2, 64, 72, 72, 1, EARLY).run(kernels[0], kernels[1])


def test_rows_that_are_not_waited_for(to: cute.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(self: Waits, place: Any, count: Any, rank: Any) -> None:
        """It does not wait."""

    monkeypatch.setattr(Waits, "wait", at_once)
    with pytest.raises(Race, match=r"tma_store at kernels_cute/ranks/gather"):
        Model.of(2, 64, 72, 72, 1).run(to, made("rms_linear_of_ranks"))


def test_tma_reads_them_behind_a_fence(to: cute.Kernel, of: cute.Kernel) -> None:
    given = Model.of(2, 64, 72, 72, 1)
    with pytest.raises(MissingFence, match="of global memory"):
        given.run(to, without(of, ARCH + "fence.proxy_async_global"))
    text = of.ptx("sm_90a")
    assert text.count("fence.proxy.async.global;") == 1  # one of shared memory does not do


def test_a_launch_says_that_it_has_ended(to: cute.Kernel, of: cute.Kernel) -> None:
    with pytest.raises(Race):
        Model.of(2, 64, 72, 72, 1).run(without(to, ARCH + "flag.add", -1), of)


@pytest.mark.parametrize(
    ("name", "which", "wanted"),
    [
        ("flag.add", 0, (Deadlock,)),  # the rows are stored
        ("copy.bulk_wait_group_all", 0, (Race, MissingWait)),  # before that is told
        ("copy.bulk_wait_group", 0, (Race, MissingWait)),  # a buffer is loaded anew
        ("mbarrier.wait", 1, (Race, MissingWait)),  # a piece has come before it is sent
    ],
)
def test_a_missing_operation_is_named(
    to: cute.Kernel, of: cute.Kernel, name: str, which: int, wanted: tuple[type[Finding]]
) -> None:
    with pytest.raises(wanted):
        Model.of(2, 64, 200, 72, 1).run(to, without(of, ARCH + name, which))


def test_rows_that_are_not_new_are_not_sent(to: cute.Kernel, of: cute.Kernel) -> None:
    """Nobody waits for them either."""
    given = Model.of(2, 64, 72, 72, 2)
    given.run(to, of, turns=1)
    ended, copy = given.channel.ended.copy(), given.stream.copy()
    given.read(of)
    assert (given.channel.ended == ended).all() and ended[0, 1] == 2 * 64
    assert (given.stream.view(np.uint16) == copy.view(np.uint16)).all()
