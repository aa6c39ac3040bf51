"""Words between blocks: what waits get, and what is no use of words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i32, i64

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import Deadlock, Race, Uninitialised, run
from toolchain.cute.layout import Layout

WORDS, FLOATS = cute.Array("i64", rank=1), cute.Array("f32", rank=1)


def _at(words: Any, number: Any) -> Any:
    return cute.address(cute.local_tile(words, (1,), (number,)))


def _taken(results: Any) -> list[Any]:
    return [cute.Scalar(value) for value in results[:-1]]


def ring_of_blocks(*, tell: bool = True, peek: bool = False, tag: int = 7) -> cute.Kernel:
    """Each block tells the one behind it a number; the last one goes first."""

    @cute.kernel(WORDS, FLOATS, threads=32)
    def kernel(words: Any, out: Any) -> None:
        lane, block = arch.thread_idx()[0], arch.block_idx()[0]
        if tell:
            value = cute.scalar(lane).to("f32") - 40.5
            arch.instruction("word.store", _at(words, (block + 1) % 3 * 32 + lane), tag, value, n=1)
        if peek:
            out[block * 32 + lane] = cute.Scalar(words[(block + 1) % 3 * 32 + lane].value).to("f32")
        at = _at(words, block * 32 + lane)
        out[block * 32 + lane] = _taken(arch.instruction("word.wait", at, 7, results=[f32, i32], n=1))[0]

    return kernel


def _run(kernel: cute.Kernel) -> Any:
    words, out = np.zeros(96, np.int64), np.zeros(96, np.float32)
    run(kernel, (words, out), grid=3, resident=True)
    return words, out


def test_blocks_that_wait_for_each_other_run_at_the_same_time() -> None:
    words, out = _run(ring_of_blocks())
    assert (out.reshape(3, 32) == np.arange(32) - 40.5).all()
    assert (words & 0xFFFFFFFF == 7).all()


def test_a_word_that_does_not_come_is_named() -> None:
    with pytest.raises(Deadlock, match=r"the tag 7 of the word at words\[0\], which has 0"):
        _run(ring_of_blocks(tell=False))
    with pytest.raises(Deadlock, match="which has 6"):
        _run(ring_of_blocks(tag=6))


def test_blocks_that_run_one_after_the_other_cannot_wait() -> None:
    with pytest.raises(Deadlock):
        run(ring_of_blocks(), (np.zeros(96, np.int64), np.zeros(96, np.float32)), grid=3)


def test_words_are_not_read_as_something_else() -> None:
    with pytest.raises(Race, match=r"reads words\[32\], which others access as a word"):
        _run(ring_of_blocks(peek=True))


@cute.kernel(WORDS, FLOATS, threads=32)
def adding(words: Any, out: Any) -> None:
    lane, block = arch.thread_idx()[0], arch.block_idx()[0]
    value = (cute.scalar(block).to("f32") - 1.25) * (cute.scalar(lane).to("f32") + 1.0)
    arch.instruction("word.add", _at(words, lane), value)
    found = _taken(arch.instruction("word.wait_sum", _at(words, lane), 3, results=[f32, i32], n=1))
    out[block * 32 + lane] = found[0]


def test_a_sum_is_there_with_its_last_term_and_may_be_negative() -> None:
    words, out = np.zeros(32, np.int64), np.zeros(96, np.float32)
    run(adding, (words, out), grid=3, resident=True)
    assert (out.reshape(3, 32) == -0.75 * np.arange(1, 33)).all()
    assert ((words + (1 << 47)) >> 48 == 3).all()
    with pytest.raises(Deadlock, match=r"the number of terms 3 of the word at words\[0\], which has 2"):
        run(adding, (np.zeros(32, np.int64), out), grid=2, resident=True)


def pairs_across(*, tag: int = 7) -> cute.Kernel:
    """A warp writes 8 words for each lane, in pairs 512 bytes apart, and reads them at once; the last have a tag."""

    @cute.kernel(WORDS, FLOATS, threads=32)
    def kernel(words: Any, out: Any) -> None:
        lane = arch.thread_idx()[0]
        for i in range(4):
            value = cute.scalar(lane).to("f32") + 100.0 * i
            at = _at(words, i * 64 + lane * 2)
            arch.instruction("word.store", at, tag if i == 3 else 7, value, value + 0.5, n=2)
        found = arch.instruction("word.wait_across", _at(words, lane * 2), 7, results=[f32] * 8 + [i32], n=8)
        for i, one in enumerate(_taken(found)):
            out[lane * 8 + i] = one

    return kernel


def test_a_lane_waits_for_pairs_of_words_that_are_apart() -> None:
    words, out = np.zeros(256, np.int64), np.zeros(256, np.float32)
    run(pairs_across(), (words, out))
    expected = np.arange(32)[:, None, None] + 100.0 * np.arange(4)[:, None] + [0, 0.5]
    assert (out.reshape(32, 4, 2) == expected).all()
    with pytest.raises(Deadlock, match=r"the tag 7 of the word at words\[192\], which has 6"):
        run(pairs_across(tag=6), (np.zeros(256, np.int64), out))


def cluster_of_two(*, clear: bool = True, barrier: bool = True) -> cute.Kernel:
    """Each block of a cluster tells the other one a number through its shared memory."""

    @cute.kernel(FLOATS, threads=32, cluster=(2, 1, 1))
    def kernel(out: Any) -> None:
        lane, block = arch.thread_idx()[0], arch.block_idx()[0]
        words = cute.shared_tensor("i64", Layout(64))
        if clear:
            for i in range(2):
                words[lane + 32 * i] = cute.scalar(0, i64)
        if barrier:
            arch.sync_cluster()
        there = arch.instruction("cluster.map", _at(words, lane * 2), 1 - block, results=[i32])[0]
        value = cute.scalar(block).to("f32")
        arch.instruction("word.store", there, 1, value, value + 0.5, n=2)
        found = arch.instruction("word.wait", _at(words, lane * 2), 1, results=[f32, f32, i32], n=2)
        for i, one in enumerate(_taken(found)):
            out[(block * 32 + lane) * 2 + i] = one
        arch.sync_cluster()

    return kernel


def test_words_go_to_the_shared_memory_of_the_cluster() -> None:
    out = np.zeros(128, np.float32)
    run(cluster_of_two(), (out,), grid=2)
    assert (out.reshape(2, 32, 2) == [[[1, 1.5]], [[0, 0.5]]]).all()


def test_shared_memory_becomes_words_by_writes_that_are_ordered_before() -> None:
    out = np.zeros(128, np.float32)
    with pytest.raises(Uninitialised, match="as a word, which nothing has made one"):
        run(cluster_of_two(clear=False), (out,), grid=2)
    with pytest.raises((Race, Uninitialised)):
        run(cluster_of_two(barrier=False), (out,), grid=2)
