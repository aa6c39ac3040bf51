"""Runs the warps of a cluster's blocks by turns, each until it must wait."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from ....errors import UsageError
from ..instructions import cluster, tensor_memory
from ..state.block import Block, Wait, Warp
from ..state.findings import Deadlock, DivergentBarrier, Finding, Race, Uninitialised
from ..state.shadow import NOBODY

BARRIERS = ("nvvm.barrier0", "cute_nvgpu.arch.barrier", "bar.sync")
LIMIT = 20_000_000  # steps of a block


def run_cluster(blocks: Sequence[Block], *, gives_up: bool = False) -> int:
    """Runs the blocks of a cluster to their ends. `gives_up`: see `run_turn`. Returns the steps of all warps. Raises a
    finding."""
    steps, left = 0, [warp for block in blocks for warp in block.warps]
    while left:
        left, done = run_turn(blocks, left, steps, gives_up=gives_up)
        steps += done
    end(blocks)
    return steps


def end(blocks: Sequence[Block]) -> None:
    """Raises a finding if blocks whose warps have ended should not have."""
    for block in blocks:
        cluster.at_end(block)


def run_turn(
    blocks: Sequence[Block], left: list[Warp], before: int, last: Container[Block] = (), *, gives_up: bool = False
) -> tuple[list[Warp], int]:  # fmt: skip
    """Runs each warp that can go on until it must wait. `left`: those that have not ended. `before`: steps of earlier
    turns. `last`: the warps of these blocks go on only when no other can. `gives_up`: where no warp can go on, bounded
    waits run out. Returns those left, and the steps. Raises a finding."""
    steps = 0
    ready = [warp for warp in left if warp.wait is None or warp.wait.ready()]
    if not ready and gives_up:
        ready = [warp for warp in left if warp.wait is not None and warp.wait.bounded]
    if not ready:
        _stuck(blocks, left)
    with np.errstate(all="ignore"):  # threads that are not active compute with what they have
        for warp in [warp for warp in ready if warp.block not in last] or ready:
            try:
                steps += _run(warp)
            except Uninitialised as found:
                _explain(warp.block, [other for other in left if other is not warp], found)
                raise
            if before + steps > LIMIT:
                name = blocks[0].kernel
                raise UsageError(f"{name}: no end after {before + steps} steps of one block", hint="a smaller shape")
    return [warp for warp in left if not warp.done], steps


def _run(warp: Warp) -> int:
    """Runs a warp until it ends or waits."""
    program, count = warp.block.steps, 0
    if warp.wait is not None:
        _resume(warp, warp.wait)
    while not warp.done:
        step = program[warp.pc]
        if warp.pending:
            warp.check_registers(step)
        wait = step.run(warp)
        count += 1
        if wait is not None:
            if not wait.ready():
                warp.wait = wait
                return count
            wait.resume()
        warp.pc += 1
    return count


def _explain(block: Block, others: list[Warp], found: Uninitialised) -> None:
    """Raises Race instead if another warp writes what was read before it was written."""
    owners = [one for one in block.cluster.blocks if one.shared.name == found.tensor]
    if found.address is None or not (owners or found.tensor == tensor_memory.NAME):
        return
    while ready := [warp for warp in others if not warp.done and (warp.wait is None or warp.wait.ready())]:
        for warp in ready:
            try:
                _run(warp)
            except Finding:  # another's mistake; this one is reported first
                others.remove(warp)
    if found.tensor == tensor_memory.NAME:
        if tensor_memory.of(block).written.flat[found.address]:
            raise Race(found.site, tensor_memory.UNORDERED, tensor=found.tensor, address=found.address)
        return
    block = owners[0]
    writer = int(block.shared.shadow.writer[found.address])
    if writer != NOBODY:
        step, name = block.steps[block.shared.shadow.step[found.address]], block.clocks.names[writer]
        place = block.shared.place(found.address)
        said = f"reads {place}, which {step} ({name}) writes: no barrier orders the two"
        raise Race(found.site, said, tensor=found.tensor, address=found.address)


def _resume(warp: Warp, wait: Wait) -> None:
    wait.resume()
    warp.wait = None
    warp.pc += 1


def _stuck(blocks: Sequence[Block], left: list[Warp]) -> None:
    """Raises a finding that says where each warp waits."""
    lines: list[str] = []
    for warp in left:
        assert warp.wait is not None
        of = f" of block {warp.block.place}" if len(blocks) > 1 else ""
        lines.append(f"  warp {warp.number}{of} at {warp.step} waits for {warp.wait.what()}")
    gone = sum(len(block.warps) for block in blocks) - len(left)
    if gone:
        lines.append(f"  {gone} other warps have ended")
    at_barrier = all(warp.step.name in BARRIERS for warp in left)
    kind = DivergentBarrier if at_barrier else Deadlock
    left[0].fail(kind, "no warp can go on\n" + "\n".join(_grouped(lines)))


def _grouped(lines: list[str]) -> list[str]:
    """Consecutive warps that wait alike, in one line."""
    made: list[str] = []
    for line in lines:
        number, _, rest = line.removeprefix("  warp ").partition(" ")
        if made and made[-1].startswith("  warp") and made[-1].endswith(rest):
            first = made[-1].split()[1].split("-")[0]
            made[-1] = f"  warps {first}-{number} {rest}"
        else:
            made.append(line)
    return made
