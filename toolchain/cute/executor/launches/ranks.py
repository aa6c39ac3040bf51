"""Launches of several ranks at the same time, over memory that all of them reach.

The blocks of all ranks have one set of clocks: what a rank stores to another one is ordered by flags, or it is a race.
A rank's launches are ordered among themselves: each knows all that the one before has done, but not what other ranks
did meanwhile. So a launch that reads what arrived for it has to wait for that, whoever was the first to end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ....errors import UsageError
from ...dsl.trace import Kernel
from ..program.program import program
from ..state import banks
from ..state.block import Block
from ..state.clocks import Clocks
from ..state.memory import GlobalMemory
from .arguments import Arguments
from .launch import Launching, Report, lowered
from .schedule import run_cluster

ENDED = 1 << 30  # the time of an agent whose launch has ended


def launch_ranks(steps: Sequence[Sequence[Launching]], memory: GlobalMemory) -> list[Report]:
    """Runs one launch of each rank after another: `steps[i][r]` is the i-th of rank r. All blocks of a step run at the
    same time. The arrays in memory get what was written, also if a launch fails. Raises a Finding or UsageError."""
    if len({len(step) for step in steps}) != 1:
        raise UsageError("each step is a launch of every rank")
    most = max(one.warps for step in steps for one in step)
    clocks = Clocks(most * len(steps[0]))
    try:
        return [_step(step, memory, clocks, most) for step in steps]
    finally:
        memory.write_back()


def run_ranks(
    steps: Sequence[tuple[Kernel, Sequence[Sequence[Any]]]], grid: tuple[int, int, int], shared: Sequence[NDArray[Any]]
) -> list[Report]:
    """As `run`, on all ranks: of each step a kernel and the arguments of each rank. `shared`: the arrays that all
    reach, which are the same object in the arguments of every rank. Raises as `run`."""
    memory = GlobalMemory()
    made: list[list[Launching]] = []
    bound = Arguments(memory)
    for kernel, args in steps:
        code = program(lowered(kernel), kernel.name)
        bound.names, dims = kernel.names, code.dims or (1, 1, 1)
        made.append([
            Launching(code, values, grid, dims, kernel.shared_bytes, kernel.shared)
            for values in [bound.of_parameters(kernel.parameters, each) for each in args]
        ])  # fmt: skip
        for array in shared:
            if id(array) in bound.known:
                memory.share(bound.known[id(array)])
    return launch_ranks(made, memory)


def _step(step: Sequence[Launching], memory: GlobalMemory, clocks: Clocks, most: int) -> Report:
    conflicts = banks.Counter()
    ranks: list[list[Block]] = []
    for rank, one in enumerate(step):
        first = rank * most
        clocks.names[first : first + most] = [f"warp {number}" for number in range(most)]
        ranks.append([
            block
            for number in range(one.clusters)
            for block in one.blocks(number, memory, conflicts, clocks, first, f" of rank {rank}")
        ])  # fmt: skip
    done = run_cluster([block for blocks in ranks for block in blocks])
    for rank, blocks in enumerate(ranks):
        for agent in [agent for block in blocks for agent in block.agents.values()]:
            clocks.seen[:, rank * most : (rank + 1) * most, agent] = ENDED
        clocks.end(range(rank * most, (rank + 1) * most))
    for region in memory.regions:
        region.new_launch()
    return Report(step[0].made.name, sum(map(len, ranks)), done, conflicts.rows)
