"""`cute-opt`: reads a file with operations of `cute`, verifies it, runs passes over it, and prints it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common.options import command, emit, read

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

EXAMPLES = """\
  tilestack cute-opt layouts.mlir
  tilestack cute-opt layouts.mlir --pass-pipeline cute-fold-static --print-ir-after-all
  tilestack cute-opt kernel.mlir --pass-pipeline cute-desugar,cute-to-base,cute-nvgpu-to-nvvm --emit ptx
"""


def add(commands: Any) -> None:
    made = command(commands, "cute-opt", cute_opt, "verify a file of cute IR, and run passes over it", EXAMPLES)
    made.add_argument("file", type=Path, metavar="FILE", help="MLIR text; - for standard input")
    made.add_argument("--pass-pipeline", default="", metavar="PASS,...", help="the passes to run, in this order")
    made.add_argument("--print-ir-after-all", action="store_true", help="show the module after each pass")
    made.add_argument("--emit", choices=("mlir", "llvm", "ptx"), default="mlir", help="what to print; default mlir")
    made.add_argument("--arch", default="sm_90a", metavar="SM", help="of the PTX; default sm_90a")
    made.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")


def cute_opt(args: argparse.Namespace) -> int:
    from xdsl.dialects.builtin import StringAttr

    from toolchain.cute.nvvm.location import verify
    from toolchain.cute.parse import parse
    from toolchain.cute.passes import PASSES, TARGET
    from toolchain.errors import UsageError

    names = [name for name in args.pass_pipeline.split(",") if name]
    if unknown := [name for name in names if name not in PASSES]:
        raise UsageError(f"no pass {unknown[0]!r}", hint=f"one of {', '.join(PASSES)}")
    stdin = str(args.file) == "-"
    text = sys.stdin.read() if stdin else _decoded(args.file)
    module = parse(text, "<stdin>" if stdin else str(args.file))
    if args.emit == "ptx":
        module.attributes.setdefault(TARGET, StringAttr(args.arch))
    for name in names:
        PASSES[name](module)
        verify(module, f"after {name}")
        if args.print_ir_after_all:
            print(f"// after {name}", module, sep="\n", file=sys.stderr)
    emit(args.output, _emitted(module, args.emit, args.arch, str(args.file)).encode())
    return 0


def _emitted(module: ModuleOp, form: str, arch: str, name: str) -> str:
    from toolchain.cute import nvvm

    if form == "ptx":
        return nvvm.compile_to_ptx(module, arch, name=name)
    return nvvm.to_llvm_ir(module) if form == "llvm" else f"{module!s}\n"


def _decoded(path: Path) -> str:
    from toolchain.errors import UsageError

    try:
        return read(path).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: byte {error.start}", hint="give a file of MLIR text") from error
