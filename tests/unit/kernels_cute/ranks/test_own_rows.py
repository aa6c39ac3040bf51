"""Attention that stores to ranks, and the product behind it: their results, and what is said of a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kernels_cute.attention.attention_walk import Tiles as AttentionTiles
from kernels_cute.products.tiles_sm90 import Tiles
from kernels_cute.ranks.meeting import Waits
from tests.unit.kernels_cute.ranks.attended import OP, PLAIN, Attended, attending
from tests.unit.kernels_cute.ranks.products import SMALL, f64, made
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute.executor import Deadlock, Finding, MissingFence, MissingWait, Race

ARCH = "cute_nvgpu.arch."


def nobody(*_: Any) -> None:
    """Waits for nobody."""


@pytest.mark.parametrize(
    ("heads", "batch", "length", "blocks", "tiles", "attention"),
    [
        ((1, 2), 2, 64, 2, SMALL, PLAIN),  # heads that do not divide
        ((1, 1), 1, 256, 3, Tiles(64, 64, 64, 2, 1, apart=True), AttentionTiles(keys=32, ahead=True, anchored=True)),
        ((1, 1), 1, 256, 2, Tiles(128, 96, 64, 2), AttentionTiles(consumers=2, keys=32, blocks=1)),
        ((1, 1, 1), 3, 64, 2, SMALL, PLAIN),
    ],
)
def test_each_rank_gets_its_rows_of_the_stream(
    heads: Sequence[int], batch: int, length: int, blocks: int, tiles: Tiles, attention: AttentionTiles
) -> None:
    given, ranks = Attended.of(heads, batch, length, 72, blocks, tiles), len(heads)
    start, piece = given.stream.copy(), batch * length // ranks
    given.run(attending(attention), made(OP, tiles), tiles=attention)
    attended = given.wanted()
    wanted = f64(start[0]) + 2 * (attended @ f64(given.weight) + f64(given.bias))
    for rank in range(ranks):
        own = slice(rank * piece, (rank + 1) * piece)
        assert np.abs(f64(given.gathered[1][rank]) - attended[own]).max() <= 2**-7 * np.abs(attended).max()
        assert np.abs(f64(given.stream[rank, own]) - wanted[own]).max() <= 2**-6 * np.abs(wanted).max()
        others = np.r_[0 : own.start, own.stop : ranks * piece]
        assert (given.stream[rank, others] == start[rank, others]).all()
        assert given.channel.ended[rank, rank] == 2 * piece * 2  # two times two parts of 64 columns
    sums = [(f64(given.stream[r, r * piece : (r + 1) * piece]) ** 2).sum(axis=1) for r in range(ranks)]
    for squares in given.squares:  # all ranks have those of all
        assert np.abs(squares.sum(axis=0) / np.concatenate(sums) - 1).max() < 2**-6


def test_a_product_that_tells_nobody_waits_for_good() -> None:
    with pytest.raises(Deadlock):
        Attended.of((1, 1), 2, 64, 72, 2).run(attending(), without(made(OP), ARCH + "flag.add", 0))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("barrier", Race), ("fence.proxy_async", MissingFence)],  # results are written, for TMA too
)
def test_a_missing_operation_of_attention_is_named(name: str, wanted: type[Finding]) -> None:
    with pytest.raises(wanted):
        Attended.of((1, 1), 2, 64, 72, 2).run(without(attending(), ARCH + name, 0), made(OP))


def test_rows_that_are_not_waited_for_are_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Waits, "wait", nobody)
    with pytest.raises((Race, MissingWait)):
        Attended.of((1, 1), 2, 64, 72, 2).run(attending(), made(OP))
