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


class Channel:
    """At most `blocks` blocks of each rank wait at once. All collectives of one order of launches share a channel."""

    def __init__(self, executors: Sequence[Executor], heap: SymmetricHeap, blocks: int) -> None:
        ranks = len(executors)
        self._executors = executors
        self._flags = heap.empty((ranks, blocks), "i32")
        self._state = [executor.empty((blocks, 2), "i32") for executor in executors]
        for rank, executor in enumerate(executors):
            self._flags[rank].select(0, rank).fill(0)
            self._state[rank].fill(0)
            executor.synchronize()  # a rank may set another one's flag with its first launch

    def arguments(self, rank: int) -> dict[str, DeviceBuffer | float]:
        """What every collective takes of the channel: flags (R, R, B), state (B, 2), and the rank."""
        return {"flags": self._flags[rank], "state": self._state[rank], "rank": rank}

    def check(self) -> None:
        """Raises DeviceError that names the rank which another one waited for in vain. All ranks' work has ended."""
        for rank, executor in enumerate(self._executors):
            state = self._state[rank].numpy()
            waited = np.flatnonzero(state[:, 1])
            if not len(waited):
                continue
            block = int(waited[0])
            other, came = int(state[block, 1]) - 1, int(state[block, 0])
            seen = int(self._flags[rank].select(0, rank).numpy()[other, block])
            raise DeviceError(
                f"rank {rank} ({executor.name}) gave up waiting for rank {other} ({self._executors[other].name}): "
                f"block {block} and {len(waited) - 1} more; it came {came} times, the other one {seen}",
                hint="every rank must launch the same collectives in the same order; see docs/several-gpus.md",
            )
