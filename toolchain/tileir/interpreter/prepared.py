"""Bytecode made ready to run, and launches of it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from toolchain.contract.launching import check_grid, number
from toolchain.errors import LaunchError, SanitizerError, UsageError

from .. import bytecode
from . import access, control, conversions, floats, integers, printing, shapes
from .codegen import Kernel, check_supported, compile_entry, region_block, where
from .fields import entries, globals_, short_name, tile_of
from .memory import AddressSpace, Allocation, Pointer, Trap
from .shadow import Access, AccessLog, Race, races
from .taint import flows

Argument = Pointer | int | float
Grid = tuple[int, int, int]

# Importing these registers their lowerings.
_FAMILIES = (access, control, conversions, floats, integers, printing, shapes)


@dataclass
class Runtime:
    """The launch that generated code runs in."""

    grid: Grid
    globals: dict[str, Allocation]
    space: AddressSpace = field(default_factory=AddressSpace)
    log: AccessLog = field(default_factory=AccessLog)
    block: Grid | None = None

    def begin(self, x: int, y: int, z: int) -> None:
        self.block = (x, y, z)
        self.log.begin((z * self.grid[1] + y) * self.grid[0] + x)

    def global_address(self, name: str) -> int:
        return self.space.address(Pointer(self.globals[name]))

    def allocate(self, nbytes: int) -> int:
        """New memory for one block. It is filled with a pattern, so that reading before writing gives odd results."""
        return self.space.address(Pointer(Allocation(np.full(nbytes, 0xFF, np.uint8))))


class Prepared:
    """A module's entries, compiled on first use. Globals live as long as this object does, as a loaded module's do."""

    def __init__(self, module: Operation) -> None:
        self._entries: dict[str, Block] = {}
        for symbol, region in entries(module):
            check_supported(symbol, region_block(region))
            self._entries[symbol] = region_block(region)
        self._globals = {name: Allocation(array) for name, array in globals_(module)}
        self._kernels: dict[tuple[str, bool], Kernel] = {}
        self._depends: dict[tuple[str, int, int], bool] = {}

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def kernel(self, symbol: str, sanitize: bool = True) -> Kernel:
        """The compiled entry, whose `source` is its Python code. Raises UsageError if there is no such entry."""
        if symbol not in self._entries:
            raise UsageError(f"no entry {symbol!r} in this module", hint=f"it has {', '.join(self._entries) or 'none'}")
        key = symbol, sanitize
        if key not in self._kernels:
            self._kernels[key] = compile_entry(symbol, self._entries[symbol], sanitize, {"__builtins__": __builtins__})
        return self._kernels[key]

    def launch(self, symbol: str, args: Sequence[Argument], grid: Grid, sanitize: bool = True) -> None:
        """Runs an entry over `grid` blocks, x fastest. `args` are in ABI order.

        Raises LaunchError if the arguments do not fit, and SanitizerError for undefined behaviour. With `sanitize` this
        covers every kind that the package documents; without it only accesses outside an allocation, division by zero
        and failed assertions.
        """
        kernel = self.kernel(symbol, sanitize)
        if len(grid) != 3 or any(n < 0 for n in grid):
            raise LaunchError(f"{symbol}: grid {grid} is not three sizes")
        if 0 in grid:
            return
        check_grid(symbol, grid)
        runtime = Runtime(grid, self._globals)
        values = self._bind(symbol, args, runtime.space)
        blocks = ((x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0]))
        try:
            with np.errstate(all="ignore"):
                kernel.run(runtime, values, blocks)
        except Trap as trap:
            op = _failed_op(kernel, trap)
            at = "before the first block" if runtime.block is None else f"block {runtime.block}"
            raise SanitizerError(f"{symbol}: {_describe(op)}, {at}: {trap}") from trap
        if sanitize:
            race = races(runtime.log, runtime.space, functools.partial(self._depends_on, kernel))
            if race is not None:
                raise SanitizerError(f"{symbol}: {_describe_race(kernel, race, grid)}")

    def _bind(self, symbol: str, args: Sequence[Argument], space: AddressSpace) -> tuple[Any, ...]:
        parameters = self._entries[symbol].args
        if len(args) != len(parameters):
            raise LaunchError(f"{symbol}: {len(args)} arguments for {len(parameters)} parameters")
        return tuple(
            _bind_one(f"{symbol}: argument {n}{_named(parameter)}", parameter, arg, space)
            for n, (parameter, arg) in enumerate(zip(parameters, args, strict=True))
        )

    def _depends_on(self, kernel: Kernel, first: int, second: int) -> bool:
        """True if memory operation `second` depends on the result of `first`, so that it cannot run before it."""
        key = kernel.symbol, first, second
        if key not in self._depends:
            target = kernel.sites[second]
            self._depends[key] = any(op is target for op in _dependents(kernel.sites[first]))
        return self._depends[key]


def _bind_one(name: str, parameter: SSAValue, arg: Argument, space: AddressSpace) -> Any:
    element = tile_of(parameter).element
    if (element.kind == "pointer") != isinstance(arg, Pointer):
        raise LaunchError(f"{name} is {arg!r} for a parameter of type {element.name}")
    if isinstance(arg, Pointer):
        return space.address(arg)
    given = number(element.name, arg, name)
    if element.kind == "float":
        value = element.compute.type(given)
        return value if element.round is None else element.round(value)
    return bool(given) if element.bits == 1 else given


def _named(parameter: SSAValue) -> str:
    return f" ({parameter.name_hint})" if parameter.name_hint else ""


def _dependents(op: Operation) -> Iterator[Operation]:
    """The ops that depend on the results of `op`, directly or indirectly, other than through tokens."""
    seen: set[SSAValue] = set()
    todo: list[SSAValue] = [op.results[0]]
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.operation
            yield user
            todo.extend(target for source, target in flows(user) if source is value)
            if short_name(user) == "if" and use.index == 0:
                yield from user.walk()


def _failed_op(kernel: Kernel, trap: Trap) -> Operation | None:
    """The operation whose generated line raised a trap."""
    traceback = trap.__traceback__
    found: Operation | None = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == kernel.code.co_filename:
            found = kernel.ops[traceback.tb_lineno - 1]
        traceback = traceback.tb_next
    return found


def _describe(op: Operation | None) -> str:
    return "launch" if op is None else f"{short_name(op)} at {where(op)}"


def _describe_race(kernel: Kernel, race: Race, grid: Grid) -> str:
    def one(access: Access) -> str:
        kind = "atomically updates" if access.reads and access.writes else "writes" if access.writes else "reads"
        block, x = divmod(access.block, grid[0])
        z, y = divmod(block, grid[1])
        return f"{_describe(kernel.sites[access.site])} in block {(x, y, z)} {kind}"

    return (
        f"{one(race.second)} byte {race.offset} of an allocation that {one(race.first)}; "
        f"no token or atomic orders the two"
    )


_prepared: dict[bytes, Prepared] = {}


def prepare(data: bytes) -> Prepared:
    """Bytecode ready to launch. The same bytes give the same object, including its globals.

    Raises BytecodeError for damaged bytecode and UsageError for an operation that the interpreter does not have.
    """
    key = hashlib.sha256(data).digest()
    if key not in _prepared:
        # setdefault: if two threads prepare the same bytes, both get the first result.
        _prepared.setdefault(key, Prepared(bytecode.read(data)))
    return _prepared[key]
