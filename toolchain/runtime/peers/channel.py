"""A channel: the flags by which blocks of several ranks wait for each other, and what each block counts.

flags[r, s, b] lies in rank r's memory and says how often block b of rank s has met block b of rank r. state[b] is a
block's own: how often it has met the others, and 1 + the rank that it gave up waiting for. Counts only grow, so nothing
is reset; a flag of an earlier meeting is a lower number, and nobody takes it for this one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...contract.op import OpSpec
from ...errors import DeviceError
from ..buffer import DeviceBuffer
from ..cuda import CudaExecutor
from ..executor import Executor
from .heap import APART, SymmetricHeap
from .world import World


class Channel:
    """At most `blocks` blocks of each rank wait at once. All collectives of one order of launches share a channel.

    Where all blocks of a rank wait for all of another, counts[r, s] in rank r's memory says how many blocks of rank s
    have come since the beginning, and turns[b] is to a block what state[b] is. All such launches have `blocks`
    blocks. ended[r, s] says how many warpgroups of rank s have stored their rows to rank r."""

    def __init__(
        self, executors: Sequence[Executor], heap: SymmetricHeap, blocks: int, world: World | None = None
    ) -> None:
        """`world`: the other processes, if each has one rank."""
        ranks = len(executors) if world is None else world.ranks
        self._numbers = range(ranks) if world is None else [world.rank]  # of the executors
        self._executors = executors
        self._flags = heap.empty((ranks, blocks), "i32")
        self._counts, self._ended = heap.empty((ranks,), "i32"), heap.empty((ranks,), "i32")
        self._state = [executor.empty((blocks, 2), "i32") for executor in executors]
        self._turns = [executor.empty((blocks, 2), "i32") for executor in executors]
        for index, (rank, executor) in enumerate(zip(self._numbers, executors, strict=True)):
            for buffers in (self._flags, self._counts, self._ended):
                buffers[index].select(0, rank).fill(0)
            self._state[index].fill(0)
            self._turns[index].fill(0)
            executor.synchronize()  # a rank may set another one's flag with its first launch
        if world is not None:
            world.barrier("flags that are zero")

    @staticmethod
    def nbytes(ranks: int, blocks: int) -> int:
        """What it takes of each rank's heap."""
        return 4 * ranks * (blocks + 2) + 3 * APART

    def arguments(self, index: int, op: OpSpec | None = None) -> dict[str, DeviceBuffer | float]:
        """What a collective takes of the channel: flags (R, R, B), state (B, 2), and the rank; if all blocks wait
        for all, counts (R, R) and turns (B, 2); and where rows are shared out, ended (R, R). `index`: of the executor.
        `op`: None for one of the first kind."""
        rank = self._numbers[index]
        if op is None:
            return {"flags": self._flags[index], "state": self._state[index], "rank": rank}
        known = {
            "flags": self._flags, "state": self._state, "counts": self._counts, "turns": self._turns,
            "ended": self._ended,
        }  # fmt: skip
        return {"rank": rank, **{p.name: known[p.name][index] for p in op.params if p.name in known}}

    def counts(self) -> str:
        """How often the first block of this process's first rank has met those of the others, in words. It is read
        while kernels run, perhaps for ever. Raises DeviceError."""
        rank, executor = self._numbers[0], self._executors[0]
        came, seen = _peek(self._state[0], executor)[0, 0], _peek(self._flags[0].select(0, rank), executor)[:, 0]
        others = ", ".join(f"rank {other} {count}" for other, count in enumerate(seen.tolist()) if other != rank)
        return f"block 0 of rank {rank} came {came} times, {others}"

    def check(self) -> None:
        """Raises DeviceError that names the rank which another one waited for in vain. All ranks' work has ended."""
        for index, (rank, executor) in enumerate(zip(self._numbers, self._executors, strict=True)):
            for state, met in ((self._state[index].numpy(), True), (self._turns[index].numpy(), False)):
                waited = np.flatnonzero(state[:, 1])
                if not len(waited):
                    continue
                block = int(waited[0])
                other, came = int(state[block, 1]) - 1, int(state[block, 0])
                named = f" ({self._executors[other].name})" if len(self._executors) > 1 else ""
                seen = (
                    self._flags[index].select(0, rank).numpy()[other, block] if met else self._blocks_of(index, other)
                )
                raise DeviceError(
                    f"rank {rank} ({executor.name}) gave up waiting for rank {other}{named}: "
                    f"block {block} and {len(waited) - 1} more; it came {came} times, the other one {seen}",
                    hint="every rank must launch the same collectives in the same order; see docs/several-gpus.md",
                )

    def _blocks_of(self, index: int, other: int) -> str:
        """How many blocks of another rank have come, where all wait for all."""
        return f"{self._counts[index].select(0, self._numbers[index]).numpy()[other]} times, counted by blocks"


def _peek(buffer: DeviceBuffer, executor: Executor) -> NDArray[np.int32]:
    """A contiguous buffer as it is now. A copy on the executor's own stream would wait for all launches."""
    if not isinstance(executor, CudaExecutor):
        return buffer.numpy()
    found = np.empty(buffer.shape, np.int32)
    executor.ask("cuMemcpyDtoH", found.ctypes.data, buffer.pointer, found.nbytes, doing="reading what blocks count")
    return found
