"""`stack`: which LLVM and which cuda-tile belong together."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError

from .common.options import add_json, command, print_json

EXAMPLES = """\
  tilestack stack list
  tilestack stack check 22.1.8
  tilestack stack check 34eb59dd4bb2
  tilestack stack check 0123abc --date 2026-03-01
  tilestack stack check 0123abc --llvm-clone ~/llvm-project
"""


def add(commands: Any) -> None:
    stack = command(commands, "stack", None, "say which cuda-tile fits an LLVM", EXAMPLES)
    actions = stack.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = command(actions, "list", list_, "list the stacks and the LLVM commits that each cuda-tile builds with", "")
    add_json(listed)
    check = command(actions, "check", check_, "say which cuda-tile builds with an LLVM version or commit", EXAMPLES)
    check.add_argument("llvm", metavar="LLVM", help="a version, 22.1.8 or 22.1, or a commit's hash")
    check.add_argument("--date", type=_date, metavar="YYYY-MM-DD", help="when the commit was made")
    check.add_argument(
        "--llvm-clone", type=Path, metavar="DIR", help="a clone of llvm-project, which places it exactly"
    )
    add_json(check)


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date of the form YYYY-MM-DD") from error


def list_(args: argparse.Namespace) -> int:
    from toolchain.pinned.stacks import stacks

    known = stacks()
    if args.json:
        print_json({
            "default": known.default,
            "stacks": [
                {"name": row.name, "cuda_tile": row.cuda_tile, "llvm": dict(row.llvm), "suite": row.suite}
                for row in known.stacks.values()
            ],
            "compatibility": [{**vars(row), "date": str(row.date)} for row in known.intervals],
        })  # fmt: skip
        return 0
    for row in known.stacks.values():
        mark = " (default)" if row.name == known.default else ""
        llvm = ", ".join(f"LLVM {version} from {provider}" for provider, version in row.llvm.items())
        print(f"stack {row.name}{mark}: cuda-tile v{row.cuda_tile}, {llvm} (Debian {row.suite})")
    for row in known.intervals:
        print(f"cuda-tile v{row.cuda_tile}: LLVM from commit {row.commit}, {row.date}, until the next line's")
    return 0


def check_(args: argparse.Namespace) -> int:
    from toolchain.native.canary import read
    from toolchain.pinned.issues import known
    from toolchain.pinned.stacks import check

    if args.date and args.llvm_clone:
        raise UsageError("--date and --llvm-clone both place the commit", hint="give one of them")
    fit = check(args.llvm, date=args.date, clone=args.llvm_clone)
    issues = known(fit.cuda_tile, fit.llvm)
    seen = [row for row in read() if args.llvm in (row.get("works_until"), row.get("breaks_from"))]
    if args.json:
        print_json({**vars(fit), "seen": seen, "issues": [vars(issue) for issue in issues]})
    else:
        found = f"cuda-tile v{fit.cuda_tile}" if fit.cuda_tile else "no cuda-tile that we know"
        stack = f", stack {fit.stack}" if fit.stack else ", no stack of ours has it" if fit.cuda_tile else ""
        print(f"LLVM {fit.llvm}: {found}{stack}\n  {fit.why}")
        for issue in issues:
            print(f"  warning: {issue}")
        for row in seen:
            word = "works" if row.get("works_until") == args.llvm else f"breaks: {row['said']}"
            print(f"  seen with stack {row['stack']}: {row['probe']} {word}")
    return 0 if fit.cuda_tile else 1
