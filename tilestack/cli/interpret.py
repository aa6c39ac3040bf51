"""`interpret`: a kernel on the CPU interpreter, with arguments from files, at random, or zero."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common.options import add_json, command, positive, seed


def add(commands: Any) -> None:
    interpret = command(
        commands, "interpret", interpret_, "run a kernel on the CPU interpreter",
        "  tilestack interpret gelu.tilebc --grid 1,7 --arg bf16:7x65 --arg bf16:7x65 --seed 1\n"
        "  tilestack interpret gelu.tilebc --grid 1,7 --arg bf16:7x65 --arg zeros:bf16:7x65 --save 1=out.npy\n"
        "  tilestack interpret gelu.tilebc --grid 1,7 --arg bf16:out.npy --arg zeros:bf16:7x65 --json\n"
        "an --arg, in ABI order: FILE.npy, DTYPE:FILE.npy to convert it, DTYPE:SIZES for random values,\n"
        "zeros:DTYPE:SIZES, or a number; DTYPE is one of Tile IR's, such as f32, bf16, f8E4M3FN, i32 or i1.\n"
        "[ARG,ARG] is a list of arrays, view:N:FIRST:SIZES[:STRIDES] a part of argument N before it\n"
        "An array is passed as cuTile does: pointer, sizes, strides; with --pointers as its pointer alone\n"
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
        help="argument N after the run, .npy; - is standard output; N[I] is of a list",
    )
    interpret.add_argument("--seed", type=seed, default=0, help="of random values (default 0)")
    interpret.add_argument(
        "--schedule",
        type=seed,
        metavar="N",
        help="the order in which blocks that wait for each other run: 0 the lowest first, 1 the highest first, else a "
        "seed (default: several are tried)",
    )
    interpret.add_argument(
        "--resident", type=positive, metavar="N", help="how many blocks that wait for each other run at once"
    )
    interpret.add_argument("--no-sanitize", action="store_true", help="do not trap undefined behaviour: faster")
    interpret.add_argument(
        "--padding", choices=("strict", "zero"), default="strict",
        help="what a load without a padding value reads outside its array: what must not be used (default), or 0 with "
        "a warning, as on a GPU",
    )  # fmt: skip
    add_json(interpret)


def interpret_(args: argparse.Namespace) -> int:
    from .common.interpreting import interpret  # with numpy, which to parse the command line needs not
    from .common.modules import load

    return interpret(args, load(args.file))
