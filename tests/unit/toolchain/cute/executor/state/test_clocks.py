"""Vector clocks: what a warp knows of others after each way to learn it, and what it does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolchain.cute.executor.state.clocks import ASYNC, GENERIC, INITS, Clocks, History, merged


def knows(clocks: Clocks, warp: int, agent: int, time: int, plane: int = GENERIC) -> bool:
    return bool(clocks.seen[plane, warp, agent] >= time)


def test_a_warp_knows_itself_and_nobody_else() -> None:
    clocks = Clocks(3)
    for warp in range(3):
        for other in range(3):
            assert knows(clocks, warp, other, 1) == (warp == other)


def test_what_is_released_is_known_to_who_acquires_it_and_no_later_time_is() -> None:
    clocks = Clocks(2)
    before = clocks.now(0)
    published = clocks.release(0)
    assert clocks.now(0) == before + 1
    assert not knows(clocks, 1, 0, before)
    clocks.acquire(1, published)
    assert knows(clocks, 1, 0, before) and not knows(clocks, 1, 0, clocks.now(0))


def test_knowledge_is_passed_on_and_never_lost() -> None:
    clocks = Clocks(3)
    old = clocks.release(1)
    clocks.acquire(1, clocks.release(0))
    clocks.acquire(2, clocks.release(1))
    assert knows(clocks, 2, 0, 1) and knows(clocks, 2, 1, 2)
    clocks.acquire(2, old)
    assert knows(clocks, 2, 0, 1) and knows(clocks, 2, 1, 2)


def test_what_is_published_does_not_change() -> None:
    clocks = Clocks(2)
    published = clocks.release(0)
    kept = published.copy()
    clocks.complete(0, 1, 7)
    assert (published == kept).all()


def test_a_proxy_fence_is_for_all_planes_and_one_for_inits_is_not() -> None:
    clocks = Clocks(1)
    written = clocks.now(0)
    assert not knows(clocks, 0, 0, written, ASYNC)
    clocks.fence_inits(0)
    assert knows(clocks, 0, 0, written, INITS) and not knows(clocks, 0, 0, written, ASYNC)
    clocks.fence(0)
    assert knows(clocks, 0, 0, written, ASYNC)
    assert not knows(clocks, 0, 0, clocks.now(0), ASYNC)  # what is written behind the fence


def test_an_agent_is_known_up_to_the_time_that_was_waited_for() -> None:
    clocks = Clocks(2)
    agent = clocks.agent("copies")
    clocks.complete(0, agent, 3)
    clocks.complete(0, agent, 2)
    assert knows(clocks, 0, agent, 3) and not knows(clocks, 0, agent, 4) and not knows(clocks, 1, agent, 1)
    assert clocks.seen_by_any(agent, 3) and not clocks.seen_by_any(agent, 4)


def test_lanes_know_of_each_other_once_their_warp_has_joined() -> None:
    clocks = Clocks(2)
    copies = clocks.agent("copies", 0)

    def known(lane: int) -> list[int]:
        return [int(clocks.joined[0][agent][lane]) for agent in (0, copies)]

    clocks.complete(0, copies, 3)  # for the lanes that began them
    assert known(0) == known(9) == [0, 0]
    clocks.join(0)
    assert known(0) == known(9) == [1, 3] and clocks.now(0) == 2
    clocks.complete(0, copies, 4)
    published = clocks.release(0, np.arange(32) == 9)  # lane 9 arrives
    assert known(9) == [1, 3]
    clocks.acquire(1, published)
    clocks.acquire(0, clocks.release(1))  # the warp waits for one that has waited for it
    assert known(0) == [1, 3] and known(9) == [2, 4]
    clocks.acquire(0, clocks.release(0))  # all arrive
    assert known(0) == known(9) == [3, 4] and clocks.now(0) == 4


def test_there_is_room_for_as_many_agents_as_come() -> None:
    clocks = Clocks(2)
    early = clocks.release(0)
    first = clocks.agent("the first")
    clocks.complete(0, first, 4)
    agents = [clocks.agent(f"copies {number}") for number in range(200)]
    assert len(set(agents)) == 200 and clocks.names[agents[-1]] == "copies 199"
    clocks.complete(1, agents[-1], 5)
    clocks.acquire(1, early)  # shorter than the clocks are now
    assert knows(clocks, 1, agents[-1], 5) and knows(clocks, 1, 0, 1) and knows(clocks, 0, first, 4)


def test_of_two_clocks_the_later_times_count() -> None:
    short, long = np.array([[1, 5], [0, 0]], np.int32), np.array([[2, 3, 4], [1, 0, 0]], np.int32)
    assert merged(short, long).tolist() == merged(long, short).tolist() == [[2, 5, 4], [1, 0, 0]]


def test_a_history_gives_what_was_published_up_to_a_number_and_keeps_little_of_each() -> None:
    clocks, history, published = Clocks(2), History(), list[Any]()
    for number in range(100):
        clocks.complete(number % 2, clocks.agent(f"copies {number}"), number)
        one = clocks.release(number % 2)
        published.append(merged(published[-1], one) if published else one)
        history.add(number, one)
    for wanted in (0, 1, 63, 99):
        found, expected = history.up_to(lambda number, least=wanted: number >= least), published[wanted]
        assert found is not None and not (merged(found, expected) - merged(expected, np.zeros_like(found))).any()
        assert (found[:, : expected.shape[1]] == expected).all()
    assert history.up_to(lambda _: False) is None
    assert all(len(agents) <= 3 for _, agents, _ in history.parts)  # the warp, the copies, and the first ones of a warp
