"""Runs a kernel on the CPU interpreter with the arguments of a command line."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.contract.launching import DTYPES
from toolchain.errors import UsageError
from toolchain.tileir import interpreter
from toolchain.tileir.dialect.control import EntryOp, ModuleOp
from toolchain.tileir.dialect.types import PtrType, TileType, spell

from .arguments import SHOWN, describe, grid_of, save, saving, value_of
from .options import STREAM, print_json

Array = NDArray[Any]


def interpret(args: argparse.Namespace, module: ModuleOp) -> int:
    """Runs an entry of the module of `args.file`."""
    entry = _entry(args.file, module, args.entry)
    grid = grid_of(args.grid, "--grid")
    rng = np.random.default_rng(args.seed)
    arrays = [value_of(text, rng) for text in args.arg]
    saves = [saving(text, arrays) for text in args.save]
    values: list[Any] = []
    for given in arrays:
        if isinstance(given, np.ndarray):
            values.append(interpreter.Pointer(interpreter.Allocation(given), 0))
            if not args.pointers:
                values += [*given.shape, *(stride // given.itemsize for stride in given.strides)]
        else:
            values.append(given)
    wanted = len(module.entries[entry].body.block.args)
    if len(values) != wanted:
        raise UsageError(
            f"@{entry} has {wanted} arguments, {len(values)} are given",
            hint="an array of rank n counts as 1 + 2n, or as one with --pointers",
        )
    _check_pointers(values, module.entries[entry])
    prepared = interpreter.Prepared(module)  # not by way of bytecode: it keeps the locations in the text
    streamed = any(path == STREAM for _, path in saves)
    if streamed and args.json:
        raise UsageError("--json and --save N=- both go to standard output", hint="save to a file")
    with redirect_stdout(sys.stderr) if args.json or streamed else nullcontext():  # what the kernel prints is neither
        prepared.launch(
            entry, values, grid, sanitize=not args.no_sanitize, padding=args.padding,
            schedules=None if args.schedule is None else (args.schedule,), resident=args.resident,
        )  # fmt: skip
    for index, path in saves:
        save(arrays[index], path)
    if args.json:
        found = _arguments(arrays, module.entries[entry], pointers=args.pointers)
        print_json({"entry": entry, "grid": list(grid), "arguments": found})
        return 0
    for index, array in enumerate(arrays):
        if isinstance(array, np.ndarray):
            print(f"arg {index}: {describe(array)}", file=sys.stderr if streamed else sys.stdout)
    return 0


def _arguments(given: Sequence[Array | int | float], entry: EntryOp, *, pointers: bool) -> list[dict[str, Any]]:
    """Each argument after the run, as JSON has it. `name`: the parameter's in the text, null in bytecode. Of an array:
    its dtype, shape, first elements and sum; what is not finite, which JSON cannot say, is null."""
    rows: list[dict[str, Any]] = []
    at = 0
    for argument in given:
        name = entry.body.block.args[at].name_hint
        if isinstance(argument, np.ndarray):
            at += 1 if pointers else 1 + 2 * argument.ndim
            values = argument.astype(np.float64)
            numbers = [*values.reshape(-1)[:SHOWN].tolist(), float(values.sum())]
            *first, total = (number if math.isfinite(number) else None for number in numbers)
            row = {"dtype": _dtype(argument.dtype), "shape": list(argument.shape), "first": first, "sum": total}
            rows.append({"name": name, "kind": "array", **row})
        else:
            at += 1
            rows.append({"name": name, "kind": "number", "value": argument if math.isfinite(argument) else None})
    return rows


def _entry(path: Path, module: ModuleOp, name: str | None) -> str:
    """The entry of that name, or where none is named the only one. Raises UsageError."""
    symbols = list(module.entries)
    if not symbols:
        raise UsageError(f"{path} has no entries, so there is nothing to run")
    if name is None and len(symbols) > 1:
        raise UsageError(f"{path} has {len(symbols)} entries", hint=f"--entry, one of {', '.join(symbols)}")
    if name is not None and name not in symbols:
        raise UsageError(f"{path} has no entry @{name}", hint=f"one of {', '.join(symbols)}")
    return symbols[0] if name is None else name


def _check_pointers(values: list[Any], entry: EntryOp) -> None:
    """Raises UsageError for an array whose elements are not what its pointer points to."""
    for at, (value, parameter) in enumerate(zip(values, entry.body.block.args, strict=True)):
        kind = parameter.type.element_type if isinstance(parameter.type, TileType) else parameter.type
        if isinstance(value, interpreter.Pointer) != isinstance(kind, PtrType):
            given = "an array" if isinstance(value, interpreter.Pointer) else "no array"
            raise UsageError(f"parameter {at} of @{entry.sym_name.data} is {spell(kind)}, it is given {given}")
        if not isinstance(kind, PtrType):
            continue
        wanted, given = spell(kind.pointee), _dtype(value.memory.array.dtype)
        if given != ("f32" if wanted == "tf32" else wanted):
            raise UsageError(
                f"parameter {at} of @{entry.sym_name.data} points to {wanted}, it is given {given}",
                hint="--arg DTYPE:FILE.npy converts",
            )


def _dtype(dtype: np.dtype[Any]) -> str:
    """A numpy dtype as Tile IR spells it."""
    signed = np.dtype(f"i{dtype.itemsize}") if dtype.kind == "u" else dtype
    return next((name for name, known in DTYPES.items() if known == signed), str(dtype))
