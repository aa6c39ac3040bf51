"""`export-cpp`: a bundle's entries as functions of C++."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from .common.options import command, emit

EXAMPLES = """\
  tilestack export-cpp build/bundle --source mlir --target sm_90 --output kernels.hpp
  tilestack export-cpp build/bundle --source mlir --op linear --dtype bf16 --embed --output linear.hpp
"""


def add(commands: Any) -> None:
    made = command(commands, "export-cpp", export_cpp, "write a C++ header with a bundle's entries", EXAMPLES)
    made.add_argument("bundle", type=Path, metavar="BUNDLE", help="the bundle's folder")
    made.add_argument("--source", help="of this source (default: the only one)")
    made.add_argument("--target", metavar="SM", help="for this target (default: the only one)")
    made.add_argument("--op", action="append", default=[], help="only this op; repeat")
    made.add_argument("--dtype", action="append", default=[], help="only this dtype; repeat")
    made.add_argument("--namespace", type=_namespace, default="tilestack_kernels", help="default tilestack_kernels")
    made.add_argument("--embed", action="store_true", help="put the cubins into the header, for a program of one file")
    made.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")


def _namespace(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z]\w*(::[A-Za-z]\w*)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a namespace of C++")
    return text


def export_cpp(args: argparse.Namespace) -> int:
    from cute_runtime.export.header import Export, choose
    from toolchain.bundles.bundle import Bundle

    bundle = Bundle.load(args.bundle)
    source, target, entries = choose(bundle, args.source, args.target, args.op, args.dtype)
    text = Export(bundle, source, target, entries, args.namespace, args.embed).text()
    emit(args.output, text.encode())
    return 0
