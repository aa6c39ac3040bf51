"""Makes a recording of a matrix.toml: what each cell launches, compiled for some targets. It needs no GPU.

`launch` of a cell runs once, on the real arrays, as for a GPU; its launches are taken and not run. So it must not look
at what a kernel wrote, and arrays are passed whole. A recording keeps what an array of `launch`'s own holds then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from conformance.ops.compare import bound_for
from toolchain.compiling import stages
from toolchain.contract.artifact import Kind
from toolchain.contract.targets import Target
from toolchain.errors import LaunchError, UsageError

from ..api.arguments.arrays import Array as Given
from ..api.arguments.binding import Argument, each, flatten
from ..api.launches.code import Code
from ..api.launches.recorder import recorded_by
from .problem import Array, Problem
from .recording import Cell, Expected, Files, Kept, Launch, Recording, check_replaceable, drawn, write
from .run import functions
from .sampled import sample
from .table import INTEGERS, Op

SMS = 132  # the multiprocessors that grids are chosen for unless another number is given: an H100's and an H200's


@dataclass
class _Memory:
    """An array that launches were given, as it was before the first. `name`: of an input or output; empty for one of
    `launch`'s own. `host` stays, so that its place is not reused."""

    name: str
    host: Array
    before: bytes
    written: bool = False


@dataclass
class _Taken:
    """Takes the launches of one cell."""

    targets: Sequence[Target]
    files: Files
    sms: int
    memories: list[_Memory]
    launches: list[Launch] = field(default_factory=list[Launch])

    def take(self, code: Code, arguments: Sequence[Argument], grid: tuple[int, int, int]) -> None:
        parameters: list[Mapping[str, Any]] = []
        for dtype, value in flatten(arguments):
            if isinstance(value, Argument):
                parameters.append({"table": [self._row(code, item) for item in value.items]})
            elif isinstance(value, Given):
                parameters.append({"array": self._place(code.symbol, value)})
            else:
                parameters.append({"number": [dtype, value]})
        for argument in each(arguments):
            if argument.array is not None and (argument.parameter.written or argument.parameter.writes_items):
                self.memories[self._place(code.symbol, argument.array)].written = True
        self._check_host(code.symbol)
        named = {argument.parameter.name: argument for argument in arguments}
        maps = [self._map(code, named[made.array]) for made in code.form.maps]
        cubins = {target.name: self.files.add(code.cubin(target.name)) for target in self.targets}
        stored = self.files.add(code.stored())
        self.launches.append(Launch(code.symbol, code.form, grid, stored, cubins, parameters, maps))

    def _row(self, code: Code, item: Argument) -> dict[str, Any]:
        assert item.array is not None
        return {"array": self._place(code.symbol, item.array), "numbers": [int(n) for _, n in item.numbers]}

    def _map(self, code: Code, argument: Argument) -> dict[str, Any]:
        array = argument.array
        assert array is not None
        strides = [int(n) * array.itemsize for _, n in argument.numbers[len(array.shape) :]]
        return {
            "array": self._place(code.symbol, array), "dtype": argument.parameter.dtype, "shape": list(array.shape),
            "strides": strides,
        }  # fmt: skip

    def _place(self, symbol: str, array: Given) -> int:
        """The number of an array among those of the cell. Raises LaunchError for one that is a part of another."""
        host = array.host
        if host is None or not array.contiguous:
            raise LaunchError(f"{symbol}: {array} is not an array of the host without gaps, and cannot be recorded")
        for at, one in enumerate(self.memories):
            if host.size and np.may_share_memory(host, one.host):
                if (host.ctypes.data, host.nbytes) != (one.host.ctypes.data, one.host.nbytes):
                    raise LaunchError(
                        f"{symbol}: {array} is a part of {one.name or 'another array'}, and cannot be recorded",
                        hint="pass whole arrays, or copies",
                    )
                return at
        self.memories.append(_Memory("", host, host.tobytes()))
        return len(self.memories) - 1

    def _check_host(self, symbol: str) -> None:
        """Raises LaunchError if the host wrote into an array between two launches, which no recording would repeat."""
        for one in self.memories:
            if one.host.tobytes() != one.before:
                raise LaunchError(
                    f"{symbol}: {one.name or 'an array'} was written by the host between two launches, which a "
                    "recording does not repeat",
                    hint="use another array, or write it by a kernel",
                )


def record(
    ops: Sequence[Op], table: Path, output: Path, targets: Sequence[Target], *, sms: int = SMS, seed: int = 1,
    commit: Mapping[str, str], told: Callable[[str], object],
) -> Recording:  # fmt: skip
    """Records every op, dtype and size of a table, those that are timed too. `told` hears of each. Raises UsageError,
    LaunchError for what cannot be recorded, and ToolchainError."""
    check_replaceable(output)
    files, cells = Files(), list[Cell]()
    for op in ops:
        launch, reference = functions(op, table.parent)
        timed = [dict(sizes) for sizes in op.timed]
        every = [dict(sizes) for sizes in op.sizes]
        for dtype in op.dtypes:
            for sizes in [*every, *(sizes for sizes in timed if sizes not in every)]:
                problem = Problem(op, dtype, sizes, seed)
                made = _recorded(problem, launch, reference, targets, sms, files)
                cells.append(replace(made, checked=sizes in every, timed=sizes in timed))
                told(f"{problem.case}: {len(made.launches)} launches{', timed' if sizes in timed else ''}")
    kinds: set[Kind] = {launch.form.kind for cell in cells for launch in cell.launches}
    tools = stages.tools_used(targets, kinds)
    names = [target.name for target in targets]
    return write(output, table, seed, names, tools, cells, files, commit)


def _recorded(
    problem: Problem, launch: Callable[..., Any], reference: Callable[..., Any], targets: Sequence[Target], sms: int,
    files: Files,
) -> Cell:  # fmt: skip
    outputs = problem.outputs()
    known = {**problem.inputs, **outputs}
    taken = _Taken(targets, files, sms, [_Memory(n, a, a.tobytes()) for n, a in known.items()])
    with recorded_by(taken):
        launch(**problem.inputs, **problem.op.numbers, **outputs, on="cuda:0")
    if not taken.launches:
        raise UsageError(
            f"{problem.case}: its launch launched nothing through ts.load, so there is nothing to record",
            hint="launch the kernel as ts.load(kernel)[grid](..., on=on)",
        )
    arrays = [_kept(one, files) for one in taken.memories]
    expected = _expected(problem, reference, files)
    return Cell(
        problem.op.name, problem.dtype, problem.sizes, checked=True, timed=False, drawn=drawn(problem), arrays=arrays,
        launches=taken.launches, expected=expected,
    )  # fmt: skip


def _kept(one: _Memory, files: Files) -> Kept:
    content = "" if one.name else files.add(one.before)
    return Kept(one.name, one.host.shape, one.host.dtype.name, content, one.written)


def _expected(problem: Problem, reference: Callable[..., Any], files: Files) -> dict[str, Expected]:
    exact, eager = problem.expected(reference)
    found: dict[str, Expected] = {}
    for name, empty in problem.outputs().items():
        right = exact[name]
        if right.shape != empty.shape:
            raise UsageError(f"{problem.case}: the reference's {name} is {right.shape}, the table says {empty.shape}")
        storage, allowed = problem.tolerance(name)
        bound = bound_for(problem.op.name, storage, right, eager[name].astype(empty.dtype), name, allowed)
        wide = right.astype(np.int64 if storage in INTEGERS else np.float64)
        kept = files.add(wide.reshape(-1)[sample(right.size)].tobytes())
        whole = right.astype(empty.dtype).tobytes() if storage in INTEGERS else b""
        found[name] = Expected(kept, bound, hashlib.sha256(whole).hexdigest() if whole else "")
    return found
