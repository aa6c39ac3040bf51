"""`disassemble`, `verify` and `interpret`: Tile IR text and bytecode."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain.errors import SourceError, TilestackError, UsageError

from .common.options import STREAM, add_json, command, emit, print_json, read, seed, source_name

if TYPE_CHECKING:
    from toolchain.tileir.dialect.control import ModuleOp


def add(commands: Any) -> None:
    disassemble = command(
        commands, "disassemble", disassemble_, "print the Tile IR text of bytecode",
        "  tilestack disassemble gelu.tilebc\n",
    )  # fmt: skip
    disassemble.add_argument("file", type=Path, help=".tilebc; - for standard input")
    disassemble.add_argument("-o", "--output", type=Path, help="default: standard output")

    verify = command(
        commands, "verify", verify_, "check Tile IR text or bytecode",
        "  tilestack verify kernels_mlir/*.mlir         every error of every file\n"
        "  tilestack verify kernels_mlir/gelu.mlir --json\n",
    )  # fmt: skip
    verify.add_argument("files", type=Path, nargs="+", metavar="file", help=".mlir or .tilebc; - for standard input")
    add_json(verify)

    interpret = command(
        commands, "interpret", interpret_, "run a kernel on the CPU interpreter",
        "  tilestack interpret gelu.tilebc --grid 1,7 --arg bf16:7x65 --arg bf16:7x65 --seed 1\n"
        "  tilestack interpret gelu.tilebc --grid 1,7 --arg bf16:7x65 --arg zeros:bf16:7x65 --save 1=out.npy\n"
        "  tilestack interpret gelu.tilebc --grid 1,7 --arg bf16:out.npy --arg zeros:bf16:7x65 --json\n"
        "an --arg, in ABI order: FILE.npy, DTYPE:FILE.npy to convert it, DTYPE:SIZES for random values,\n"
        "zeros:DTYPE:SIZES, or a number; DTYPE is f32, f16, bf16 or i32. An array is passed as cuTile does: pointer,\n"
        "sizes, strides; with --pointers as its pointer alone\n"
        "with --json what the kernel prints goes to standard error\n",
    )  # fmt: skip
    interpret.add_argument("file", type=Path, help=".mlir or .tilebc; - for standard input")
    interpret.add_argument("--entry", metavar="SYMBOL", help="default: the only one")
    interpret.add_argument("--grid", default="1", metavar="X[,Y[,Z]]", help="blocks to run (default 1)")
    interpret.add_argument("--arg", action="append", default=[], metavar="ARG", help="see below; repeat")
    interpret.add_argument("--pointers", action="store_true", help="pass arrays as pointers alone")
    interpret.add_argument(
        "--save",
        action="append",
        default=[],
        metavar="N=FILE",
        help="argument N after the run, .npy; - is standard output",
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
    from toolchain.tileir.check import source_path, text_of
    from toolchain.tileir.compose.sample import sample
    from toolchain.tileir.dialect.verify import verify as check

    raw, name = read(path), source_name(path)
    content = text_of(raw, name)
    if content is None:
        modules = [bytecode.read(raw, name=name)]
    elif (source := source_path(content, name, None if path == STREAM else path)) is not None:
        return [sample(source)]
    else:
        modules = text.parse_all(content, filename=name)
    for module in modules:
        check(module, text=content, filename=name)
    return modules


def disassemble_(args: argparse.Namespace) -> int:
    from toolchain.tileir import bytecode, text
    from toolchain.tileir.dialect import verify

    name = source_name(args.file)
    module = bytecode.read(read(args.file), name=name)
    verify(module, filename=name)  # what is not right has no text
    emit(args.output, text.print_module(module).encode())
    return 0


def verify_(args: argparse.Namespace) -> int:
    from toolchain.tileir.check import Checked, as_json, check_file

    rows: list[dict[str, Any]] = []
    errors: dict[str, TilestackError] = {}  # a wrong part of a folder's kernels is found from each of its files
    for path in args.files:
        name = source_name(path)
        try:
            checked = check_file(read(path), name, None if path == STREAM else path)
        except UsageError as error:  # it cannot be read
            checked = Checked([], [error])
        if args.debug and checked.errors:
            raise checked.errors[0]
        rows.append({"file": name, "entries": list(checked.entries), "errors": [as_json(e) for e in checked.errors]})
        for error in checked.errors:
            if str(error) not in errors and not args.json:
                print(f"error: {error}", file=sys.stderr)
            errors[str(error)] = error
        if not checked.errors and not args.json:
            listed = ", ".join(f"@{symbol}" for symbol in checked.entries) or "no entries"
            print(f"{name}: ok: {listed}")
    wrong = sum(bool(row["errors"]) for row in rows)
    if args.json:
        print_json({"files": rows, "wrong": wrong})
    elif len(rows) > 1 or len(errors) > 1:
        counted = f"{len(errors)} error{'s' * (len(errors) != 1)}" if wrong else "no error"
        print(f"{len(rows)} files, {counted}" + f" in {wrong} of them" * (wrong > 0) if len(rows) > 1 else counted,
              file=sys.stderr)  # fmt: skip
    codes = {error.exit_code for error in errors.values()}
    return SourceError.exit_code if SourceError.exit_code in codes else max(codes, default=0)


def interpret_(args: argparse.Namespace) -> int:
    from .interpret import interpret  # with numpy, which the other commands here do without

    return interpret(args, load(args.file))
