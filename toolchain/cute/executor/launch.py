"""A launch: compiles a kernel to steps, puts its arguments into memory, and runs block after block."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ...contract.artifact import MAX_SHARED, MAX_THREADS
from ...contract.launching import check_grid
from ...errors import UsageError
from ..dsl.trace import Kernel, SharedPart
from ..parse import parse
from ..passes import PASSES, PIPELINE
from . import banks
from .arguments import Arguments
from .clocks import Clocks
from .memory import SHARED_BASE, GlobalMemory, Region
from .program import Program, program
from .ptx import given_types, is_ptx, program_of
from .ptx import parse as parse_ptx
from .schedule import run_cluster
from .shadow import Shadow
from .state import NEVER, WARP, Block, Cluster, Ticket, Warp

LEVEL = PIPELINE[:-1]  # the passes before instructions become text
Grid = int | tuple[int, ...]


@dataclass(frozen=True)
class Report:
    """What a launch did. `steps`: of all warps. `accesses`: of shared memory, by instruction, the worst first."""

    kernel: str
    blocks: int
    steps: int
    accesses: tuple[banks.Conflicts, ...]

    @property
    def conflicts(self) -> tuple[banks.Conflicts, ...]:
        """The instructions with bank conflicts."""
        return tuple(row for row in self.accesses if row.worst > 1)

    def __str__(self) -> str:
        head = f"{self.kernel}: {self.blocks} blocks ran, no error"
        rows = [f"  {row}" for row in self.conflicts] or ["  none"]
        return "\n".join([head, "bank conflicts of shared memory:", *rows])


def run(
    kernel: Kernel | ModuleOp | Program | str, args: Sequence[Any] | Mapping[str, Any], grid: Grid = 1, *,
    threads: Grid = 0, shared_bytes: int = 0, name: str = "", cluster: Grid = 1, ptx: str = "",
    resident: bool = False,
) -> Report:  # fmt: skip
    """Runs a kernel on a grid of blocks. Arrays of `args` are changed in place.

    `args`: for a kernel in Python one argument for each parameter: a numpy array, a TensorMap or a number. For MLIR
    text or a module one for each parameter of the function, an array for its pointer. If they are named, findings say
    these names. `threads`, `shared_bytes`: of a block, if the text does not say. `cluster`: the blocks that run
    together, if the kernel does not say. `name`: of the kernel, if there are several. `ptx`: what the kernel became, to
    run in its place; text and a Program may be PTX themselves. `resident`: all blocks run at the same time and may wait
    for each other's words, as those of a cooperative launch. Raises a Finding, UsageError or SourceError.
    """
    traced = kernel if isinstance(kernel, Kernel) else None
    if ptx or isinstance(kernel, str):
        made = of_text(ptx or str(kernel), traced.name if traced else name)
    elif isinstance(kernel, Program):
        made = kernel
    else:
        made = program(_lowered(kernel), traced.name if traced else name)
    memory = GlobalMemory()
    bound = Arguments(memory, tuple(args) if isinstance(args, Mapping) else traced.names if traced else ())
    given = list(args.values() if isinstance(args, Mapping) else args)
    if traced:
        values = bound.of_parameters(traced.parameters, given)
    else:
        values = bound.of_types(given_types(made.types, given), given)
    parts = traced.shared if traced else ()
    dynamic = traced.shared_bytes if traced else shared_bytes
    sizes = _three(grid), made.dims or _three(threads)
    return launch(made, values, memory, *sizes, dynamic, parts, _three(cluster), resident=resident)


@functools.lru_cache(maxsize=8)
def of_text(text: str, name: str = "") -> Program:
    """The kernel in MLIR text, or in PTX. Raises SourceError or UsageError."""
    if is_ptx(text):
        return program_of(parse_ptx(text, f"{name or 'kernel'}.ptx"), name)
    return program(_lowered(parse(text)), name)


def launch(
    made: Program, values: Sequence[Any], memory: GlobalMemory, grid: tuple[int, int, int], dims: tuple[int, int, int],
    shared_bytes: int, parts: Sequence[SharedPart] = (), cluster: tuple[int, int, int] = (1, 1, 1), *,
    resident: bool = False,
) -> Report:  # fmt: skip
    """Runs a kernel with a value for each of its parameters. `dims`: threads of a block. `parts`: what its dynamic
    shared memory holds. `cluster`: the blocks of one, if the kernel does not say. The arrays in memory get what it
    wrote, also if it fails. Raises a Finding or UsageError."""
    registers = list(made.constants)
    for register, value in zip(made.parameters, values, strict=True):
        registers[register] = value
    if not 1 <= dims[0] * dims[1] * dims[2] <= MAX_THREADS or min(*dims, *grid) < 1:
        raise UsageError(
            f"{made.name}: {dims} threads in {grid} blocks", hint=f"1 to {MAX_THREADS} threads: threads=128"
        )
    check_grid(made.name, grid)
    total = made.shared_bytes + shared_bytes
    if total > MAX_SHARED:
        raise UsageError(f"{made.name}: {total} bytes of shared memory, and a block has at most {MAX_SHARED}")
    conflicts, steps = banks.Counter(), 0
    named = [(made.shared_bytes + start, size, said) for start, size, said in parts]
    size = made.cluster or cluster
    if min(size) < 1 or any(count % each for count, each in zip(grid, size, strict=True)):
        raise UsageError(f"{made.name}: a grid of {grid} blocks has no clusters of {size}", hint="a multiple of it")
    firsts, within = _places(grid, size), _places(size)
    warps = len(within) * -(-math.prod(dims) // WARP)
    clocks, waiting = Clocks(warps * len(firsts)) if resident else None, list[Block]()
    try:
        for number, first in enumerate(firsts):
            together = Cluster(size, warps, clocks, number * warps if resident else 0)
            for x, y, z in within:
                place = first[0] + x, first[1] + y, first[2] + z
                of = f" of block {place}" if len(within) > 1 or resident else ""
                parts_ = [(start, count, said + of) for start, count, said in named]
                data = np.zeros(total, np.uint8)
                shared = Region(f"shared memory{of}", SHARED_BASE, data, Shadow(total), ready=False, parts=parts_)
                block = Block(made.name, made.steps, place, grid, dims, memory, shared, conflicts, together)
                block.warps = [_warp(block, n, registers, made) for n in range(-(-block.threads // WARP))]
                for warp in block.warps if of else ():
                    together.clocks.names[warp.agent_number] += of
            waiting += together.blocks
            if resident and number + 1 < len(firsts):
                continue
            steps += run_cluster(waiting)
            waiting = []
            for region in memory.regions:
                region.new_block()
    finally:
        memory.write_back()
    return Report(made.name, len(firsts) * len(within), steps, conflicts.rows)


def _places(grid: tuple[int, int, int], steps: tuple[int, int, int] = (1, 1, 1)) -> list[tuple[int, int, int]]:
    """The places of a grid, x first, in steps."""
    xs, ys, zs = (range(0, end, step) for end, step in zip(grid, steps, strict=True))
    return [(x, y, z) for z in zs for y in ys for x in xs]


def _warp(block: Block, number: int, registers: Sequence[Any], made: Program) -> Warp:
    warp = Warp(block, number, registers, made.local_bytes, made.gaps)
    warp.pending = {register: Ticket(NEVER) for register in made.undefined}
    warp.loaded, warp.unfenced = {register: register for register in made.fragile}, set(made.fragile)
    return warp


def _three(sizes: Grid) -> tuple[int, int, int]:
    x, y, z = [*(sizes if isinstance(sizes, tuple) else (sizes,)), 1, 1][:3]
    return x, y, z


def _lowered(kernel: Kernel | ModuleOp) -> ModuleOp:
    """The module before its instructions become text."""
    made = (kernel.module if isinstance(kernel, Kernel) else kernel).clone()
    for name in LEVEL:
        PASSES[name](made)
    return made
