"""`interpret`: a kernel on the CPU interpreter, with arguments from files, at random, or zero."""

from __future__ import annotations

import argparse
import io
import math
import sys
import tokenize
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError
from toolchain.runtime.layout import NUMPY
from toolchain.tileir import interpreter
from toolchain.tileir.dialect.control import EntryOp, ModuleOp
from toolchain.tileir.dialect.types import PtrType, TileType, spell

from .options import STREAM, print_json, write

SHOWN = 6  # elements of an array
Array = NDArray[Any]


def interpret(args: argparse.Namespace, module: ModuleOp) -> int:
    """Runs an entry of the module of `args.file`."""
    entry = _entry(args.file, module, args.entry)
    grid = _grid(args.grid)
    rng = np.random.default_rng(args.seed)
    arrays = [_argument(text, rng) for text in args.arg]
    saves = [_save(text, arrays) for text in args.save]
    values: list[Any] = []
    for argument in arrays:
        if isinstance(argument, np.ndarray):
            values.append(interpreter.Pointer(interpreter.Allocation(argument), 0))
            if not args.pointers:
                values += [*argument.shape, *(stride // argument.itemsize for stride in argument.strides)]
        else:
            values.append(argument)
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
        prepared.launch(entry, values, grid, sanitize=not args.no_sanitize)
    for index, path in saves:
        array = arrays[index]
        assert isinstance(array, np.ndarray)
        content = io.BytesIO()
        np.save(content, array.astype(np.float32) if array.dtype.kind == "V" else array)  # numpy has no bf16 of its own
        write(path, content.getvalue())
    if args.json:
        found = _arguments(arrays, module.entries[entry], pointers=args.pointers)
        print_json({"entry": entry, "grid": list(grid), "arguments": found})
        return 0
    for index, array in enumerate(arrays):
        if isinstance(array, np.ndarray):
            print(f"arg {index}: {_describe(array)}", file=sys.stderr if streamed else sys.stdout)
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
        if isinstance(kind, PtrType) and (given := _dtype(value.memory.array.dtype)) != spell(kind.pointee):
            raise UsageError(
                f"parameter {at} of @{entry.sym_name.data} points to {spell(kind.pointee)}, it is given {given}",
                hint="--arg DTYPE:FILE.npy converts",
            )


def _dtype(dtype: np.dtype[Any]) -> str:
    """A numpy dtype as Tile IR spells it."""
    return "bf16" if dtype.name == "bfloat16" else f"{'f' if dtype.kind == 'f' else 'i'}{8 * dtype.itemsize}"


def _grid(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and len(part) < 20 for part in parts):
        raise UsageError(f"--grid {text!r}: write one to three numbers, such as 8,4")
    x, y, z = (int(part) for part in [*parts, "1", "1"][:3])
    if not (1 <= x < 2**31 and 1 <= y < 2**16 and 1 <= z < 2**16):
        raise UsageError(f"--grid {text!r}: a GPU runs 1 to {2**31 - 1} blocks in x, 1 to {2**16 - 1} in y and z")
    return x, y, z


def _argument(text: str, rng: np.random.Generator) -> Array | int | float:
    parts = text.split(":")
    if text.endswith(".npy"):
        dtype = NUMPY.get(parts[0]) if len(parts) > 1 else None
        return _array(text, Path(text.removeprefix(f"{parts[0]}:") if dtype else text), dtype)
    zeros = parts[0] == "zeros"
    if zeros:
        parts = parts[1:]
    if len(parts) == 2 and parts[0] in NUMPY and all(size.isdecimal() for size in parts[1].split("x")):
        dtype = NUMPY[parts[0]]
        try:
            shape = tuple(int(size) for size in parts[1].split("x"))
            values = np.zeros(shape) if zeros else rng.standard_normal(shape)
            return (values * (100 if parts[0] == "i32" else 1)).astype(dtype)
        except (MemoryError, ValueError) as error:
            raise UsageError(f"--arg {text}: {error}") from error
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    raise UsageError(f"--arg {text!r} is not a .npy file, DTYPE:SIZES, zeros:DTYPE:SIZES or a number")


def _array(text: str, path: Path, dtype: np.dtype[Any] | None) -> Array:
    """The numbers in a file, without gaps and in this machine's byte order, which is what kernels read."""
    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError, SyntaxError, tokenize.TokenError) as error:
        raise UsageError(f"--arg {text}: {error}") from error  # the last two: of a header that does not parse
    if array.dtype.kind not in "biuf":
        raise UsageError(f"--arg {text}: it holds {array.dtype}, which is neither an integer nor a real number")
    return array.astype(dtype or array.dtype.newbyteorder("="), order="C")


def _save(text: str, arrays: list[Any]) -> tuple[int, Path]:
    index, _, name = text.partition("=")
    if not (index.isdecimal() and name and int(index) < len(arrays) and isinstance(arrays[int(index)], np.ndarray)):
        raise UsageError(f"--save {text!r}: write N=FILE.npy, N the number of an array argument from 0")
    if not Path(name).parent.is_dir():  # before the run, whose results it would lose
        raise UsageError(f"--save {text!r}: there is no folder {Path(name).parent}")
    return int(index), Path(name)


def _describe(array: Array) -> str:
    values = array.astype(np.float64)
    head = ", ".join(f"{v:.6g}" for v in values.reshape(-1)[:SHOWN])
    more = ", ..." if values.size > SHOWN else ""
    return f"{array.dtype} {'x'.join(map(str, array.shape))}  sum {values.sum():.6g}  [{head}{more}]"
