"""Sums over several ranks: what all get, and what is found of words that are written again too early."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import Deadlock, Race
from toolchain.cute.executor.launches.ranks import run_ranks

BLOCKS, ROUNDS = 2, 4
PARAMETERS = (cute.Array("i64", rank=1), cute.Array("i64", rank=4), cute.Array("f32", rank=2), *[cute.Number32()] * 2)


def _at(words: Any, *where: Any) -> Any:
    *outer, last = where
    line = words[(*outer, None)] if outer else words
    return cute.address(cute.local_tile(line, (1,), (last,)))


def adding(ranks: int, *, slots: int = 2, tag: int = 0, scope: bool = True) -> cute.Kernel:
    """In each round the blocks of a rank add to its sums (lanes of two), and get those of all ranks. `slots`: places
    that the rounds take in turns."""

    @cute.kernel(*PARAMETERS, threads=32)
    def kernel(sums: Any, met: Any, out: Any, rank: Any, launch: Any) -> None:
        lane, block = arch.thread_idx()[0], arch.block_idx()[0]
        value = (cute.scalar(rank * 8 + block).to("f32") - 9.25) * (cute.scalar(lane).to("f32") + 1.0)
        for i in range(ROUNDS):
            number = launch * ROUNDS + i + 1
            into = [_at(met, each, number % slots, rank, lane) for each in range(ranks)]
            at, wanted = _at(sums, number * 32 + lane), tag or number
            arch.instruction("word.add_to_ranks", at, value, BLOCKS, wanted, *into, n=ranks)
            pairs = [_at(met, rank, number % slots, each, lane // 2 * 2) for each in range(ranks)]
            if scope:
                results = [f32, f32, i32]
                *found, _ = arch.instruction("word.wait_ranks", *pairs, wanted, 0, results=results, n=ranks)
            else:
                *found, _ = arch.instruction("word.wait_sum", pairs[0], wanted, results=[f32, f32, i32], n=2)
            value = (cute.Scalar(found[0]) + cute.Scalar(found[1])) * 0.0625  # sums are below 2^17
        out[block, lane] = value

    return kernel


def _run(kernel: cute.Kernel, ranks: int, late: tuple[int, int] | None = None, slots: int = 2) -> Sequence[Any]:
    met, launches = np.zeros((ranks, slots, ranks, 32), np.int64), 2
    sums = [np.zeros(32 * (ROUNDS * launches + 1), np.int64) for _ in range(ranks)]
    out = [np.zeros((BLOCKS, 32), np.float32) for _ in range(ranks)]
    steps = [
        (kernel, [[sums[rank], met, out[rank], rank, launch] for rank in range(ranks)]) for launch in range(launches)
    ]
    run_ranks(steps, (BLOCKS, 1, 1), [met], late)
    return out


@pytest.mark.parametrize("ranks", [2, 3])
def test_all_ranks_get_the_sum_of_all_terms(ranks: int) -> None:
    terms = [8 * rank + block - 9.25 for rank in range(ranks) for block in range(BLOCKS)]
    wanted = sum(terms) * (4 * np.arange(16) + 3) / 16
    wanted = np.repeat(wanted * (2 * BLOCKS * ranks / 16) ** (ROUNDS - 1), 2)
    for late in [None, *((rank, block) for rank in range(ranks) for block in range(BLOCKS))]:
        for out in _run(adding(ranks), ranks, late):
            assert (out == wanted.astype(np.float32)).all()


def test_a_word_that_is_written_again_too_early_is_found_where_a_block_is_late() -> None:
    _run(adding(2, slots=1), 2, slots=1)  # in turns nobody notices
    with pytest.raises(Deadlock, match=r"the tag \d+ of the word at met\[\d, 0, \d, \d+\], which has \d+"):
        _run(adding(2, slots=1), 2, (1, 1), slots=1)


def test_a_tag_that_every_round_has_is_taken_for_this_ones() -> None:
    right, wrong = _run(adding(2), 2), _run(adding(2, tag=7), 2, (0, 0))
    assert not all((a == b).all() for a, b in zip(right, wrong, strict=True))


def test_words_in_memory_of_all_ranks_have_the_scope_of_all() -> None:
    with pytest.raises(Race, match="as a word of one GPU: other ranks reach it"):
        _run(adding(2, scope=False), 2)
