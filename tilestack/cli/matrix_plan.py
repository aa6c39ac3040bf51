"""`matrix plan`: what CI runs for an event or a change."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError
from toolchain.pinned.manifest import CHECKOUT

from .common.options import add_json, command, print_json, write

PLAN = """\
  tilestack matrix plan --event pull_request --base origin/main    what this branch makes CI run
  tilestack matrix plan --event pull_request --changed kernels_mlir/gelu.mlir
  tilestack matrix plan --event nightly --json
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
    made.add_argument("--op", action="append", default=[], help="only this op, for a run by hand; repeat")
    made.add_argument("--github-output", type=Path, metavar="FILE", help="append a matrix of each kind of job")
    made.add_argument("--summary", type=Path, metavar="FILE", help="append the plan as Markdown")
    add_json(made)


def plan(args: argparse.Namespace) -> int:
    if not CHECKOUT:
        raise UsageError(
            "matrix plan plans the CI of a checkout; this is an installed package", hint="clone the sources"
        )
    from ci.bench.request import load
    from ci.matrix import Matrix
    from ci.plan import show
    from ci.plan.changes import Changes, changed_since
    from ci.plan.graph import Graph
    from ci.plan.jobs import plan as make

    matrix = Matrix.load()
    event = matrix.events[args.event]
    if args.base:
        changes = changed_since(args.base)
    else:
        named = f"{len(args.changed)} paths are named" if args.changed else "no base is named"
        changes = Changes(args.changed, named)
    graph = Graph(matrix)
    paths = changes.paths
    reaches = None if paths is None else [graph.reach(path, changes.renamed.get(path, "")) for path in paths]
    why = changes.why if event.changed_only else f"the event {event.name} takes everything, whatever changed"
    made = make(matrix, event, reaches, args.base, args.op, load(matrix), why)
    for path, lines in ((args.github_output, show.github_outputs), (args.summary, show.markdown)):
        if path is not None:
            before = path.read_bytes() if path.exists() else b""
            write(path, before + "".join(f"{line}\n" for line in lines(made)).encode())
    if args.json:
        print_json(made.to_json())
    else:
        print(*show.text(made), sep="\n")
    return 0
