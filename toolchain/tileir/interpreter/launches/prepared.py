"""Bytecode made ready to run, and launches of it."""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from toolchain.contract.launching import check_grid, number
from toolchain.errors import LaunchError, UsageError

from ... import bytecode, location
from ..analysis import taint
from ..analysis.fields import entries, globals_, short_name, tile_of
from ..analysis.waits import waits
from ..memory.log import Around
from ..memory.memory import AddressSpace, Allocation, Placed, Pointer, Trap
from ..memory.shadow import races
from ..numbers.elements import Element
from ..operations import access, addressing, control, conversions, floats, integers, printing, shapes
from ..operations.codegen import Kernel, check_supported, compile_entry, region_block
from . import together
from .findings import Findings, describe, failed_op, located
from .runtime import Grid, Running, Runtime, indices

Argument = Pointer | int | float
Padding = Literal["strict", "zero"]


class PaddingWarning(UserWarning):
    """A result depends on what a load without a padding value read outside its tensor: zeros were taken."""


# Importing these registers their lowerings.
_FAMILIES = (access, addressing, control, conversions, floats, integers, printing, shapes)


class Prepared:
    """A module's entries, compiled on first use. Globals live as long as this object does, as a loaded module's do."""

    def __init__(self, module: Operation) -> None:
        self._entries: dict[str, Block] = {}
        for symbol, region in entries(module):
            check_supported(symbol, region_block(region))
            self._entries[symbol] = region_block(region)
        self._globals = {name: Allocation(array) for name, array in globals_(module)}
        self._on_others: dict[int, dict[str, Allocation]] = {}
        self._kernels: dict[tuple[str, bool, bool, Padding], Kernel] = {}
        self._warned: set[Operation] = set()
        self._waits: dict[str, Mapping[Operation, Operation]] = {}
        self._parameters: dict[str, tuple[tuple[str, Element], ...]] = {}  # what they are called, and their elements

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(self._entries)

    @property
    def has_globals(self) -> bool:
        return bool(self._globals)

    def parameters(self, symbol: str) -> tuple[Element, ...]:
        """The element types of an entry's parameters. Raises UsageError if there is no such entry."""
        return tuple(tile_of(parameter).element for parameter in self._body(symbol).args)

    def kernel(self, symbol: str, sanitize: bool = True, together: bool = False, padding: Padding = "strict") -> Kernel:
        """The compiled entry, whose `source` is its Python code. It is interleaved if blocks of it may wait for each
        other, or with `together`. Raises UsageError if there is no such entry."""
        body = self._body(symbol)
        if symbol not in self._waits:
            self._waits[symbol] = waits(body)
        interleaved = together or bool(self._waits[symbol])
        key = symbol, sanitize, interleaved, padding
        if key not in self._kernels:
            loops = self._waits[symbol] if interleaved else None
            names = {"__builtins__": __builtins__}
            self._kernels[key] = compile_entry(symbol, body, sanitize, loops, names, zero=padding == "zero")
        return self._kernels[key]

    def _body(self, symbol: str) -> Block:
        if symbol not in self._entries:
            raise UsageError(f"no entry {symbol!r} in this module", hint=f"it has {', '.join(self._entries) or 'none'}")
        return self._entries[symbol]

    def launch(
        self, symbol: str, args: Sequence[Argument], grid: Grid, sanitize: bool = True,
        *, schedules: Sequence[int] | None = None, resident: int | None = None,
        padding: Padding = "strict", placed: Sequence[Placed] = (),
    ) -> None:  # fmt: skip
        """Runs an entry over `grid` blocks, x fastest. `args` are in ABI order.

        `padding`: what a load without a padding value reads outside its tensor: "strict" says that its use is
        undefined behaviour, "zero" takes 0, as a GPU does, and with `sanitize` warns once for a load whose zeros are
        used. `placed`: memory whose addresses the program knows, and may have put into memory.

        Blocks that may wait for each other take turns, in each of `schedules` (see interleaving.py; by default four, or
        one without `sanitize`); memory then holds what the first has made. `resident`: how many of them run at once.

        Raises LaunchError if the arguments do not fit, and SanitizerError for undefined behaviour and for blocks that
        wait for ever. With `sanitize` this covers every kind that the package documents; without it only accesses
        outside an allocation, division by zero, failed assertions and waiting.
        """
        running = self.running(symbol, args, grid, sanitize, padding=padding, placed=placed)
        if running is None:
            return
        if running.kernel.interleaved:
            together.run((running,), sanitize, schedules, resident)
        else:
            _in_order(running, sanitize)
        self._warn(symbol, running.padded)

    def _warn(self, symbol: str, uses: set[Operation]) -> None:
        """Warns, once for each, of the loads whose padding these operations use."""
        for use in uses - self._warned:
            self._warned.add(use)
            for load in taint.sources(self._entries[symbol], use):
                if load in self._warned:
                    continue
                self._warned.add(load)
                place = location.get(load)
                file, line = (place.file, place.line) if place else (f"<tile {symbol}>", 1)
                message = (
                    f"{short_name(load)} has no padding value, and {describe(use)} uses what it read outside its "
                    f"array: zeros are taken, as on a GPU; the specification leaves them undetermined"
                )
                warnings.warn_explicit(message, PaddingWarning, file, line)

    def running(
        self,
        symbol: str,
        args: Sequence[Argument],
        grid: Grid,
        sanitize: bool,
        device: int | None = None,
        first: int = 0,
        *,
        padding: Padding = "strict",
        placed: Sequence[Placed] = (),
    ) -> Running | None:
        """One grid of this module, on a device if it runs together with others; None if it has no blocks."""
        kernel = self.kernel(symbol, sanitize, device is not None, padding)
        if len(grid) != 3 or any(n < 0 for n in grid):
            raise LaunchError(f"{symbol}: grid {grid} is not three sizes")
        if 0 in grid:
            return None
        check_grid(symbol, grid)
        memory = self._globals if not device else self._on_others.setdefault(device, _copies(self._globals))
        return Running(kernel, grid, memory, lambda space: self._bind(symbol, args, space), first, placed)

    def _bind(self, symbol: str, args: Sequence[Argument], space: AddressSpace) -> tuple[Any, ...]:
        parameters = self._parameters.get(symbol)
        if parameters is None:  # kept, as a model launches the same entries for each token
            parameters = self._parameters[symbol] = tuple(
                (f"{symbol}: argument {n}{_named(parameter)}", tile_of(parameter).element)
                for n, parameter in enumerate(self._entries[symbol].args)
            )
        if len(args) != len(parameters):
            raise LaunchError(f"{symbol}: {len(args)} arguments for {len(parameters)} parameters")
        return tuple(
            _bind_one(name, element, arg, space) for (name, element), arg in zip(parameters, args, strict=True)
        )


@dataclass(frozen=True)
class Launch:
    """An entry's launch on one of several devices. `before` and `after`: what the device's launches around it do with
    memory that the other devices reach; within the device they are ordered, as launches are."""

    prepared: Prepared
    symbol: str
    args: Sequence[Argument]
    grid: Grid
    before: Sequence[Around] = ()
    after: Sequence[Around] = ()

    @property
    def meeting(self) -> str:
        """What it has in common with the launches of the other devices, in words."""
        return f"{self.symbol}, grid {self.grid}"


def launch_together(
    launches: Sequence[Launch], sanitize: bool = True,
    *, schedules: Sequence[int] | None = None, resident: int | None = None,
) -> None:  # fmt: skip
    """Runs one launch on each of several devices, numbered from 0, at the same time: their blocks take turns. An
    allocation among the arguments of two is memory that one device reads and writes as the other's peer; scope `sys`
    orders accesses of two devices, `device` does not. Each device has globals of its own. `resident`: the blocks that
    run at once on each device. Otherwise as `Prepared.launch`."""
    grids: list[Running] = []
    for device, one in enumerate(launches):
        first = sum(running.blocks for running in grids)
        running = one.prepared.running(one.symbol, one.args, one.grid, sanitize, device, first)
        if running is None:
            raise LaunchError(f"{one.symbol}: grid {one.grid} has no blocks, on device {device}")
        grids.append(replace(running, before=one.before, after=one.after))
    if grids:
        together.run(grids, sanitize, schedules, resident)


def _in_order(running: Running, sanitize: bool) -> None:
    """Runs block after block."""
    kernel, symbol = running.kernel, running.kernel.symbol
    runtime = Runtime(running.grid, running.globals, AddressSpace(running.placed), padded=running.padded)
    values = running.bind(runtime.space)
    findings = Findings((running,), runtime.space, runtime.log.accesses)
    try:
        with np.errstate(all="ignore"):
            kernel.run(runtime, values, indices(running.grid))
    except Trap as trap:
        raise located(f"{symbol}: {findings.trap(0, runtime.block, trap)}", failed_op(kernel, trap)) from trap
    if sanitize:
        race = races(runtime.log.accesses, runtime.space, findings.depends)
        if race is not None:
            raise located(f"{symbol}: {findings.race(race)}", kernel.sites[race.second.site])
        if (stale := runtime.counters.stale()) is not None:
            update, said = stale
            raise located(f"{symbol}: {describe(update)}: {said}", update)


def _copies(allocations: Mapping[str, Allocation]) -> dict[str, Allocation]:
    """A device's own globals. They begin as the first device's are now."""
    return {name: Allocation(one.array.copy()) for name, one in allocations.items()}


def _bind_one(name: str, element: Element, arg: Argument, space: AddressSpace) -> Any:
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


# A process may launch thousands of modules, as a test suite does, and each holds its operations. A module with globals
# stays, as they would be lost with it; of the others the ones that were used last.
KEPT = 256
_prepared: OrderedDict[bytes, Prepared] = OrderedDict()
_with_globals: dict[bytes, Prepared] = {}
_lock = threading.Lock()


def prepare(data: bytes) -> Prepared:
    """Bytecode ready to launch. The same bytes give the same object, including its globals; without globals only while
    it is among the last KEPT.

    Raises BytecodeError for damaged bytecode and UsageError for an operation that the interpreter does not have.
    """
    key = hashlib.sha256(data).digest()
    with _lock:
        if (found := _with_globals.get(key) or _prepared.get(key)) is not None:
            if key in _prepared:
                _prepared.move_to_end(key)
            return found
    made = Prepared(bytecode.read(data))
    with _lock:  # if two threads prepare the same bytes, both get the first result
        kept = _with_globals if made.has_globals else _prepared
        found = kept.setdefault(key, made)
        while len(_prepared) > KEPT:
            _prepared.popitem(last=False)
    return found
