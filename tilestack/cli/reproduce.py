"""`reproduce`: the commands that run a cell of CI's matrix here."""

from __future__ import annotations

import argparse
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError
from toolchain.knobs import ROOT
from toolchain.pinned.manifest import CHECKOUT

from .common.options import command

REPRODUCE = """\
  tilestack reproduce gelu-mlir-bf16-sm_90             the commands that compile and check one cell
  tilestack reproduce build/report/results.json        those of every cell that failed in a run
  tilestack reproduce gelu-mlir-bf16-cpu --run         run them
  tilestack reproduce h200/results.json --machine      its commit, kernels and container, built again and compared
"""


def add(commands: Any) -> None:
    made = command(commands, "reproduce", reproduce, "show or run the commands that run a cell again", REPRODUCE)
    made.add_argument("cell", metavar="CELL | results.json", help="OP-SOURCE-DTYPE-TARGET, or the results of a run")
    made.add_argument("--run", action="store_true", dest="now", help="run the commands instead of showing them")
    made.add_argument("--bundle", type=Path, metavar="DIR", help="a bundle that is there (default: compile one)")
    made.add_argument("--executor", help="cpu, cuda, cuda:N (default: what the cell's target needs)")
    made.add_argument("--container", action="store_true", help="run the cell in the runtime container")
    made.add_argument("--machine", action="store_true", help="build what results were measured with, up to the launch")
    made.add_argument("--op", action="append", default=[], metavar="OP", help="with --machine, compile these alone")
    made.add_argument("--nox", default="nox", metavar="PATH", help="with --machine, default `nox` of PATH")


def reproduce(args: argparse.Namespace) -> int:
    from ci.cells import RerunOptions, failed, grouped, parse

    if args.container and args.executor:
        raise UsageError("--executor: the container takes every GPU that it is given", hint="leave one of the two out")
    if args.machine:
        return _machine(args)
    if args.op:
        raise UsageError("--op is for --machine", hint="name a cell: OP-SOURCE-DTYPE-TARGET")
    if args.cell.endswith(".json"):
        cells, again = failed(Path(args.cell))
    else:
        cells, again = [parse(args.cell)], RerunOptions()
    again = replace(again, executor=args.executor, bundle=args.bundle, container=args.container)
    codes = [_shown(again.commands(group), now=args.now) for group in grouped(cells)]
    return next((code for code in codes if code), 0)


def _machine(args: argparse.Namespace) -> int:
    """1 if something that was built is not as recorded."""
    if not CHECKOUT:
        raise UsageError("--machine builds a checkout again; this is an installed package", hint="clone the sources")
    from ci.rebuild import OUTPUT, rebuild

    if not args.cell.endswith(".json"):
        raise UsageError(f"--machine: {args.cell} is no results.json", hint="a cell alone has no record of its machine")
    differs = rebuild(Path(args.cell), OUTPUT, args.op, args.nox, lambda line: print(line, flush=True))
    if differs:
        print(f"not as recorded: {', '.join(differs)}", flush=True)
    return int(bool(differs))


def _shown(commands: Sequence[Sequence[str]], *, now: bool) -> int:
    """Shows commands and, with `now`, runs them up to the first that fails; returns its exit code."""
    for words in commands:
        print(shlex.join(words), flush=True)
        if now and (code := subprocess.run(words, cwd=ROOT, check=False).returncode):
            return code
    return 0
