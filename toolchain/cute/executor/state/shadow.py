"""Shadow memory: who wrote and who read each byte last, and when."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .clocks import LANES, Joined

Bytes = NDArray[np.int64]  # numbers of bytes
NOBODY = -1
EARLIER = -1  # the step of what an earlier launch did


@dataclass(frozen=True)
class Access:
    """`agent` at its `time`, by the operation of a step. `lanes`: those of the warp that do it, or that begin it, along
    the first axis of the bytes; without lanes the whole agent acts at once."""

    agent: int
    time: int
    step: int
    lanes: NDArray[np.int64] | None = None

    def lanes_of(self, where: Bytes) -> NDArray[np.int64] | int:
        """The lane of each byte, as an array that broadcasts, or NOBODY."""
        return NOBODY if self.lanes is None else self.lanes.reshape(-1, *[1] * (where.ndim - 1))


@dataclass(frozen=True)
class Conflict:
    """An earlier access that is not ordered before one to the byte `place`, an index into the bytes asked for."""

    place: int
    agent: int
    time: int
    step: int
    wrote: bool
    lane: int = NOBODY  # of the same warp


@dataclass
class Reads:
    """The last reads of an agent: times and steps, and the lanes, from the first to the last, whose reads the others do
    not know of. `first` is empty where lanes are not kept."""

    times: NDArray[np.int32]
    steps: NDArray[np.int32]
    first: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    last: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))


class Shadow:
    """The shadow of `size` bytes. `of_lanes`: it keeps which lanes of a warp have read, too."""

    def __init__(self, size: int, *, of_lanes: bool = False) -> None:
        self.writer: NDArray[np.int16] = np.full(size, NOBODY, np.int16)
        self.written: NDArray[np.int32] = np.zeros(size, np.int32)
        self.step: NDArray[np.int32] = np.zeros(size, np.int32)
        self.lane: NDArray[np.int8] = np.full(size, NOBODY, np.int8)
        self.of_lanes = of_lanes
        self.reads: dict[int, Reads] = {}  # by agent

    def age(self) -> None:
        """What was done so far was done by an earlier launch, whose steps are of no interest."""
        self.step.fill(EARLIER)
        for known in self.reads.values():
            known.steps.fill(EARLIER)

    def first_unwritten(self, where: Bytes) -> int | None:
        """The index of the first byte that nobody has written."""
        empty = (self.writer[where] == NOBODY).reshape(-1)
        return int(empty.argmax()) if empty.any() else None

    def unseen_write(self, where: Bytes, seen: NDArray[np.int32], access: Access, joined: Joined) -> Conflict | None:
        """The last write of a byte that a clock has not seen, or that another lane of the same warp has made or begun
        and the others do not know of: see clocks.py."""
        agents, times = self.writer[where], self.written[where]
        bad = (times > seen[agents]).reshape(-1)
        if bad.any():
            at = int(bad.argmax())
            byte = where.reshape(-1)[at]
            return Conflict(at, int(self.writer[byte]), int(self.written[byte]), int(self.step[byte]), wrote=True)
        if access.lanes is None:
            return None
        lane = self.lane[where]
        others = (lane != access.lanes_of(where)) & (lane != NOBODY)
        for agent, known in joined.items() if others.any() else ():
            near = others & (agents == agent) & (times > known[lane])
            if near.any():
                at = int(near.reshape(-1).argmax())
                byte = where.reshape(-1)[at]
                time, step = int(self.written[byte]), int(self.step[byte])
                return Conflict(at, agent, time, step, wrote=True, lane=int(self.lane[byte]))
        return None

    def unseen_read(self, where: Bytes, seen: NDArray[np.int32], access: Access, joined: Joined) -> Conflict | None:
        """A read of a byte by another agent that a clock has not seen, or by another lane of the same warp that the
        others do not know of."""
        for agent, known in self.reads.items():
            times = known.times[where]
            bad = times > seen[agent] if agent != access.agent else np.zeros(1, np.bool_)
            near = None
            if agent in joined and access.lanes is not None and len(known.first) and not bad.any():
                lanes, first, last = access.lanes_of(where), known.first[where], known.last[where]
                near = np.where(first != lanes, first, last)
                bad = (near != lanes) & (times > joined[agent][near])
            if bad.any():
                at = int(bad.reshape(-1).argmax())
                byte = where.reshape(-1)[at]
                lane = NOBODY if near is None else int(near.reshape(-1)[at])
                return Conflict(at, agent, int(known.times[byte]), int(known.steps[byte]), wrote=False, lane=lane)
        return None

    def read(self, where: Bytes, access: Access, joined: Joined) -> None:
        """Notes a read."""
        if (known := self.reads.get(access.agent)) is None:
            known = self.reads[access.agent] = Reads(np.zeros_like(self.written), np.zeros_like(self.step))
        if self.of_lanes and access.lanes is not None and access.agent in joined:
            if not len(known.first):
                known.first, known.last = (np.zeros(len(self.written), np.int8) for _ in range(2))
            times = joined[access.agent]
            over = where[known.times[where] <= np.minimum(times[known.first[where]], times[known.last[where]])]
            known.first[over], known.last[over] = LANES - 1, 0
            lanes = np.broadcast_to(access.lanes_of(where), where.shape).astype(np.int8).reshape(-1)
            np.minimum.at(known.first, where.reshape(-1), lanes)
            np.maximum.at(known.last, where.reshape(-1), lanes)
        known.times[where] = access.time
        known.steps[where] = access.step

    def write(self, where: Bytes, access: Access) -> None:
        """Notes a write."""
        self.writer[where] = access.agent
        self.written[where] = access.time
        self.step[where] = access.step
        self.lane[where] = access.lanes_of(where)
