"""A decode step that ranks share on the executor: its results, the same bits on all, and mistakes in its meetings."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpt.families.one_launch import waited_for
from kernels_cute.decode.ranks import OF_RANK, RankStep, RankWarps, decode_step
from kernels_cute.decode.step import parameters
from tests.unit.kernels_cute.decode.shared_step import Shared
from toolchain.cute import dsl as cute
from toolchain.cute.executor import Deadlock, Race
from toolchain.errors import ConformanceError, UsageError


def _of(
    layers: int, clusters: int, units: tuple[int, int], heads: int, vocabulary: int, ranks: int, cluster: int = 8
) -> RankStep:
    hidden = cluster * (heads * units[0] + (clusters - heads) * units[1])
    return RankStep(
        layers, 64, 32, vocabulary, clusters, units, 4, 0, own_heads=heads, own_hidden=hidden, ranks=ranks,
        cluster=cluster,
    )  # fmt: skip


# The first rank has blocks without a head; both have as many, and uneven parts of all.
TWO = (_of(3, 2, (16, 8), 1, 72, 2), _of(3, 2, (16, 16), 2, 40, 2))
SHORT, EVEN = (_of(1, 1, (8, 8), 1, 40, 2),) * 2, (_of(2, 2, (8, 8), 1, 40, 2),) * 2
FOURS = (replace(_of(2, 3, (16, 8), 1, 40, 2, cluster=4), first=True),) * 2
THREE = tuple(_of(1, 1, (8, 8), 1, 40, 3) for _ in range(3))
WITHOUT_HEAD = (0, 12)  # a block of the first rank


@functools.cache
def _kernel(step: RankStep) -> cute.Kernel:
    return decode_step(step)


def _kernels(steps: Sequence[RankStep]) -> list[cute.Kernel]:
    return [_kernel(step) for step in steps]


def _wrong(steps: Sequence[RankStep]) -> list[cute.Kernel]:
    """That of ranks which are alike, made anew, where a method is another one."""
    return [decode_step(steps[0])] * len(steps)


def test_two_ranks_with_uneven_parts_make_a_step_also_when_one_block_is_late() -> None:
    given = Shared.of(TWO, 32)
    given.run(_kernels(TWO), launches=3, late=WITHOUT_HEAD)
    given.check(launches=3)


def test_three_ranks_have_the_same_bits() -> None:
    """With the same rows of the embedding all make the same logits."""
    given = Shared.of(THREE, 30)
    given.run(_kernels(THREE), launches=2)
    given.check(launches=2)
    for own in given.arrays:
        own["head"] = given.arrays[0]["head"]
    given.run(_kernels(THREE))
    for own in given.arrays:
        assert np.array_equal(own["logits"].view(np.uint16), given.arrays[0]["logits"].view(np.uint16))


def test_ranks_of_a_wide_model_have_clusters_of_4() -> None:
    """And wait for one word of a sum before all."""
    given = Shared.of(FOURS, 30)
    given.run(_kernels(FOURS), launches=2, late=(1, 9))
    given.check(launches=2)


def test_two_places_are_written_again_before_a_late_block_has_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels_cute.decode.ranks.PLACES", 2)
    kernels = _wrong(EVEN)
    monkeypatch.undo()
    with pytest.raises(Deadlock, match=r"the tag \d of the word at met\[0, \d+\], which has \d"):
        Shared.of(EVEN, 32).run(kernels, late=WITHOUT_HEAD)


def test_a_tag_without_the_launch_takes_words_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_layer(self: RankWarps, layer: Any, which: int) -> Any:
        del self
        return layer * 2 + which + 1

    monkeypatch.setattr(RankWarps, "_tag", of_layer)
    given = Shared.of(SHORT, 30)
    given.run(_wrong(SHORT), launches=2)
    with pytest.raises(ConformanceError, match="outside"):
        given.check(launches=2)


def test_a_rank_whose_terms_are_left_out_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(self: RankWarps, memory: Any, layer: Any, which: int, source: Any, column: Any) -> Any:
        return word(self, memory, layer, which, 0 if isinstance(source, int) else source, column)

    word = RankWarps._word  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(RankWarps, "_word", twice)
    given = Shared.of(SHORT, 30)
    given.run(_wrong(SHORT))
    with pytest.raises(ConformanceError, match="outside"):
        given.check()


def test_sums_that_the_launch_clears_are_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    column = RankWarps.column

    def other(self: RankWarps, layer: Any, which: int, at: Any) -> Any:
        s = self.step
        return column(self, layer, which, at) + (1 - self.set * 2) * (s.words // 2)

    monkeypatch.setattr(RankWarps, "column", other)
    with pytest.raises(Race, match="as a word"):
        Shared.of(SHORT, 30).run(_wrong(SHORT))


def test_a_rank_that_adds_less_is_waited_for_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its grid lacks a cluster: the projections come, the sums of the MLP do not."""
    kernels = [_kernel(step) for step in EVEN]
    monkeypatch.setattr(RankStep, "blocks", property(lambda self: 8 * (self.clusters - 1)))
    with pytest.raises(Deadlock, match=r"the tag 2 of the word at met\[1, \d+\], which has 0"):
        Shared.of(EVEN, 30).run(kernels)


@cute.kernel(*parameters("decode_step_of_ranks"), threads=32, name="decode_step_of_ranks")
def away(*_: Any) -> None:
    """What a rank launches that does not come to the step."""


def test_a_rank_that_does_not_come_is_named_by_the_others() -> None:
    """By the first wait of each warp that ran out: behind it a wait for what is on its way ends at once."""
    given = Shared.of(THREE, 30)
    given.run([_kernel(THREE[0]), away, _kernel(THREE[2])], gives_up=True)
    for rank in (0, 2):
        own = given.arrays[rank]
        assert set(own["errors"].flat) == {3 + OF_RANK * 2}, "as ops.toml says"
        assert waited_for(own["errors"]) == ("the sums of projections", 1)
        assert np.isnan(own["logits"].astype(np.float32)).all() and np.isnan(own["values"]).any()
    assert not given.arrays[1]["errors"].any()


def test_a_rank_that_adds_less_is_named_by_all_when_waits_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [_kernel(step) for step in TWO]
    monkeypatch.setattr(RankStep, "blocks", property(lambda self: 8 * (self.clusters - (self == TWO[0]))))
    given = Shared.of(TWO, 30)
    given.run(kernels, gives_up=True)
    for own in given.arrays:
        assert waited_for(own["errors"]) == ("the sums of the MLP", 0)


def test_a_step_of_ranks_is_told_what_it_has() -> None:
    with pytest.raises(UsageError, match="needs to be told"):
        RankStep(own_heads=6, units=(32, 32))
    with pytest.raises(UsageError, match="16 bits"):
        RankStep(own_heads=6, own_hidden=1536, units=(16, 16), cache_bits=8)
