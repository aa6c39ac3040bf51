"""Bank conflicts, from the addresses of the threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from toolchain.cute import dsl as cute
from toolchain.cute.executor import run
from toolchain.cute.executor.state.banks import Counter, ways
from toolchain.cute.layout import Layout

LANES = np.arange(32)


@pytest.mark.parametrize(
    ("step", "width", "wanted"),
    [
        (4, 4, [1]),  # neighbours
        (0, 4, [1]),  # one word for all
        (2, 2, [1]),  # two threads share a word
        (8, 4, [2]),
        (128, 4, [32]),  # a column
        (132, 4, [1]),  # a column of rows of 33 words
        (8, 8, [1, 1]),  # half a warp at a time
        (16, 16, [1, 1, 1, 1]),  # a quarter
        (128, 16, [8, 8, 8, 8]),
    ],
)
def test_the_busiest_bank(step: int, width: int, wanted: list[int]) -> None:
    assert ways(LANES * step, LANES, width) == wanted


def test_only_threads_that_take_part_count() -> None:
    assert ways(np.array([0, 128]), np.array([0, 31]), 4) == [2]
    assert ways(np.array([0, 128]), np.array([0, 31]), 16) == [1, 1]


@dataclass(frozen=True)
class Load:
    number: int
    name: str = "llvm.load"
    location: str = "k.py:1"


def test_patterns_that_differ_by_rows_of_banks_are_counted_alike() -> None:
    counter = Counter()
    for start in (0, 1280):
        counter.count(Load(start), LANES * 8 + start, LANES, 4)
    assert len(counter.known) == 1
    assert str(counter.rows[0]) == "llvm.load at k.py:1: 2-way, 4 turns where 2 do (2 times)"


def column(pitch: int) -> cute.Kernel:
    @cute.kernel(cute.Array("f32", rank=1), threads=32)
    def made(target: Any) -> None:
        thread = cute.arch.thread_idx()[0]
        shared = cute.shared_tensor("f32", Layout((32, 32), (pitch, 1)))
        for i in range(32):
            shared[i, thread] = 1.0
        cute.arch.sync_threads()
        target[thread] = shared[thread, 5]

    return made


def test_the_report_names_the_load_of_a_column() -> None:
    report = run(column(32), (np.zeros(32, np.float32),))
    (row,) = report.conflicts
    assert (row.op, row.worst, row.turns, row.served, row.executed) == ("llvm.load", 32, 32, 1, 1)
    assert "32-way, 32 turns where 1 do" in str(report)
    padded = run(column(33), (np.zeros(32, np.float32),))
    assert not padded.conflicts and [row.executed for row in padded.accesses] == [32, 1]
