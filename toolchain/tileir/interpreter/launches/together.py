"""Launches of blocks that wait for each other: one grid, or one grid a device at the same time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from toolchain.errors import SanitizerError, UsageError

from ..analysis.fields import enum, short_name
from ..memory.shadow import races
from .findings import Findings, describe, failed_op, located
from .interleaving import RESIDENT, SCHEDULES, Failed, Schedule, Snapshot, Stuck, World, quietly, snapshot
from .runtime import Running


def run(grids: Sequence[Running], sanitize: bool, schedules: Sequence[int] | None, resident: int | None) -> None:
    """Runs grids in each schedule, from the same memory; it then holds what the first has made. Raises SanitizerError,
    which names the schedule."""
    seeds = (SCHEDULES if sanitize else SCHEDULES[:1]) if schedules is None else schedules
    if not seeds or min(seeds) < 0:
        raise UsageError(f"schedules are numbers from 0 on, at least one: {seeds}")
    if resident is not None and resident < 1:
        raise UsageError(f"at least one block must be resident, not {resident}")
    before = snapshot(grids)
    old = sanitize and len(seeds) > 1 and any(_loads_atomically(op) for each in grids for op in each.kernel.sites)
    orders = [*((seed, False) for seed in seeds), *((seed, True) for seed in seeds[: 2 * old])]
    made: dict[int, Snapshot] = {}
    for n, (seed, sees_old) in enumerate(orders):
        if n:
            before.restore()
        with quietly(n > 0), np.errstate(all="ignore"):
            wanted = made[seed] if sees_old else None
            _once(grids, seed, RESIDENT if resident is None else resident, before, sanitize, wanted)
        if len(orders) > 1 and n < 1 + old:
            made[seed] = Snapshot.of([allocation for allocation, _ in before.held])
    if made:
        made[seeds[0]].restore()


def _loads_atomically(op: Operation) -> bool:
    """True if an op is a load by which blocks communicate."""
    return short_name(op) in ("load_ptr_tko", "load_view_tko") and enum(op, "memory_ordering_semantics") != "weak"


def _once(
    grids: Sequence[Running], seed: int, resident: int, before: Snapshot, sanitize: bool,
    wanted: Snapshot | None,
) -> None:  # fmt: skip
    """Runs grids in one schedule; `wanted`: with old values, after which memory should hold this."""
    world = World(grids, old=wanted is not None)
    findings = Findings(grids, world.space, world.shared.accesses, before, world.changes)

    def fail(running: Running, said: str, op: Operation | None = None) -> SanitizerError:
        how = f"schedule {seed}" if wanted is None else f"schedule {seed}, with old values"
        return located(f"{running.kernel.symbol}: {said} ({how})", op)

    def check(*, ended: bool) -> None:
        """A race comes first: it may be the cause of what else went wrong. So may an old value, if the launch does not
        end with it as it does without."""
        race = races(world.shared.accesses, world.space, findings.depends) if sanitize else None
        if race is not None:
            running = grids[race.second.device]
            at = next((each for each in (race.second, race.first) if each.site >= 0), None)
            raise fail(running, findings.race(race), None if at is None else findings.op(at))
        if (stale := world.counters.stale()) is not None:
            update, said = stale
            raise fail(grids[0], f"{describe(update)}: {said}", update)
        if world.old is not None and not (ended and wanted is not None and wanted.unchanged()):
            found = findings.old(world.old.seen)
            if found is not None:
                said, op = found
                raise fail(grids[0], said, op)

    try:
        Schedule(world, grids, seed, resident).run()
    except Failed as failed:
        check(ended=False)
        block = failed.block
        said = findings.trap(block.device, block.block, failed.trap)
        raise fail(block.running, said, failed_op(block.running.kernel, failed.trap)) from failed.trap
    except Stuck as stuck:
        if wanted is not None:
            check(ended=False)
        raise fail(stuck.waiting[0].running, findings.stuck(stuck)) from None
    check(ended=True)
