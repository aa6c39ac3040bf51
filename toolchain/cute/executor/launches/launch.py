"""A launch: compiles a kernel to steps, puts its arguments into memory, and runs block after block."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ....contract.artifact import MAX_SHARED, MAX_THREADS
from ....contract.launching import check_grid
from ....errors import UsageError
from ...dsl.trace import Kernel, SharedPart
from ...nvvm.emit import uncollected
from ...parse import parse
from ...passes import PASSES, PIPELINE
from ..program.program import Program, program
from ..ptx import given_types, is_ptx, program_of
from ..ptx import parse as parse_ptx
from ..state import banks
from ..state.block import NEVER, WARP, Block, Cluster, Ticket, Warp
from ..state.clocks import Clocks
from ..state.memory import SHARED_BASE, GlobalMemory, Region
from ..state.shadow import Shadow
from .arguments import Arguments
from .schedule import run_cluster

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
        made = of_traced(kernel) if isinstance(kernel, Kernel) else program(lowered(kernel), name)
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
    return program(lowered(parse(text)), name)


@functools.lru_cache(maxsize=8)
def of_traced(kernel: Kernel) -> Program:
    """The kernel. Raises SourceError or UsageError."""
    return program(lowered(kernel), kernel.name)


def launch(
    made: Program, values: Sequence[Any], memory: GlobalMemory, grid: tuple[int, int, int], dims: tuple[int, int, int],
    shared_bytes: int, parts: Sequence[SharedPart] = (), cluster: tuple[int, int, int] = (1, 1, 1), *,
    resident: bool = False,
) -> Report:  # fmt: skip
    """Runs a kernel with a value for each of its parameters. `dims`: threads of a block. `parts`: what its dynamic
    shared memory holds. `cluster`: the blocks of one, if the kernel does not say. The arrays in memory get what it
    wrote, also if it fails. Raises a Finding or UsageError."""
    one = Launching(made, values, grid, dims, shared_bytes, parts, cluster)
    conflicts, steps = banks.Counter(), 0
    # One order for all needs one set of clocks; words order nothing, so the clusters of other kernels have their own.
    clocks, waiting = Clocks(one.warps) if resident and made.flags else None, list[Block]()
    try:
        for number in range(one.clusters):
            waiting += one.blocks(number, memory, conflicts, clocks, named=resident)
            if resident and number + 1 < one.clusters:
                continue
            steps += run_cluster(waiting)
            waiting = []
            for region in memory.regions:
                region.new_block()
    finally:
        memory.write_back()
    return Report(made.name, math.prod(grid), steps, conflicts.rows)


@dataclass(frozen=True)
class Launching:
    """A kernel with a value for each of its parameters, and the blocks that run it: see `launch`. Raises UsageError."""

    made: Program
    values: Sequence[Any]
    grid: tuple[int, int, int]
    dims: tuple[int, int, int]
    shared_bytes: int
    parts: Sequence[SharedPart] = ()
    cluster: tuple[int, int, int] = (1, 1, 1)

    def __post_init__(self) -> None:
        made, dims, grid = self.made, self.dims, self.grid
        if not 1 <= dims[0] * dims[1] * dims[2] <= MAX_THREADS or min(dims) < 1:
            raise UsageError(
                f"{made.name}: {dims} threads in {grid} blocks", hint=f"1 to {MAX_THREADS} threads: threads=128"
            )
        if len(grid) != 3 or any(each < 1 or each != int(each) for each in grid):
            raise UsageError(
                f"{made.name}: a grid of {grid} blocks", hint="one to three numbers from 1 on: grid=(8, 4)"
            )
        check_grid(made.name, grid)
        if self.total > MAX_SHARED:
            raise UsageError(f"{made.name}: {self.total} bytes of shared memory, and a block has at most {MAX_SHARED}")
        if min(self.size) < 1 or any(count % each for count, each in zip(grid, self.size, strict=True)):
            raise UsageError(
                f"{made.name}: a grid of {grid} blocks has no clusters of {self.size}", hint="a multiple of it"
            )

    @property
    def total(self) -> int:
        """Bytes of a block's shared memory."""
        return self.made.shared_bytes + self.shared_bytes

    @property
    def size(self) -> tuple[int, int, int]:
        """Of a cluster."""
        return self.made.cluster or self.cluster

    @property
    def clusters(self) -> int:
        return math.prod(self.grid) // math.prod(self.size)

    @property
    def warps(self) -> int:
        """Of all blocks."""
        return math.prod(self.grid) * -(-math.prod(self.dims) // WARP)

    @functools.cached_property
    def ahead(self) -> bool:
        """Whether it may begin before the launch before ends."""
        return self.made.waits

    @functools.cached_property
    def registers(self) -> list[Any]:
        made = list(self.made.constants)
        for register, value in zip(self.made.parameters, self.values, strict=True):
            made[register] = value
        return made

    def blocks(
        self, number: int, memory: GlobalMemory, conflicts: banks.Counter, clocks: Clocks | None = None, first: int = 0,
        of_rank: str = "", *, named: bool = False,
    ) -> list[Block]:  # fmt: skip
        """The blocks of a cluster. `clocks`: of all blocks that run at the same time, if these are more than its own;
        `first` warps are before this launch's. `of_rank`: whose launch it is, in words. `named`: findings say of which
        block a warp or shared memory is, which those of a cluster do anyway."""
        made, within, total = self.made, _places(self.size), self.total
        warps = self.warps // self.clusters
        together = Cluster(self.size, warps, clocks, first + number * warps if clocks else 0)
        x0, y0, z0 = _places(self.grid, self.size)[number]
        for x, y, z in within:
            place = x0 + x, y0 + y, z0 + z
            of = f" of block {place}{of_rank}" if named or len(within) > 1 or clocks else ""
            parts = [(made.shared_bytes + start, count, said + of) for start, count, said in self.parts]
            data, shadow = np.zeros(total, np.uint8), Shadow(total, of_lanes=True)
            shared = Region(f"shared memory{of}", SHARED_BASE, data, shadow, ready=False, parts=parts)
            name = made.name + of_rank
            block = Block(name, made.steps, place, self.grid, self.dims, memory, shared, conflicts, together)
            block.warps = [_warp(block, n, self.registers, made) for n in range(-(-block.threads // WARP))]
            for warp in block.warps:
                warp.ahead = self.ahead
            for warp in block.warps if of else ():
                together.clocks.names[warp.agent_number] += of
        return together.blocks


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


@uncollected()
def lowered(kernel: Kernel | ModuleOp) -> ModuleOp:
    """The module before its instructions become text."""
    made = (kernel.module if isinstance(kernel, Kernel) else kernel).clone()
    for name in LEVEL:
        PASSES[name](made)
    return made
