"""Shadow memory: who wrote and who read each byte last, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clocks import LANES, Joined

Bytes = NDArray[np.int64]  # numbers of bytes
NOBODY = -1
BITS = 8
PAGE = 1 << BITS  # bytes whose reads are kept together
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


class Reads:
    """The last reads of an agent: times and steps, and the lanes, from the first to the last, whose reads the others do
    not know of. Only pages that the agent has read are kept, behind one for all that it has not: see `places`. `first`
    is empty where lanes are not kept. `latest`: the last time of all."""

    def __init__(self, size: int) -> None:
        self.starts: NDArray[np.int64] = np.zeros(-(-size // PAGE), np.int64)  # of pages, among those that are kept
        self.count, self.latest = 1, 0  # pages that are kept
        self.times, self.steps = (np.zeros(PAGE, np.int32) for _ in range(2))
        self.first = self.last = np.zeros(0, np.int8)

    def places(self, where: Bytes, *, new: bool = False) -> NDArray[np.int64]:
        """Where the reads of some bytes are kept. `new`: where they will be, if they are not."""
        page = where >> BITS
        start = self.starts[page]
        if new and not start.all():
            self._add(np.unique(page[start == 0]))
            start = self.starts[page]
        return start | (where & PAGE - 1)

    def _add(self, pages: NDArray[np.int64]) -> None:
        self.starts[pages] = np.arange(self.count, self.count + len(pages)) << BITS
        self.count += len(pages)
        if (wanted := self.count * PAGE) > len(self.times):
            room = min(wanted + wanted // 4, (len(self.starts) + 1) * PAGE)
            self.times, self.steps = _longer(self.times, room), _longer(self.steps, room)
            if len(self.first):
                self.first, self.last = _longer(self.first, room), _longer(self.last, room)

    def keep_lanes(self) -> None:
        """From now on lanes are kept."""
        if not len(self.first):
            self.first, self.last = (np.zeros(len(self.times), np.int8) for _ in range(2))


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    made = np.zeros(size, array.dtype)
    made[: len(array)] = array
    return made


class Shadow:
    """The shadow of `size` bytes. `of_lanes`: it keeps which lanes of a warp have read, too."""

    def __init__(self, size: int, *, of_lanes: bool = False) -> None:
        self.writer: NDArray[np.int16] = np.full(size, NOBODY, np.int16)
        self.written: NDArray[np.int32] = np.zeros(size, np.int32)
        self.step: NDArray[np.int32] = np.zeros(size, np.int32)
        self.lane: NDArray[np.int8] = np.full(size, NOBODY, np.int8)
        self.of_lanes = of_lanes
        self.reads: dict[int, Reads] = {}  # by agent

    def clear(self) -> None:
        """Nobody has done anything."""
        self.reads.clear()
        if self.written.any():
            self.writer.fill(NOBODY)
            self.written.fill(0)

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
            within = agent in joined and access.lanes is not None and len(known.first) > 0
            unseen = agent != access.agent and known.latest > seen[agent]
            if not unseen and not (within and known.latest > joined[agent].min()):
                continue
            places = known.places(where)
            times = known.times[places]
            bad = times > seen[agent] if unseen else np.zeros(1, np.bool_)
            near = None
            if within and not bad.any():
                lanes, first, last = access.lanes_of(where), known.first[places], known.last[places]
                near = np.where(first != lanes, first, last)
                bad = (near != lanes) & (times > joined[agent][near])
            if bad.any():
                at = int(bad.reshape(-1).argmax())
                byte = where.reshape(-1)[at]
                lane = NOBODY if near is None else int(near.reshape(-1)[at])
                place = known.places(byte)
                return Conflict(at, agent, int(known.times[place]), int(known.steps[place]), wrote=False, lane=lane)
        return None

    def read(self, where: Bytes, access: Access, joined: Joined) -> None:
        """Notes a read."""
        if (known := self.reads.get(access.agent)) is None:
            known = self.reads[access.agent] = Reads(len(self.written))
        places = known.places(where, new=True)
        if self.of_lanes and access.lanes is not None and access.agent in joined:
            known.keep_lanes()
            times = joined[access.agent]
            over = places[known.times[places] <= np.minimum(times[known.first[places]], times[known.last[places]])]
            known.first[over], known.last[over] = LANES - 1, 0
            lanes = np.broadcast_to(access.lanes_of(where), where.shape).astype(np.int8).reshape(-1)
            np.minimum.at(known.first, places.reshape(-1), lanes)
            np.maximum.at(known.last, places.reshape(-1), lanes)
        known.times[places] = access.time
        known.steps[places] = access.step
        known.latest = max(known.latest, access.time)

    def write(self, where: Bytes, access: Access) -> None:
        """Notes a write."""
        self.writer[where] = access.agent
        self.written[where] = access.time
        self.step[where] = access.step
        self.lane[where] = access.lanes_of(where)
