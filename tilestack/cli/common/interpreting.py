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

from .arguments import SHOWN, arguments_of, describe, grid_of, named, save, saving
from .options import STREAM, print_json

Array = NDArray[Any]
Given = Array | int | float | list[Array]


def interpret(args: argparse.Namespace, module: ModuleOp) -> int:
    """Runs an entry of the module of `args.file`."""
    entry = _entry(args.file, module, args.entry)
    grid = grid_of(args.grid, "--grid")
    rng = np.random.default_rng(args.seed)
    arguments = arguments_of(args.arg, rng)
    arrays = named(arguments)
    saves = [saving(text, arrays) for text in args.save]
    values, placed = _passed(arguments, pointers=args.pointers)
    wanted = len(module.entries[entry].body.block.args)
    if len(values) != wanted:
        raise UsageError(
            f"@{entry} has {wanted} arguments, {len(values)} are given",
            hint="an array of rank n counts as 1 + 2n and a list as 2, or as one with --pointers",
        )
    _check_pointers(arguments, values, module.entries[entry], pointers=args.pointers)
    prepared = interpreter.Prepared(module)  # not by way of bytecode: it keeps the locations in the text
    streamed = any(path == STREAM for _, path in saves)
    if streamed and args.json:
        raise UsageError("--json and --save N=- both go to standard output", hint="save to a file")
    with redirect_stdout(sys.stderr) if args.json or streamed else nullcontext():  # what the kernel prints is neither
        prepared.launch(
            entry, values, grid, sanitize=not args.no_sanitize, padding=args.padding, placed=placed,
            schedules=None if args.schedule is None else (args.schedule,), resident=args.resident,
        )  # fmt: skip
    for array, path in saves:
        save(array, path)
    if args.json:
        found = _arguments(arguments, module.entries[entry], pointers=args.pointers)
        print_json({"entry": entry, "grid": list(grid), "arguments": found})
        return 0
    for index, array in arrays.items():
        print(f"arg {index}: {describe(array)}", file=sys.stderr if streamed else sys.stdout)
    return 0


def _passed(arguments: Sequence[Given], *, pointers: bool) -> tuple[list[Any], list[interpreter.Placed]]:
    """The values of an entry's parameters, and the memory that they lie in; a view lies in its array's. A list is
    passed as cuTile does: a table that holds what stands for each array, and their number; with `pointers` a table of
    addresses."""
    bounds = [(*np.lib.array_utils.byte_bounds(array), array) for array in named(arguments).values() if array.size]
    placed = interpreter.placed(interpreter.Storage(low, high - low, one, own=True) for low, high, one in bounds)
    space = interpreter.AddressSpace(placed)

    def pointer(array: Array) -> interpreter.Pointer:
        found = space.pointer_at(array.ctypes.data) if array.size else None
        return interpreter.Pointer(interpreter.Allocation(array)) if found is None else found

    def behind(array: Array) -> list[int]:
        return [] if pointers else [*array.shape, *(stride // array.itemsize for stride in array.strides)]

    values: list[Any] = []
    for given in arguments:
        if isinstance(given, np.ndarray):
            values += [pointer(given), *behind(given)]
        elif isinstance(given, list):
            table = np.array([[array.ctypes.data, *behind(array)] for array in given], np.int64)
            values += [interpreter.Pointer(interpreter.Allocation(table)), *([] if pointers else [len(given)])]
        else:
            values.append(given)
    return values, placed


def _arguments(given: Sequence[Given], entry: EntryOp, *, pointers: bool) -> list[dict[str, Any]]:
    """Each argument after the run, as JSON has it. `name`: the parameter's in the text, null in bytecode. Of an array:
    its dtype, shape, first elements and sum; what is not finite, which JSON cannot say, is null. Of a list: its arrays.
    """
    rows: list[dict[str, Any]] = []
    at = 0
    for argument in given:
        name = entry.body.block.args[at].name_hint
        if isinstance(argument, np.ndarray):
            at += 1 if pointers else 1 + 2 * argument.ndim
            rows.append({"name": name, "kind": "array", **_summary(argument)})
        elif isinstance(argument, list):
            at += 1 if pointers else 2
            rows.append({"name": name, "kind": "list", "items": [_summary(array) for array in argument]})
        else:
            at += 1
            rows.append({"name": name, "kind": "number", "value": argument if math.isfinite(argument) else None})
    return rows


def _summary(array: Array) -> dict[str, Any]:
    values = array.astype(np.float64)
    numbers = [*values.reshape(-1)[:SHOWN].tolist(), float(values.sum())]
    *first, total = (number if math.isfinite(number) else None for number in numbers)
    return {"dtype": _dtype(array.dtype), "shape": list(array.shape), "first": first, "sum": total}


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


_HELD_AS = {"tf32": "f32", "f4E2M1FN": "i8"}  # in an array of numpy; two f4E2M1FN share a byte


def _check_pointers(arguments: Sequence[Given], values: list[Any], entry: EntryOp, *, pointers: bool) -> None:
    """Raises UsageError for an array whose elements are not what its pointer points to."""
    dtypes: list[str | None] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            dtypes += [_dtype(argument.dtype), *([] if pointers else [None] * 2 * argument.ndim)]
        elif isinstance(argument, list):  # a list's table holds addresses, as numbers or, in others' kernels, pointers
            dtypes += ["i64", *([] if pointers else [None])]
        else:
            dtypes.append(None)
    for at, (given, value, parameter) in enumerate(zip(dtypes, values, entry.body.block.args, strict=True)):
        kind = parameter.type.element_type if isinstance(parameter.type, TileType) else parameter.type
        if isinstance(value, interpreter.Pointer) != isinstance(kind, PtrType):
            what = "an array" if isinstance(value, interpreter.Pointer) else "no array"
            raise UsageError(f"parameter {at} of @{entry.sym_name.data} is {spell(kind)}, it is given {what}")
        if not isinstance(kind, PtrType):
            continue
        wanted = spell(kind.pointee)
        if given != ("i64" if wanted.startswith("ptr") else _HELD_AS.get(wanted, wanted)):
            raise UsageError(
                f"parameter {at} of @{entry.sym_name.data} points to {wanted}, it is given {given}",
                hint="--arg DTYPE:FILE.npy converts",
            )


def _dtype(dtype: np.dtype[Any]) -> str:
    """A numpy dtype as Tile IR spells it."""
    signed = np.dtype(f"i{dtype.itemsize}") if dtype.kind == "u" else dtype
    return next((name for name, known in DTYPES.items() if known == signed), str(dtype))
