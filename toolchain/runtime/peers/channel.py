"""A channel: the flags by which blocks of several ranks wait for each other, and what each block counts.

flags[r, s, b] lies in rank r's memory and says how often block b of rank s has met block b of rank r. state[b] is a
block's own: how often it has met the others, and 1 + the rank that it gave up waiting for. Counts only grow, so nothing
is reset; a flag of an earlier meeting is a lower number, and nobody takes it for this one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import DeviceError
from ..buffer import DeviceBuffer
from ..executor import Executor
from .heap import SymmetricHeap
from .world import World


class Channel:
    """At most `blocks` blocks of each rank wait at once. All collectives of one order of launches share a channel."""

    def __init__(
        self, executors: Sequence[Executor], heap: SymmetricHeap, blocks: int, world: World | None = None
    ) -> None:
        """`world`: the other processes, if each has one rank."""
        ranks = len(executors) if world is None else world.ranks
        self._numbers = range(ranks) if world is None else [world.rank]  # of the executors
        self._executors = executors
        self._flags = heap.empty((ranks, blocks), "i32")
        self._state = [executor.empty((blocks, 2), "i32") for executor in executors]
        for rank, flags, state, executor in zip(self._numbers, self._flags, self._state, executors, strict=True):
            flags.select(0, rank).fill(0)
            state.fill(0)
            executor.synchronize()  # a rank may set another one's flag with its first launch
        if world is not None:
            world.barrier("flags that are zero")

    def arguments(self, index: int) -> dict[str, DeviceBuffer | float]:
        """What every collective takes of the channel: flags (R, R, B), state (B, 2), and the rank. `index`: of the
        executor."""
        return {"flags": self._flags[index], "state": self._state[index], "rank": self._numbers[index]}

    def check(self) -> None:
        """Raises DeviceError that names the rank which another one waited for in vain. All ranks' work has ended."""
        for rank, flags, state_of, executor in zip(
            self._numbers, self._flags, self._state, self._executors, strict=True
        ):
            state = state_of.numpy()
            waited = np.flatnonzero(state[:, 1])
            if not len(waited):
                continue
            block = int(waited[0])
            other, came = int(state[block, 1]) - 1, int(state[block, 0])
            seen = int(flags.select(0, rank).numpy()[other, block])
            named = f" ({self._executors[other].name})" if len(self._executors) > 1 else ""
            raise DeviceError(
                f"rank {rank} ({executor.name}) gave up waiting for rank {other}{named}: "
                f"block {block} and {len(waited) - 1} more; it came {came} times, the other one {seen}",
                hint="every rank must launch the same collectives in the same order; see docs/several-gpus.md",
            )
