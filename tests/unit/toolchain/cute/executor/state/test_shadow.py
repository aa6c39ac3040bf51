"""Shadow memory: which earlier access conflicts with a later one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.cute.executor.state.shadow import PAGE, Access, Shadow

FIRST = np.arange(4)  # bytes
SEEN = np.array([1, 1, 0], np.int32)  # a clock: agents 0 and 1 up to time 1
OPEN, JOINED = ({agent: np.full(32, time, np.int32) for agent in (0, 2)} for time in (0, 1))  # known of each lane
LANES = np.array([0, 1, 2, 3])


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
    assert shadow.unseen_write(FIRST, SEEN, access(1, 1), OPEN) is None


def test_a_later_write_is_one_and_names_agent_step_and_byte() -> None:
    shadow = Shadow(8)
    shadow.write(np.array([2, 3]), access(0, 2))
    found = shadow.unseen_write(FIRST, SEEN, access(1, 1), OPEN)
    assert found is not None and found.wrote
    assert (found.place, found.agent, found.time, found.step) == (2, 0, 2, 2)


def test_of_two_writes_the_last_counts() -> None:
    shadow = Shadow(4)
    shadow.write(FIRST, access(0, 2))
    shadow.write(FIRST, access(1, 1))
    assert shadow.unseen_write(FIRST, SEEN, access(1, 1), OPEN) is None


def test_reads_of_each_agent_are_kept() -> None:
    shadow = Shadow(4)
    shadow.read(FIRST, access(0, 1), OPEN)
    shadow.read(FIRST[:1], access(2, 1), OPEN)
    found = shadow.unseen_read(FIRST, SEEN, access(1, 1), OPEN)
    assert found is not None and not found.wrote and (found.agent, found.place) == (2, 0)
    assert shadow.unseen_read(FIRST[1:], SEEN, access(1, 1), OPEN) is None
    assert shadow.unseen_read(FIRST, SEEN, access(2, 1), OPEN) is None  # its own reads


def test_a_write_of_another_lane_conflicts_until_the_warp_has_joined() -> None:
    shadow, others = Shadow(4), np.array([1, 0, 2, 3])
    shadow.write(FIRST[:, None], access(0, 1, lanes=LANES))
    assert shadow.unseen_write(FIRST[:, None], SEEN, access(0, 1, lanes=LANES), OPEN) is None
    found = shadow.unseen_write(FIRST[:, None], SEEN, access(0, 1, lanes=others), OPEN)
    assert found is not None and found.lane == 0 and found.place == 0
    assert shadow.unseen_write(FIRST[:, None], SEEN, access(0, 2, lanes=others), JOINED) is None
    assert shadow.unseen_write(FIRST, SEEN, access(0, 1), OPEN) is None  # the whole agent at once


@pytest.mark.parametrize("agent", [0, 2])  # the lanes themselves, or what they begin
def test_a_read_of_another_lane_does_so_too(agent: int) -> None:
    shadow, others = Shadow(4, of_lanes=True), np.array([0, 1, 3, 2])
    shadow.read(FIRST[:, None], access(0, 1, lanes=LANES), OPEN)
    assert shadow.unseen_read(FIRST[:, None], SEEN, access(agent, 1, lanes=LANES), OPEN) is None
    found = shadow.unseen_read(FIRST[:, None], SEEN, access(agent, 1, lanes=others), OPEN)
    assert found is not None and (found.lane, found.place, found.wrote) == (2, 2, False)
    assert shadow.unseen_read(FIRST[:, None], SEEN, access(agent, 2, lanes=others), JOINED) is None


def test_of_the_lanes_that_read_a_byte_each_counts_until_they_have_joined() -> None:
    shadow = Shadow(1, of_lanes=True)

    def found(lane: int, joined: Any) -> int:
        conflict = shadow.unseen_read(np.zeros((1, 1), np.int64), SEEN, access(0, 1, lanes=np.array([lane])), joined)
        return -1 if conflict is None else conflict.lane

    shadow.read(np.zeros((3, 1), np.int64), access(0, 1, lanes=np.array([4, 5, 6])), OPEN)  # at once
    assert [found(lane, OPEN) for lane in (4, 5, 6)] == [6, 4, 4]
    shadow.read(np.zeros((1, 1), np.int64), access(0, 1, lanes=np.array([9])), OPEN)  # one after the other
    assert [found(lane, OPEN) for lane in (4, 9)] == [9, 4]
    shadow.read(np.zeros((1, 1), np.int64), access(0, 2, lanes=np.array([7])), JOINED)
    assert [found(lane, JOINED) for lane in (4, 7)] == [7, -1]


def test_of_the_bytes_of_a_large_memory_only_the_pages_that_were_read_are_kept() -> None:
    shadow, far = Shadow(1 << 20), np.array([5, 70_000, (1 << 20) - 1])
    for agent in range(40):
        shadow.read(far, access(agent, 1), OPEN)
    assert sum(len(known.times) for known in shadow.reads.values()) <= 40 * 8 * PAGE
    found = shadow.unseen_read(far[1:] - np.array([1, 0]), np.zeros(64, np.int32), access(50, 1), OPEN)
    assert found is not None and found.place == 1
    assert shadow.unseen_read(far - 1, np.zeros(64, np.int32), access(50, 1), OPEN) is None
