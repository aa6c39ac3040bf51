"""Runs blocks that may wait for each other by turns.

A kernel in which a loop may wait (analysis/waits.py) is generated as a coroutine. It stops before each access by which
blocks communicate and at each turn of such a loop; all other kernels run block after block, unchanged. A schedule says
which block goes on: 0, the lowest that can; 1, the highest; any other number is a seed. So of each two blocks either
one is ahead once. An unordered access (memory/shadow.py) is found in any of them, since a load that nothing orders may
see an old value, whatever it saw here. Atomic loads see old values in runs of their own (memory/old_values.py).

A block whose loop has made a turn without a change, of memory or of what the loop carries, makes no other until memory
changes. If all are such, they wait for ever. Blocks that count their turns have no end that can be seen: they are
stopped once nobody has changed memory for QUIET turns, and all after MOST.
"""

from __future__ import annotations

import heapq
import io
import random
from collections.abc import Generator, Iterator, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..analysis.counters import Counters
from ..memory.log import EARLIER, LATER, NOTHING, Access, AccessLog, Clock, Mode, Shared, merged
from ..memory.memory import AddressSpace, Allocation, Pointer, Trap
from ..memory.old_values import OldValues
from .runtime import Grid, Running, Runtime, indices

QUIET = 200_000
MOST = 5_000_000
TIRED = 32  # turns without a change of memory after which another block goes first
RESIDENT = 8192  # blocks that run at once on a device; no GPU holds more
SCHEDULES = (0, 1, 2, 3)


class Stuck(Exception):
    """No block that has begun can go on. `waiting`: those blocks; `unstarted`: a block that has not begun for each
    device that is full."""

    def __init__(self, waiting: Sequence[BlockRuntime], unstarted: Sequence[tuple[int, Grid]], why: str) -> None:
        super().__init__(why)
        self.waiting, self.unstarted, self.why = waiting, unstarted, why


class Failed(Exception):
    """A trap in a block."""

    def __init__(self, block: BlockRuntime, trap: Trap) -> None:
        super().__init__(str(trap))
        self.block, self.trap = block, trap


def space_of(grids: Sequence[Running]) -> AddressSpace:
    """A space with the memory whose addresses the program knows."""
    return AddressSpace([each for running in grids for each in running.placed])


class World:
    """What the blocks of a launch share. `version` counts the changes of memory. `old`: loads see old values where they
    may."""

    def __init__(self, grids: Sequence[Running], *, old: bool = False) -> None:
        self.space = space_of(grids)
        self.old = OldValues(self.space, self._renewed) if old else None
        self.shared = Shared(old=self.old)
        self.counters = Counters()
        self.version = 0
        self.changes: set[int] = set()  # the accesses, by their place in the log, that changed memory
        self._grids = grids
        self._outside = sum(running.blocks for running in grids)  # numbers behind those of the blocks
        self.before = [self._around(EARLIER, device, NOTHING) for device in range(len(grids))]
        self._known = list(self.before)

    def _renewed(self) -> None:
        """The next load of a place may see another value, as if memory had changed."""
        self.version += 1

    def end(self, block: BlockRuntime) -> None:
        """A block has ended, and with it what the launch after it comes after has grown."""
        self._known[block.device] = merged((self._known[block.device], block.log.known))

    def end_all(self) -> None:
        """All have ended: the launches after this one access memory."""
        for device, known in enumerate(self._known):
            self._around(LATER, device, known)

    def _around(self, site: int, device: int, clock: Clock) -> Clock:
        """Records what a device does before or after the launch, as one block's accesses. Returns what comes after."""
        running = self._grids[device]
        found = running.before if site == EARLIER else running.after
        block, self._outside = self._outside, self._outside + 1
        for local, one in enumerate(found):
            number = self.space.number(self.space.address(Pointer(one.memory)))
            mode = Mode(reads=not one.writes, writes=one.writes)
            self.shared.accesses.append(
                Access(site, device, block, local, 0, mode, clock, number, one.itemsize, None, one.offsets)
            )
        return {block: (1 << len(found)) - 1} if found else NOTHING


class BlockRuntime(Runtime):
    """One block under way. `loop`: the loop that it waits in, by its number in the kernel."""

    def __init__(self, world: World, running: Running, device: int, values: tuple[Any, ...], index: Grid) -> None:
        log = AccessLog(world.shared, device, world.before[device])
        super().__init__(
            running.grid, running.globals, world.space, log, running.first, padded=running.padded,
            counters=world.counters,
        )  # fmt: skip
        self.world, self.device, self.running = world, device, running
        self.index = index
        self.loop: int | None = None
        self.idle = False
        self.quiet = 0
        self._turns: dict[int, tuple[int, list[Any]]] = {}
        self.steps: Generator[None] = running.kernel.run(self, values, [index])

    def change(self) -> None:
        """Memory has changed, by the access that was recorded last."""
        self.world.version += 1
        self.world.changes.add(len(self.world.shared.accesses) - 1)

    def renew(self) -> None:
        """A load by which blocks communicate is done."""
        if self.world.old is not None:
            self.world.old.renew()

    def enter(self, loop: int) -> None:
        self._turns.pop(loop, None)

    def turn(self, loop: int, carried: list[Any]) -> None:
        """A turn of a loop that may wait begins with these values."""
        before, version = self._turns.get(loop), self.world.version
        self._turns[loop] = version, carried
        same = before is not None and before[0] == version
        self.loop = loop
        self.quiet = self.quiet + 1 if same else 0
        self.idle = same and all(map(_equal, before[1], carried))  # pyright: ignore[reportOptionalSubscript]


def _equal(one: Any, other: Any) -> bool:
    return one is other or bool(np.array_equal(one, other))


class Schedule:
    """The order in which the blocks of some grids run, one grid a device."""

    def __init__(self, world: World, grids: Sequence[Running], seed: int, resident: int) -> None:
        self.world, self.seed = world, seed
        self._random = random.Random(seed)
        self._ready: list[tuple[int, float, int, BlockRuntime]] = []
        self._parked: list[BlockRuntime] = []
        self._left: list[Iterator[BlockRuntime]] = []
        self._count = 0
        for device, running in enumerate(grids):
            self._left.append(_blocks(world, running, device))
            for _ in range(resident):
                if not self._start(device):
                    break

    def _start(self, device: int) -> bool:
        block = next(self._left[device], None)
        if block is not None:
            self._push(block, 0)
        return block is not None

    def _push(self, block: BlockRuntime, rank: int) -> None:
        """Blocks of a lower rank run first."""
        self._count += 1
        place = block.running.number(block.index)
        key = place if self.seed == 0 else -place if self.seed == 1 else self._random.random()
        heapq.heappush(self._ready, (rank, key, self._count, block))

    def run(self) -> None:
        """Runs all blocks to their end. Raises Stuck or Failed."""
        changed, steps, quiet = self.world.version, 0, 0
        while self._ready:
            block = heapq.heappop(self._ready)[-1]
            block.idle = False
            try:
                ended = next(block.steps, block) is block
            except Trap as trap:
                raise Failed(block, trap) from trap
            steps, quiet = steps + 1, quiet + 1
            if self.world.version != changed:
                changed, quiet = self.world.version, 0
                for parked in self._parked:
                    self._push(parked, 1)
                self._parked.clear()
            if ended:
                self.world.end(block)
                quiet = 0
                self._start(block.device)
            elif block.idle:
                self._parked.append(block)
            else:
                self._push(block, block.quiet // TIRED)
            if quiet > QUIET or steps > MOST:
                why = f"after {QUIET} turns in which none changed memory" if quiet > QUIET else f"after {MOST} turns"
                raise self._stuck(why)
        if self._parked:
            raise self._stuck("")
        self.world.end_all()

    def _stuck(self, why: str) -> Stuck:
        waiting = [*self._parked, *(entry[-1] for entry in self._ready)]
        waiting.sort(key=lambda block: (block.device, block.index[::-1]))
        unstarted = [
            (device, block.index) for device, left in enumerate(self._left) if (block := next(left, None)) is not None
        ]
        return Stuck(waiting, unstarted, why)


def _blocks(world: World, running: Running, device: int) -> Iterator[BlockRuntime]:
    """The blocks of a grid, in the order in which they begin."""
    values = running.bind(world.space)
    return (BlockRuntime(world, running, device, values, index) for index in indices(running.grid))


@dataclass
class Snapshot:
    """What some allocations held."""

    held: list[tuple[Allocation, np.ndarray[Any, Any]]]

    @classmethod
    def of(cls, allocations: Sequence[Allocation]) -> Snapshot:
        return cls([(one, one.bytes.copy()) for one in allocations if one.bytes.flags.writeable])

    def restore(self) -> None:
        for allocation, held in self.held:
            allocation.bytes[...] = held

    def unchanged(self) -> bool:
        """True if they hold it now."""
        return all(np.array_equal(one.bytes, held) for one, held in self.held)

    def before(self, allocation: Allocation) -> np.ndarray[Any, Any] | None:
        return next((held for one, held in self.held if one is allocation), None)


def quietly(silent: bool) -> Any:
    """What a kernel prints is shown once, whatever number of schedules is tried."""
    return redirect_stdout(io.StringIO()) if silent else nullcontext()


def snapshot(grids: Sequence[Running]) -> Snapshot:
    """The memory that these grids can reach, before they run."""
    space = space_of(grids)
    for running in grids:
        running.bind(space)
    known = [each.memory for running in grids for each in running.placed]
    reached = [*space.allocations, *known, *(one for running in grids for one in running.globals.values())]
    return Snapshot.of(list({id(one): one for one in reached}.values()))
