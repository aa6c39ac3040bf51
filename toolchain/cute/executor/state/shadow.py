"""Shadow memory: who wrote and who read each byte last, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.int64]  # numbers of bytes
NOBODY = -1
EARLIER = -1  # the step of what an earlier launch did


@dataclass(frozen=True)
class Access:
    """`agent` at its `time`, by the operation of a step. `epoch`: synchronisations of the warp so far; `lanes`: of the
    first axis of the bytes; without lanes the whole agent acts at once."""

    agent: int
    time: int
    step: int
    epoch: int = 0
    lanes: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Conflict:
    """An earlier access that is not ordered before one to the byte `place`, an index into the bytes asked for."""

    place: int
    agent: int
    time: int
    step: int
    wrote: bool
    lane: int = NOBODY  # of the same warp


class Shadow:
    """The shadow of `size` bytes."""

    def __init__(self, size: int) -> None:
        self.writer: NDArray[np.int16] = np.full(size, NOBODY, np.int16)
        self.written: NDArray[np.int32] = np.zeros(size, np.int32)
        self.step: NDArray[np.int32] = np.zeros(size, np.int32)
        self.lane: NDArray[np.int8] = np.full(size, NOBODY, np.int8)
        self.epoch: NDArray[np.int32] = np.zeros(size, np.int32)
        self.reads: dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]] = {}  # times and steps by agent

    def age(self) -> None:
        """What was done so far was done by an earlier launch, whose steps are of no interest."""
        self.step.fill(EARLIER)
        for _, steps in self.reads.values():
            steps.fill(EARLIER)

    def first_unwritten(self, where: Bytes) -> int | None:
        """The index of the first byte that nobody has written."""
        empty = (self.writer[where] == NOBODY).reshape(-1)
        return int(empty.argmax()) if empty.any() else None

    def unseen_write(self, where: Bytes, seen: NDArray[np.int32], access: Access) -> Conflict | None:
        """The last write of a byte that a clock has not seen, or that another thread of the same warp has made since
        the warp last synchronised."""
        agents, times = self.writer[where], self.written[where]
        bad = (times > seen[agents]).reshape(-1)
        if bad.any():
            at = int(bad.argmax())
            byte = where.reshape(-1)[at]
            return Conflict(at, int(self.writer[byte]), int(self.written[byte]), int(self.step[byte]), wrote=True)
        if access.lanes is None:
            return None
        lanes = access.lanes.reshape(-1, *[1] * (where.ndim - 1))
        near = (agents == access.agent) & (self.epoch[where] == access.epoch) & (self.lane[where] != lanes)
        near &= self.lane[where] != NOBODY
        if not near.any():
            return None
        at = int(near.reshape(-1).argmax())
        byte = where.reshape(-1)[at]
        time, step, lane = int(self.written[byte]), int(self.step[byte]), int(self.lane[byte])
        return Conflict(at, access.agent, time, step, wrote=True, lane=lane)

    def unseen_read(self, where: Bytes, seen: NDArray[np.int32], access: Access) -> Conflict | None:
        """A read of a byte by another agent that a clock has not seen."""
        for agent, (times, steps) in self.reads.items():
            if agent == access.agent:
                continue
            bad = (times[where] > seen[agent]).reshape(-1)
            if bad.any():
                at = int(bad.argmax())
                byte = where.reshape(-1)[at]
                return Conflict(at, agent, int(times[byte]), int(steps[byte]), wrote=False)
        return None

    def read(self, where: Bytes, access: Access) -> None:
        """Notes a read."""
        if (known := self.reads.get(access.agent)) is None:
            known = self.reads[access.agent] = (np.zeros_like(self.written), np.zeros_like(self.step))
        known[0][where] = access.time
        known[1][where] = access.step

    def write(self, where: Bytes, access: Access) -> None:
        """Notes a write."""
        self.writer[where] = access.agent
        self.written[where] = access.time
        self.step[where] = access.step
        self.epoch[where] = access.epoch
        self.lane[where] = NOBODY if access.lanes is None else access.lanes.reshape(-1, *[1] * (where.ndim - 1))
