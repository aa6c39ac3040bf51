"""`run`: a Python program whose cuTile kernels run on the CPU interpreter, and which nobody changed for it."""

from __future__ import annotations

import argparse
from typing import Any

from .common.options import command


def add(commands: Any) -> None:
    run = command(
        commands, "run", run_, "run a Python program with its cuTile kernels on the CPU interpreter",
        "  tilestack run train.py --steps 3\n"
        "  tilestack run -m pytest tests/test_kernels.py -q\n"
        "  tilestack run --target sm_90 --padding strict bench.py\n"
        "options of tilestack stand before the program, all others are the program's own\n"
        "the program ends with its own exit code, and with 8 where the sanitizer stops it\n",
    )  # fmt: skip
    run.add_argument("--target", metavar="TARGET", help="whose compute capability the device has (default sm_100)")
    run.add_argument("--no-sanitize", action="store_true", help="do not trap undefined behaviour: faster")
    run.add_argument(
        "--padding", choices=("strict", "zero"), default="zero",
        help="what a load without a padding value reads outside its array: 0 with a warning, as a GPU gives (default), "
        "or what must not be used",
    )  # fmt: skip
    run.add_argument("-m", nargs=argparse.REMAINDER, metavar="MODULE", dest="module", help="run a module, as python -m")
    run.add_argument("script", nargs="?", help="a Python file")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the program's own")


def run_(args: argparse.Namespace) -> int:
    from .common.program import run  # with the tables of targets, which to parse the command line needs not

    return run(args)
