"""Shadow memory: which earlier access conflicts with a later one."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolchain.cute.executor.state.shadow import Access, Shadow

FIRST = np.arange(4)  # bytes
SEEN = np.array([1, 1, 0], np.int32)  # a clock: agents 0 and 1 up to time 1


def access(agent: int, time: int, **more: Any) -> Access:
    return Access(agent, time, step=10 * agent + time, **more)


def test_bytes_that_nobody_has_written() -> None:
    shadow = Shadow(8)
    shadow.write(FIRST, access(0, 1))
    assert shadow.first_unwritten(FIRST) is None
    assert shadow.first_unwritten(np.arange(2, 8)) == 2


def test_a_write_that_was_seen_is_no_conflict() -> None:
    shadow = Shadow(8)
    shadow.write(FIRST, access(0, 1))
    assert shadow.unseen_write(FIRST, SEEN, access(1, 1)) is None


def test_a_later_write_is_one_and_names_agent_step_and_byte() -> None:
    shadow = Shadow(8)
    shadow.write(np.array([2, 3]), access(0, 2))
    found = shadow.unseen_write(FIRST, SEEN, access(1, 1))
    assert found is not None and found.wrote
    assert (found.place, found.agent, found.time, found.step) == (2, 0, 2, 2)


def test_of_two_writes_the_last_counts() -> None:
    shadow = Shadow(4)
    shadow.write(FIRST, access(0, 2))
    shadow.write(FIRST, access(1, 1))
    assert shadow.unseen_write(FIRST, SEEN, access(1, 1)) is None


def test_reads_of_each_agent_are_kept() -> None:
    shadow = Shadow(4)
    shadow.read(FIRST, access(0, 1))
    shadow.read(FIRST[:1], access(2, 1))
    found = shadow.unseen_read(FIRST, SEEN, access(1, 1))
    assert found is not None and not found.wrote and (found.agent, found.place) == (2, 0)
    assert shadow.unseen_read(FIRST[1:], SEEN, access(1, 1)) is None
    assert shadow.unseen_read(FIRST, SEEN, access(2, 1)) is None  # its own reads


def test_lanes_of_a_warp_conflict_until_the_warp_synchronises() -> None:
    shadow = Shadow(4)
    lanes, others = np.array([0, 1, 2, 3]), np.array([1, 0, 2, 3])
    shadow.write(FIRST[:, None], access(0, 1, epoch=1, lanes=lanes))
    assert shadow.unseen_write(FIRST[:, None], SEEN, access(0, 1, epoch=1, lanes=lanes)) is None
    found = shadow.unseen_write(FIRST[:, None], SEEN, access(0, 1, epoch=1, lanes=others))
    assert found is not None and found.lane == 0 and found.place == 0
    assert shadow.unseen_write(FIRST[:, None], SEEN, access(0, 1, epoch=2, lanes=others)) is None
    assert shadow.unseen_write(FIRST, SEEN, access(0, 1, epoch=1)) is None  # the whole agent at once
