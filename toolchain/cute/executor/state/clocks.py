"""Vector clocks: what each warp knows to have happened.

An agent is whatever reads and writes memory in an order of its own: a warp, the copies with cp.async of a warp, the
products of a warpgroup, the copies by TMA that one mbarrier counts, the stores by TMA of a warp. Its time is a number
that only grows. A warp has seen an access of an agent if the agent's time in the warp's clock is not less than that of
the access.

There are four planes: what a warp's own loads and stores may rely on, what its instructions through the asynchronous
proxy (wgmma, TMA) may rely on in shared memory and in global memory, and which inits of mbarriers TMA may rely on. A
proxy fence for shared memory copies the first to the second and the last, one for global memory to the third, and
`mbarrier.init_fence` to the last.

The lanes of a warp know of each other what came before `warp_sync`, or before a lane arrived at a barrier or an
mbarrier, once the warp has waited for that or for what others did behind it. Source: PTX ISA 9.0, "Memory Consistency
Model", "Proxies", and "membar, fence".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Clock = NDArray[np.int32]  # (planes, agents)
GENERIC, ASYNC, ASYNC_GLOBAL, INITS = PLANES = range(4)
LANES = 32
Joined = dict[int, NDArray[np.int32]]  # by agent, for each lane: the time up to which the others know what it did


@dataclass(frozen=True)
class Arrival:
    """Some lanes of a warp have released what they did up to a time. `known`: the times that they published of the
    agents whose lanes are theirs."""

    time: int
    known: dict[int, int]
    lanes: Any


class Clocks:
    """The clocks of a block's warps, which are the first agents."""

    def __init__(self, warps: int) -> None:
        self.warps = warps
        self.names = [f"warp {number}" for number in range(warps)]
        self.seen: NDArray[np.int32] = np.zeros((len(PLANES), warps, max(64, 2 * warps)), np.int32)
        self.seen[GENERIC, range(warps), range(warps)] = 1
        self.joined: list[Joined] = [{warp: np.zeros(LANES, np.int32)} for warp in range(warps)]
        self.arrivals: list[deque[Arrival]] = [deque() for _ in range(warps)]  # that the warp has not waited for

    def agent(self, name: str, warp: int | None = None) -> int:
        """A new agent. `warp`: whose lanes begin what it does."""
        self.names.append(name)
        if len(self.names) > self.seen.shape[2]:
            self.seen = np.concatenate([self.seen, np.zeros_like(self.seen)], axis=2)
        if warp is not None:
            self.joined[warp][len(self.names) - 1] = np.zeros(LANES, np.int32)
        return len(self.names) - 1

    def join(self, warp: int) -> None:
        """Each lane of the warp knows what the others did."""
        for agent, times in self.joined[warp].items():
            times.fill(self.seen[GENERIC, warp, agent])
        self.arrivals[warp].clear()
        self.seen[GENERIC, warp, warp] += 1

    def now(self, warp: int) -> int:
        """The time of a warp."""
        return int(self.seen[GENERIC, warp, warp])

    def release(self, warp: int, lanes: NDArray[np.bool_] | None = None) -> Clock:
        """What the warp has seen and done, for others to acquire. `lanes`: those that say so, by default all."""
        published = self.seen[:, warp].copy()
        known = {agent: int(published[GENERIC, agent]) for agent in self.joined[warp]}
        self.arrivals[warp].append(Arrival(self.now(warp), known, slice(None) if lanes is None else lanes))
        self.seen[GENERIC, warp, warp] += 1
        return published

    def acquire(self, warp: int, published: Clock) -> None:
        """The warp has seen this too."""
        width = published.shape[1]
        np.maximum(self.seen[:, warp, :width], published, out=self.seen[:, warp, :width])
        arrivals, time = self.arrivals[warp], published[GENERIC, warp] if warp < width else 0
        while arrivals and arrivals[0].time <= time:
            one = arrivals.popleft()
            for agent, known in one.known.items():
                times = self.joined[warp][agent]
                times[one.lanes] = np.maximum(times[one.lanes], known)

    def complete(self, warp: int, agent: int, time: int) -> None:
        """The warp knows that an asynchronous agent has done its work up to a time."""
        self.seen[GENERIC, warp, agent] = max(self.seen[GENERIC, warp, agent], time)

    def fence(self, warp: int) -> None:
        """What the warp has seen and done in shared memory is there for the asynchronous proxy."""
        self._pass_on(warp, ASYNC, INITS)

    def fence_global(self, warp: int) -> None:
        """What the warp has seen and done in global memory is there for the asynchronous proxy."""
        self._pass_on(warp, ASYNC_GLOBAL)

    def fence_inits(self, warp: int) -> None:
        """The inits of mbarriers that the warp has seen and done are there for TMA."""
        self._pass_on(warp, INITS)

    def _pass_on(self, warp: int, *planes: int) -> None:
        for plane in planes:
            np.maximum(self.seen[plane, warp], self.seen[GENERIC, warp], out=self.seen[plane, warp])
        self.seen[GENERIC, warp, warp] += 1

    def end(self, warps: range) -> None:
        """The launch of these warps has ended: those of the next one know all that each of them did and saw, in every
        plane."""
        known = self.seen[:, warps.start : warps.stop].max(axis=(0, 1))
        self.seen[:, warps.start : warps.stop] = known
        for warp in warps:
            self.join(warp)

    def seen_by_any(self, agent: int, time: int) -> bool:
        """True if some warp has seen what the agent did at a time."""
        return bool((self.seen[GENERIC, :, agent] >= time).any())


NOTHING: Clock = np.zeros((len(PLANES), 0), np.int32)  # what those know who know of nobody


def merged(a: Clock, b: Clock) -> Clock:
    """The later of both times, for each agent."""
    if a.shape == b.shape:
        return np.maximum(a, b)
    short, long = sorted((a, b), key=lambda one: one.shape[1])
    made = long.copy()
    np.maximum(made[:, : short.shape[1]], short, out=made[:, : short.shape[1]])
    return made


class History:
    """What was published with each of some numbers, one after the other: with each all that came before. Of each is
    kept what it has beyond the one before. `last`: the clock of the latest."""

    def __init__(self) -> None:
        self.last = NOTHING
        self.parts: list[tuple[int, NDArray[np.int64], Clock]] = []  # number, agents, their times

    def add(self, number: int, published: Clock) -> None:
        """One more."""
        made = merged(self.last, published)
        new = np.ones(made.shape[1], np.bool_)
        width = self.last.shape[1]
        new[:width] = (made[:, :width] != self.last).any(axis=0)
        agents = np.flatnonzero(new & made.any(axis=0))
        self.parts.append((number, agents, made[:, agents]))
        self.last = made

    def up_to(self, enough: Callable[[int], bool]) -> Clock | None:
        """What was published up to the first number that is enough, if there is one."""
        made = np.zeros_like(self.last)
        for number, agents, times in self.parts:
            made[:, agents] = times
            if enough(number):
                return made
        return None
