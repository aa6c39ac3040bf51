"""Launches of blocks that wait for each other: one grid, or one grid a device at the same time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from toolchain.errors import SanitizerError, UsageError

from .findings import Findings, describe, failed_op, located
from .interleaving import RESIDENT, SCHEDULES, Failed, Schedule, Snapshot, Stuck, World, quietly, snapshot
from .runtime import Running
from .shadow import races


def run(grids: Sequence[Running], sanitize: bool, schedules: Sequence[int] | None, resident: int | None) -> None:
    """Runs grids in each schedule, from the same memory; it then holds what the first has made. Raises SanitizerError,
    which names the schedule."""
    seeds = (SCHEDULES if sanitize else SCHEDULES[:1]) if schedules is None else schedules
    if not seeds or min(seeds) < 0:
        raise UsageError(f"schedules are numbers from 0 on, at least one: {seeds}")
    if resident is not None and resident < 1:
        raise UsageError(f"at least one block must be resident, not {resident}")
    before = snapshot(grids)
    made: Snapshot | None = None
    for n, seed in enumerate(seeds):
        if n:
            before.restore()
        with quietly(n > 0), np.errstate(all="ignore"):
            _once(grids, seed, RESIDENT if resident is None else resident, before, sanitize)
        if n == 0 and len(seeds) > 1:
            made = Snapshot.of([allocation for allocation, _ in before.held])
    if made is not None:
        made.restore()


def _once(grids: Sequence[Running], seed: int, resident: int, before: Snapshot, sanitize: bool) -> None:
    world = World(grids)
    findings = Findings(grids, world.space, world.shared.accesses, before, world.changes)

    def fail(running: Running, said: str, op: Operation | None = None) -> SanitizerError:
        return located(f"{running.kernel.symbol}: {said} (schedule {seed})", op)

    def check() -> None:
        """A race comes first: it may be the cause of what else went wrong."""
        race = races(world.shared.accesses, world.space, findings.depends) if sanitize else None
        if race is not None:
            running = grids[race.second.device]
            at = next((each for each in (race.second, race.first) if each.site >= 0), None)
            raise fail(running, findings.race(race), None if at is None else findings.op(at))
        if (stale := world.counters.stale()) is not None:
            update, said = stale
            raise fail(grids[0], f"{describe(update)}: {said}", update)

    try:
        Schedule(world, grids, seed, resident).run()
    except Failed as failed:
        check()
        block = failed.block
        said = findings.trap(block.device, block.block, failed.trap)
        raise fail(block.running, said, failed_op(block.running.kernel, failed.trap)) from failed.trap
    except Stuck as stuck:
        raise fail(stuck.waiting[0].running, findings.stuck(stuck)) from None
    check()
