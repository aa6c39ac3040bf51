"""`assemble`, `disassemble`, `verify` and `interpret`: Tile IR text and bytecode."""

from __future__ import annotations

import argparse
import io
import tokenize
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from toolchain.errors import UsageError
from toolchain.targets import BYTECODE

from .options import SOURCES, add_json, command, emit, print_json, read, seed, write

if TYPE_CHECKING:
    from toolchain.tileir.dialect.control import EntryOp, ModuleOp

MAGIC = b"\x7fTileIR"


def add(commands: Any) -> None:
    assemble = command(
        commands, "assemble", assemble_, "turn Tile IR text into bytecode or a cubin",
        "  tilestack assemble kernels_mlir/gelu.mlir -o gelu.tilebc\n"
        "  tilestack assemble kernels_mlir/gelu.mlir --target sm_90 -o gelu.cubin\n"
        "  tilestack assemble --entry linear_128x128x64_bf16 -o linear.tilebc      an entry of kernels_mlir\n",
    )  # fmt: skip
    assemble.add_argument("file", type=Path, nargs="?", help=".mlir (or .tilebc, to make a cubin)")
    assemble.add_argument("--entry", metavar="SYMBOL", help="an entry of a kernel source instead of a file")
    assemble.add_argument(
        "--source", choices=list(SOURCES), default="mlir", help="the source of --entry (default mlir)"
    )
    assemble.add_argument("--target", metavar="SM", help="make a cubin for this target")
    assemble.add_argument("--emit", choices=("bytecode", "mlir"), default="bytecode", help="mlir: the composed text")
    assemble.add_argument(
        "--bytecode", default=BYTECODE, metavar="VERSION", help=f"bytecode version (default {BYTECODE})"
    )
    assemble.add_argument(
        "--debug-info",
        action="store_true",
        help="say where operations come from: files and lines",
    )
    assemble.add_argument("-o", "--output", type=Path, help="default: standard output")

    disassemble = command(
        commands, "disassemble", disassemble_, "print the Tile IR text of bytecode",
        "  tilestack disassemble gelu.tilebc\n",
    )  # fmt: skip
    disassemble.add_argument("file", type=Path, help=".tilebc")
    disassemble.add_argument("-o", "--output", type=Path, help="default: standard output")

    verify = command(
        commands, "verify", verify_, "check Tile IR text or bytecode",
        "  tilestack verify kernels_mlir/*.mlir\n",
    )  # fmt: skip
    verify.add_argument("files", type=Path, nargs="+", metavar="file", help=".mlir or .tilebc")

    interpret = command(
        commands, "interpret", interpret_, "run a kernel on the CPU interpreter",
        "  tilestack interpret gelu.tilebc --grid 1,7 --arg f32:7x65 --arg f32:7x65 --seed 1\n"
        "  tilestack interpret add.mlir --grid 4 --arg x.npy --arg zeros:f32:1024 --arg 3 --save 1=out.npy\n"
        "an --arg, in ABI order: FILE.npy, DTYPE:FILE.npy to convert it, DTYPE:SIZES for random values,\n"
        "zeros:DTYPE:SIZES, or a number; DTYPE is f32, f16, bf16 or i32. An array is passed as cuTile does: pointer,\n"
        "sizes, strides; with --pointers as its pointer alone\n",
    )  # fmt: skip
    interpret.add_argument("file", type=Path, help=".mlir or .tilebc")
    interpret.add_argument("--entry", metavar="SYMBOL", help="default: the only one")
    interpret.add_argument("--grid", default="1", metavar="X[,Y[,Z]]", help="blocks to run (default 1)")
    interpret.add_argument("--arg", action="append", default=[], metavar="ARG", help="see below; repeat")
    interpret.add_argument("--pointers", action="store_true", help="pass arrays as pointers alone")
    interpret.add_argument(
        "--save", action="append", default=[], metavar="N=FILE", help="argument N after the run, .npy"
    )
    interpret.add_argument("--seed", type=seed, default=0, help="of random values (default 0)")
    interpret.add_argument("--no-sanitize", action="store_true", help="do not trap undefined behaviour: faster")
    add_json(interpret)


def load(path: Path) -> ModuleOp:
    """The module of a file, see `load_all`. Raises UsageError if the file has several."""
    modules = load_all(path)
    if len(modules) > 1:
        raise UsageError(f"{path} has {len(modules)} modules", hint="keep each module in a file of its own")
    return modules[0]


def load_all(path: Path) -> list[ModuleOp]:
    """The modules of text, or the one of a file of a kernel source or of bytecode, told apart by content; verified."""
    from toolchain.tileir import bytecode, text
    from toolchain.tileir.compose.sample import is_kernel_source, sample
    from toolchain.tileir.dialect.verify import verify as check

    raw = read(path)
    if raw.startswith(MAGIC):
        modules = [bytecode.read(raw, name=str(path))]
        source = None
    else:
        try:
            source = raw.decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"{path} is neither Tile IR text nor bytecode: {error}") from error
        if is_kernel_source(source, filename=str(path)):
            return [sample(path.absolute())]
        modules = text.parse_all(source, filename=str(path))
    for module in modules:
        check(module, text=source, filename=str(path))
    return modules


def assemble_(args: argparse.Namespace) -> int:
    from toolchain import pipeline, targets
    from toolchain.artifact import tile_ir
    from toolchain.stages import STAGES
    from toolchain.tileir import bytecode, text
    from toolchain.tileir.dialect.debug import attach_all

    if (args.file is None) == (args.entry is None):
        raise UsageError("name either a file or an --entry")
    composed: Callable[[], ModuleOp] | None = None
    if args.entry is not None:
        source = pipeline.load_source(SOURCES[args.source])
        specs = {spec.symbol: spec for spec in source.entries()}
        if args.entry not in specs:
            raise UsageError(f"source {args.source} has no entry {args.entry!r}", hint="tilestack matrix list")
        artifact = source.artifact(specs[args.entry], args.bytecode)
        if compose := getattr(source, "module", None):
            composed = partial(compose, specs[args.entry], args.bytecode)
    else:
        code = bytecode.write(load(args.file), args.bytecode, debug_info=args.debug_info)
        artifact = tile_ir(code, args.bytecode)
    data = artifact.payload
    if args.debug_info:
        _check_debug_info(args, composed is not None)
        data = bytecode.write(composed(), args.bytecode, debug_info=True) if composed else data
    if args.target is not None:
        chosen = targets.select([args.target])
        if len(chosen) > 1:
            raise UsageError(
                f"--target {args.target}: one cubin is for one target", hint="tilestack compile makes many"
            )
        pipeline.check_targets(chosen, args.bytecode)
        data = STAGES[artifact.form.kind].run(data, chosen[0].name)
    if args.emit == "mlir":
        if args.target is not None:
            raise UsageError("--emit mlir is the text before a target is chosen", hint="leave out --target")
        if artifact.form.kind != "tile-ir":
            raise UsageError(f"{args.entry} is {artifact.form.kind}, which has no Tile IR text")
        # A composed module has the names that its source gives the values; bytecode has none.
        module = composed() if composed else bytecode.read(data, name=args.entry or str(args.file))
        if args.debug_info:
            attach_all(module)
        data = text.print_module(module, locations=args.debug_info).encode()
    emit(args.output, data)
    return 0


def _check_debug_info(args: argparse.Namespace, has_places: bool) -> None:
    """Raises UsageError for what debug information cannot be had of."""
    if args.target is not None:
        raise UsageError("--debug-info is for bytecode and text: a cubin is made without it", hint="leave out --target")
    if args.entry is not None and not has_places:
        raise UsageError(f"--debug-info: the entries of source {args.source} do not say where their operations stand")


def disassemble_(args: argparse.Namespace) -> int:
    from toolchain.tileir import bytecode, text
    from toolchain.tileir.dialect import verify

    module = bytecode.read(read(args.file), name=str(args.file))
    verify(module, filename=str(args.file))  # what is not right has no text
    emit(args.output, text.print_module(module).encode())
    return 0


def verify_(args: argparse.Namespace) -> int:
    for path in args.files:
        symbols = [symbol for module in load_all(path) for symbol in module.entries]
        entries = ", ".join(f"@{symbol}" for symbol in symbols) or "no entries"
        print(f"{path}: ok: {entries}")
    return 0


def interpret_(args: argparse.Namespace) -> int:
    from toolchain.tileir import interpreter

    module = load(args.file)
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
    prepared.launch(entry, values, grid, sanitize=not args.no_sanitize)
    for index, path in saves:
        array = arrays[index]
        assert isinstance(array, np.ndarray)
        content = io.BytesIO()
        np.save(content, array.astype(np.float32) if array.dtype.kind == "V" else array)  # numpy has no bf16 of its own
        write(path, content.getvalue())
    shown = {str(i): _describe(a) for i, a in enumerate(arrays) if isinstance(a, np.ndarray)}
    if args.json:
        print_json({"entry": entry, "grid": list(grid), "arguments": shown})
    else:
        for index, line in shown.items():
            print(f"arg {index}: {line}")
    return 0


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
    from toolchain.tileir import interpreter
    from toolchain.tileir.dialect.types import PtrType, TileType, spell

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


def _argument(text: str, rng: np.random.Generator) -> np.ndarray[Any, Any] | int | float:
    from toolchain.runtime.layout import NUMPY

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


def _array(text: str, path: Path, dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
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


def _describe(array: np.ndarray[Any, Any]) -> str:
    values = array.astype(np.float64)
    head = ", ".join(f"{v:.6g}" for v in values.reshape(-1)[:6])
    more = ", ..." if values.size > 6 else ""
    return f"{array.dtype} {'x'.join(map(str, array.shape))}  sum {values.sum():.6g}  [{head}{more}]"
