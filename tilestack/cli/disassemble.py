"""`disassemble`: the Tile IR text of bytecode."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common.options import command, emit, read, source_name


def add(commands: Any) -> None:
    disassemble = command(
        commands, "disassemble", disassemble_, "print the Tile IR text of bytecode",
        "  tilestack disassemble gelu.tilebc\n",
    )  # fmt: skip
    disassemble.add_argument("file", type=Path, help=".tilebc; - for standard input")
    disassemble.add_argument("-o", "--output", type=Path, help="default: standard output")


def disassemble_(args: argparse.Namespace) -> int:
    from toolchain.tileir import bytecode, text
    from toolchain.tileir.dialect import verify

    name = source_name(args.file)
    module = bytecode.read(read(args.file), name=name)
    verify(module, filename=name)  # what is not right has no text
    emit(args.output, text.print_module(module).encode())
    return 0
