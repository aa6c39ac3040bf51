"""Launches of several ranks at the same time, over memory that all of them reach.

The blocks of all ranks have one set of clocks: what a rank stores to another one is ordered by flags, or it is a race.
A rank's launches are ordered among themselves: each knows all that the one before has done, but not what other ranks
did meanwhile. So a launch that reads what arrived for it has to wait for that, whoever was the first to end.

Words order nothing, so no clock says whether one is written again too early. That shows if a reader is late: with a
`late` rank each rank begins its next launch when its own has ended, and one block goes on only when no other can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import UsageError
from ...dsl.trace import Kernel
from ..state import banks
from ..state.block import Block
from ..state.clocks import Clocks
from ..state.memory import GlobalMemory, Region
from .arguments import Arguments
from .launch import Launching, Report, of_traced
from .schedule import end, run_cluster, run_turn

ENDED = 1 << 30  # the time of an agent whose launch has ended


def launch_ranks(
    steps: Sequence[Sequence[Launching]], memory: GlobalMemory, late: tuple[int, int] | None = None, *,
    gives_up: bool = False,
) -> list[Report]:  # fmt: skip
    """Runs one launch of each rank after another: `steps[i][r]` is the i-th of rank r. All blocks of a step run at the
    same time. `late`: a rank and a block of it that goes on only when no other can; then steps overlap. `gives_up`:
    waits for words run out where no warp can go on, as those of a GPU do after many attempts; else that is a finding.
    The arrays in memory get what was written, also if a launch fails. Raises a Finding or UsageError."""
    if len({len(step) for step in steps}) != 1:
        raise UsageError("each step is a launch of every rank")
    most = max(one.warps for step in steps for one in step)
    clocks = Clocks(most * len(steps[0]))
    try:
        if late is not None:
            _overlapping(steps, memory, clocks, most, late)
            return []
        return [_step(step, memory, clocks, most, gives_up=gives_up) for step in steps]
    finally:
        memory.write_back()


def run_ranks(
    steps: Sequence[tuple[Kernel | Sequence[Kernel], Sequence[Sequence[Any]]]], grid: tuple[int, int, int],
    shared: Sequence[NDArray[Any]], late: tuple[int, int] | None = None,
) -> list[Report]:  # fmt: skip
    """As `run`, on all ranks: of each step a kernel, or one for each rank, and the arguments of each rank. `shared`:
    the arrays that all reach, which are the same object in the arguments of every rank. `late`: see `launch_ranks`.
    Raises as `run`."""
    memory = GlobalMemory()
    made: list[list[Launching]] = []
    bound = Arguments(memory)
    for kernels, args in steps:
        each = kernels if isinstance(kernels, Sequence) else [kernels] * len(args)
        made.append([_launching(kernel, given, grid, bound) for kernel, given in zip(each, args, strict=True)])
        for array in shared:
            if id(array) in bound.known:
                memory.share(bound.known[id(array)])
    return launch_ranks(made, memory, late)


def _launching(kernel: Kernel, args: Sequence[Any], grid: tuple[int, int, int], bound: Arguments) -> Launching:
    code = of_traced(kernel)
    bound.names = kernel.names
    values = bound.of_parameters(kernel.parameters, args)
    return Launching(code, values, grid, code.dims or (1, 1, 1), kernel.shared_bytes, kernel.shared)


def _step(
    step: Sequence[Launching], memory: GlobalMemory, clocks: Clocks, most: int, *, gives_up: bool
) -> Report:  # fmt: skip
    conflicts = banks.Counter()
    ranks = [_blocks(rank, one, memory, conflicts, clocks, most) for rank, one in enumerate(step)]
    done = run_cluster([block for blocks in ranks for block in blocks], gives_up=gives_up)
    for rank, blocks in enumerate(ranks):
        _ended(rank, blocks, clocks, most)
    for region in memory.regions:
        region.new_launch()
    return Report(step[0].made.name, sum(map(len, ranks)), done, conflicts.rows)


def _blocks(
    rank: int, one: Launching, memory: GlobalMemory, conflicts: banks.Counter, clocks: Clocks, most: int
) -> list[Block]:  # fmt: skip
    """Those of a rank's launch. `most`: warps of a rank, at most."""
    first = rank * most
    clocks.names[first : first + most] = [f"warp {number}" for number in range(most)]
    return [
        block
        for number in range(one.clusters)
        for block in one.blocks(number, memory, conflicts, clocks, first, f" of rank {rank}")
    ]


def _ended(rank: int, blocks: Sequence[Block], clocks: Clocks, most: int) -> None:
    """A rank's launch has ended."""
    for agent in [agent for block in blocks for agent in block.agents.values()]:
        clocks.seen[:, rank * most : (rank + 1) * most, agent] = ENDED
    clocks.end(range(rank * most, (rank + 1) * most))


def _overlapping(
    steps: Sequence[Sequence[Launching]], memory: GlobalMemory, clocks: Clocks, most: int, late: tuple[int, int]
) -> None:  # fmt: skip
    """Each rank runs its launches one after the other, whatever the others do."""
    conflicts, done = banks.Counter(), 0
    coming = [list(of_rank) for of_rank in zip(*steps, strict=True)]
    running = [_blocks(rank, one.pop(0), memory, conflicts, clocks, most) for rank, one in enumerate(coming)]
    own = [_regions(of_rank[0], memory) for of_rank in zip(*steps, strict=True)]
    left = [warp for blocks in running for block in blocks for warp in block.warps]
    while left:
        slow = running[late[0]][late[1] : late[1] + 1]
        left, count = run_turn([block for blocks in running for block in blocks], left, done, slow)
        done += count
        for rank, blocks in enumerate(running):
            if not blocks or not all(warp.done for block in blocks for warp in block.warps):
                continue
            end(blocks)
            _ended(rank, blocks, clocks, most)
            for region in own[rank]:
                region.new_launch()
            running[rank] = _blocks(rank, coming[rank].pop(0), memory, conflicts, clocks, most) if coming[rank] else []
            left += [warp for block in running[rank] for warp in block.warps]


def _regions(one: Launching, memory: GlobalMemory) -> list[Region]:
    """The arrays of a rank's launches that no other rank reaches."""
    bases = {int(value[0]) for value in one.values if isinstance(value, np.ndarray) and value.dtype == np.int64}
    return [region for region in memory.regions if region.base in bases and not region.shared]
