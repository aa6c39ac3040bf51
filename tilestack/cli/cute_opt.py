"""`cute-opt`: reads a file with operations of `cute`, verifies it, runs passes over it, and prints it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common.options import command, emit, read_text, shown

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from toolchain.cute.chunks import Chunk

EXAMPLES = """\
  tilestack cute-opt layouts.mlir
  tilestack cute-opt layouts.mlir --pass-pipeline cute-fold-static --print-ir-after-all
  tilestack cute-opt layouts.mlir -cute-fold-static -cute-expand-ops -cute-to-base -canonicalize
  tilestack cute-opt errors.mlir -split-input-file -verify-diagnostics
  tilestack cute-opt kernel.mlir --pass-pipeline cute-desugar,cute-lower,cute-nvgpu-to-nvvm --emit ptx
"""
# The passes that an option of their own names, as MLIR's tools have it. What a name means is in toolchain.cute.passes.
NAMED = ("cute-fold-static", "cute-expand-ops", "cute-to-base", "canonicalize", "cse", "loop-invariant-code-motion",
         "reconcile-unrealized-casts")  # fmt: skip
FLAGS = {
    "split-input-file": "take each part between lines `// -----` by itself",
    "verify-diagnostics": "check that the errors are those that `// expected-error` names, and print no module",
    "mlir-print-op-generic": "print every operation in MLIR's generic form",
}


def add(commands: Any) -> None:
    made = command(commands, "cute-opt", cute_opt, "verify a file of cute IR, and run passes over it", EXAMPLES)
    made.add_argument("file", type=Path, metavar="FILE", help="MLIR text; - for standard input")
    made.add_argument("--pass-pipeline", default="", metavar="PASS,...", help="the passes to run, in this order")
    for name in NAMED:
        _flag(made, name, "the same for one pass, behind those named before", dest="named", action="append_const",
              const=name, default=[])  # fmt: skip
    made.add_argument("--print-ir-after-all", action="store_true", help="show the module after each pass")
    for name, does in FLAGS.items():
        _flag(made, name, does, action="store_true")
    made.add_argument("--emit", choices=("mlir", "llvm", "ptx"), default="mlir", help="what to print; default mlir")
    made.add_argument("--arch", default="sm_90a", metavar="SM", help="of the PTX; default sm_90a")
    made.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")


def _flag(parser: argparse.ArgumentParser, name: str, does: str, **how: Any) -> None:
    """An option with one dash, as MLIR's tools take it, or with two."""
    parser.add_argument(f"-{name}", f"--{name}", help=does, **how)


def cute_opt(args: argparse.Namespace) -> int:
    from toolchain.cute.chunks import chunks
    from toolchain.cute.passes import PASSES
    from toolchain.errors import SourceError, UsageError

    names = [*(name for name in args.pass_pipeline.split(",") if name), *args.named]
    if unknown := [name for name in names if name not in PASSES]:
        raise UsageError(f"no pass {unknown[0]!r}", hint=f"one of {', '.join(PASSES)}")
    where = shown(args.file) if str(args.file) != "-" else "<stdin>"
    parts = chunks(read_text(args.file), split=args.split_input_file)
    if args.verify_diagnostics:
        if unmet := [line for part in parts for line in _unmet(part, where, names, args)]:
            raise SourceError("\n".join(unmet), hint="correct the module, or what it expects")
        return 0
    printed = [_emitted(_passed(part, where, names, args), args, where) for part in parts]
    emit(args.output, "// -----\n".join(printed).encode())
    return 0


def _passed(part: Chunk, where: str, names: Sequence[str], args: argparse.Namespace) -> ModuleOp:
    """The module of a part behind the passes. Raises SourceError."""
    from xdsl.dialects.builtin import StringAttr

    from toolchain.cute.nvvm.location import verify
    from toolchain.cute.parse import parse
    from toolchain.cute.passes import PASSES, TARGET

    module = parse(part.in_place, where)
    if args.emit == "ptx":
        module.attributes.setdefault(TARGET, StringAttr(args.arch))
    for name in names:
        PASSES[name](module)
        verify(module, f"after {name}")
        if args.print_ir_after_all:
            print(f"// after {name}", module, sep="\n", file=sys.stderr)
    return module


def _unmet(part: Chunk, where: str, names: Sequence[str], args: argparse.Namespace) -> list[str]:
    """What a part expects and does not give, and what it gives and does not expect."""
    from toolchain.errors import SourceError, UsageError

    said = ""
    try:
        _passed(part, where, names, args)
    except (SourceError, UsageError) as error:
        said = str(error.args[0])
    expected = [each for each in part.errors if not _is_met(each, said, where)]
    unmet = [f"{where}:{each.line}: expected error {each.message!r} was not produced" for each in expected]
    return [*unmet, f"unexpected error: {said}"] if said and len(expected) == len(part.errors) else unmet


def _is_met(expected: Any, said: str, where: str) -> bool:
    at_line = expected.line is None or said.startswith(f"{where}:{expected.line}:")
    return bool(said) and at_line and expected.said_in(said)


def _emitted(module: ModuleOp, args: argparse.Namespace, where: str) -> str:
    from toolchain.cute import nvvm
    from toolchain.cute.mlir_text import mlir_text

    if args.emit == "ptx":
        return nvvm.compile_to_ptx(module, args.arch, name=where)
    return (
        nvvm.to_llvm_ir(module) if args.emit == "llvm" else f"{mlir_text(module, generic=args.mlir_print_op_generic)}\n"
    )
