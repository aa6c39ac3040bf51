"""Products of rows that others have stored: what they wait for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels_cute.meeting import Waits
from kernels_cute.tiles_sm90 import Tiles
from tests.unit.kernels_cute.ranks import Model, f64, made
from tests.unit.toolchain.cute.executor.mutate import without
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


def test_rows_that_are_not_waited_for(to: cute.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(self: Waits, place: Any, count: Any, rank: Any) -> None:
        """It does not wait."""

    monkeypatch.setattr(Waits, "wait", at_once)
    with pytest.raises(Race, match=r"tma_store at kernels_cute/gather"):
        Model.of(2, 64, 72, 72, 1).run(to, made("rms_linear_of_ranks"))


def test_tma_reads_them_behind_a_fence(to: cute.Kernel, of: cute.Kernel) -> None:
    with pytest.raises(MissingFence):
        Model.of(2, 64, 72, 72, 1).run(to, without(of, ARCH + "fence.proxy_async"))


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
