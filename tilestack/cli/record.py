"""`record`: what somebody's own kernels launch, compiled for GPUs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common.options import add_json, command, positive, print_json, seed

RECORD = """\
  tilestack record --target sm_90                                   build/recording, for `check` and `gate` on a GPU
  tilestack record --target sm_90 --base origin/main --before build/before    and the same of another commit
"""


def add(commands: Any) -> None:
    doc = "compile all that your own kernels' checks launch, for machines without a compiler"
    made = command(commands, "record", record, doc, RECORD)
    made.add_argument("table", type=Path, nargs="?", default=Path("matrix.toml"), help="default matrix.toml")
    made.add_argument("--target", action="append", required=True, metavar="SM", help="such as sm_90; repeat")
    made.add_argument("--op", action="append", default=[], help="only this one; repeat")
    made.add_argument("--multiprocessors", type=positive, default=132, metavar="N", help="for grids (default 132)")
    made.add_argument("--seed", type=seed, default=1, help="of the inputs (default 1)")
    made.add_argument("--base", default="", metavar="COMMIT", help="record this commit of the repository too")
    made.add_argument("--before", type=Path, default=Path("build/before"), metavar="DIR", help="where --base goes")
    made.add_argument(
        "--output", type=Path, default=Path("build/recording"), metavar="DIR", help="default build/recording"
    )
    add_json(made)


def record(args: argparse.Namespace) -> None:
    from toolchain.contract import targets

    from ..own.base import commit_of, record_base
    from ..own.record import record as make
    from ..own.table import load, only

    chosen, folder = targets.select(args.target), args.table.absolute().parent
    ops = only(load(args.table), args.op, [], args.table)

    def told(line: str) -> None:
        if not args.json:
            print(line, flush=True)

    made = make(
        ops, args.table.absolute(), args.output, chosen, sms=args.multiprocessors, seed=args.seed,
        commit=commit_of(folder), told=told,
    )  # fmt: skip
    if args.base:
        options = [word for target in args.target for word in ("--target", target)]
        options += [word for op in args.op for word in ("--op", op)]
        numbers = ["--multiprocessors", str(args.multiprocessors), "--seed", str(args.seed)]
        record_base(args.table, args.base, args.before, [*options, *numbers])
    timed = sum(cell.timed for cell in made.cells)
    if args.json:
        print_json({"cells": len(made.cells), "timed": timed, "targets": list(made.targets), "sha256": made.sha256})
    else:
        print(f"wrote {args.output}: {len(made.cells)} cells, {timed} of them timed, for {', '.join(made.targets)}")
