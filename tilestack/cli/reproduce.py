"""`matrix plan` and `reproduce`: what CI runs, and the commands that do the same here."""

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

from .common.options import add_json, command, print_json, write

PLAN = """\
  tilestack matrix plan --event pull_request --base origin/main    what this branch makes CI run
  tilestack matrix plan --event pull_request --changed kernels_mlir/gelu.mlir
  tilestack matrix plan --event nightly --json
"""

REPRODUCE = """\
  tilestack reproduce gelu-mlir-bf16-sm_90             the commands that compile and check one cell
  tilestack reproduce build/report/results.json        those of every cell that failed in a run
  tilestack reproduce gelu-mlir-bf16-cpu --run         run them
"""


def add_plan(actions: Any) -> None:
    """Adds `matrix plan`."""
    made = command(actions, "plan", plan, "show which jobs CI runs for an event or a change", PLAN)
    made.add_argument(
        "--event", choices=("pull_request", "nightly", "release"), default="pull_request", help="default pull_request"
    )
    changed = made.add_mutually_exclusive_group()
    changed.add_argument("--changed", nargs="+", metavar="PATH", help="the files that changed, as git names them")
    changed.add_argument("--base", metavar="COMMIT", help="what differs from where this branch and COMMIT parted")
    made.add_argument("--github-output", type=Path, metavar="FILE", help="append a matrix of each kind of job")
    made.add_argument("--summary", type=Path, metavar="FILE", help="append the plan as Markdown")
    add_json(made)


def add(commands: Any) -> None:
    made = command(commands, "reproduce", reproduce, "show or run the commands that run a cell again", REPRODUCE)
    made.add_argument("cell", metavar="CELL | results.json", help="OP-SOURCE-DTYPE-TARGET, or the results of a run")
    made.add_argument("--run", action="store_true", dest="now", help="run the commands instead of showing them")
    made.add_argument("--bundle", type=Path, metavar="DIR", help="a bundle that is there (default: compile one)")
    made.add_argument("--executor", help="cpu, cuda, cuda:N (default: what the cell's target needs)")
    made.add_argument("--container", action="store_true", help="run the cell in the runtime container")


def reproduce(args: argparse.Namespace) -> int:
    from ci.cells import Again, Cell, failed, grouped

    if args.container and args.executor:
        raise UsageError("--executor: the container takes every GPU that it is given", hint="leave one of the two out")
    if args.cell.endswith(".json"):
        cells, again = failed(Path(args.cell))
    else:
        cells, again = [Cell.parse(args.cell)], Again()
    again = replace(again, executor=args.executor, bundle=args.bundle, container=args.container)
    codes = [_shown(again.commands(group), now=args.now) for group in grouped(cells)]
    return next((code for code in codes if code), 0)


def _shown(commands: Sequence[Sequence[str]], *, now: bool) -> int:
    """Shows commands and, with `now`, runs them up to the first that fails; returns its exit code."""
    for words in commands:
        print(shlex.join(words), flush=True)
        if now and (code := subprocess.run(words, cwd=ROOT, check=False).returncode):
            return code
    return 0


def plan(args: argparse.Namespace) -> int:
    if not CHECKOUT:
        raise UsageError(
            "matrix plan plans the CI of a checkout; this is an installed package", hint="clone the sources"
        )
    from ci.matrix import Matrix
    from ci.plan import show
    from ci.plan.graph import Graph, changed_since
    from ci.plan.jobs import plan as make

    matrix = Matrix.load()
    paths = changed_since(args.base) if args.base else args.changed
    graph = Graph(matrix)
    reaches = None if paths is None else [graph.reach(path) for path in paths]
    made = make(matrix, matrix.events[args.event], reaches, args.base)
    for path, lines in ((args.github_output, show.github_outputs), (args.summary, show.markdown)):
        if path is not None:
            before = path.read_bytes() if path.exists() else b""
            write(path, before + "".join(f"{line}\n" for line in lines(made)).encode())
    if args.json:
        print_json(made.to_json())
    else:
        print(*show.text(made), sep="\n")
    return 0
