"""Vector clocks: what each warp knows to have happened.

An agent is whatever reads and writes memory in an order of its own: a warp, the copies with cp.async of a warp, the
products of a warpgroup, the copies by TMA that one mbarrier counts, the stores by TMA of a warp. Its time is a number
that only grows. A warp has seen an access of an agent if the agent's time in the warp's clock is not less than that of
the access.

There are three planes: what a warp's own loads and stores may rely on, what its instructions through the asynchronous
proxy (wgmma, TMA) may rely on, and which inits of mbarriers TMA may rely on. A proxy fence copies the first to the
others, `mbarrier.init_fence` copies it to the third. Source: PTX ISA 9.0, "Memory Consistency Model", "Proxies", and
"membar, fence".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Clock = NDArray[np.int32]  # (planes, agents)
GENERIC, ASYNC, INITS = PLANES = range(3)


class Clocks:
    """The clocks of a block's warps, which are the first agents."""

    def __init__(self, warps: int) -> None:
        self.warps = warps
        self.names = [f"warp {number}" for number in range(warps)]
        self.seen: NDArray[np.int32] = np.zeros((len(PLANES), warps, max(64, 2 * warps)), np.int32)
        self.seen[GENERIC, range(warps), range(warps)] = 1

    def agent(self, name: str) -> int:
        """A new agent."""
        self.names.append(name)
        if len(self.names) > self.seen.shape[2]:
            self.seen = np.concatenate([self.seen, np.zeros_like(self.seen)], axis=2)
        return len(self.names) - 1

    def now(self, warp: int) -> int:
        """The time of a warp."""
        return int(self.seen[GENERIC, warp, warp])

    def release(self, warp: int) -> Clock:
        """What the warp has seen and done, for others to acquire."""
        published = self.seen[:, warp].copy()
        self.seen[GENERIC, warp, warp] += 1
        return published

    def acquire(self, warp: int, published: Clock) -> None:
        """The warp has seen this too."""
        width = published.shape[1]
        np.maximum(self.seen[:, warp, :width], published, out=self.seen[:, warp, :width])

    def complete(self, warp: int, agent: int, time: int) -> None:
        """The warp knows that an asynchronous agent has done its work up to a time."""
        self.seen[GENERIC, warp, agent] = max(self.seen[GENERIC, warp, agent], time)

    def fence(self, warp: int) -> None:
        """What the warp has seen and done is there for the asynchronous proxy."""
        np.maximum(self.seen[ASYNC, warp], self.seen[GENERIC, warp], out=self.seen[ASYNC, warp])
        self.fence_inits(warp)

    def fence_inits(self, warp: int) -> None:
        """The inits of mbarriers that the warp has seen and done are there for TMA."""
        np.maximum(self.seen[INITS, warp], self.seen[GENERIC, warp], out=self.seen[INITS, warp])
        self.seen[GENERIC, warp, warp] += 1

    def end(self, warps: range) -> None:
        """The launch of these warps has ended: those of the next one know all that each of them did and saw, in every
        plane."""
        known = self.seen[:, warps.start : warps.stop].max(axis=(0, 1))
        self.seen[:, warps.start : warps.stop] = known
        self.seen[GENERIC, warps, warps] += 1

    def seen_by_any(self, agent: int, time: int) -> bool:
        """True if some warp has seen what the agent did at a time."""
        return bool((self.seen[GENERIC, :, agent] >= time).any())


def merged(a: Clock, b: Clock) -> Clock:
    """The later of both times, for each agent."""
    width = max(a.shape[1], b.shape[1])
    return np.maximum(*(np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one in (a, b)))
