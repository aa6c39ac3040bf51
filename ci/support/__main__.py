"""`python -m ci.support [compile | run | page]`: see docs/support.md."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from toolchain import command, knobs
from toolchain.files import write_whole
from toolchain.knobs import ROOT
from toolchain.pinned.manifest import REPAIR

from .check import difference
from .page import page
from .table import DATA, Settings, Table, merge

OUTPUT = Path("build/support")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m ci.support", description="The support table: docs/support.md.")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    made = commands.add_parser("compile", help="export and compile, with each tileiras: needs no GPU")
    made.add_argument("--tileiras", action="append", default=[], metavar="VERSION", help="default: all; repeat")
    made.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help=f"default {OUTPUT}")
    made.add_argument("--jobs", type=int, help="default: the CPU cores")
    made.add_argument("--uv", default="uv", help=argparse.SUPPRESS)
    made.set_defaults(run=_compile)
    ran = commands.add_parser("run", help="load, run and check the bundles on this GPU")
    ran.add_argument("--bundles", type=Path, default=OUTPUT / "bundles", metavar="DIR", help="what compile wrote")
    ran.add_argument("--output", type=Path, default=OUTPUT / "gpu.json", metavar="FILE")
    ran.set_defaults(run=_run)
    shown = commands.add_parser("page", help="merge results into the table, and write the page")
    shown.add_argument("results", type=Path, nargs="*", help="what compile and run wrote; none: only the page")
    shown.add_argument("--check", action="store_true", help="write nothing; exit code 1 if results change the table")
    shown.add_argument("--summary", type=Path, metavar="FILE", help="with --check: append the difference as Markdown")
    shown.set_defaults(run=_page)
    return top


def _compile(args: argparse.Namespace) -> None:
    from ci.matrix import Matrix  # imported here because a GPU machine runs this file too

    from .compiling import compile_with

    for version in args.tileiras or Matrix.load().tools["tileiras"]:
        started = time.monotonic()
        made = compile_with(version, Settings.load(), args.output, uv=args.uv, jobs=args.jobs or knobs.jobs())
        made.write(args.output / f"{version}.json")
        print(f"tileiras {version}: {time.monotonic() - started:.0f} s", flush=True)


def _run(args: argparse.Namespace) -> None:
    from .running import run_all

    found = run_all(args.bundles, Settings.load())
    found.write(args.output)
    for row in found.ran:
        shown = f"{row.loaded} loaded, {row.ran} ran, {row.conformed} conformed of {row.of} {row.why}"
        print(f"tileiras {row.tileiras}, bytecode {row.bytecode}, {row.source}: {shown}".rstrip())


def _page(args: argparse.Namespace) -> int:
    if args.check:
        return _check(args)
    before = [Table.load()] if DATA.exists() else []
    whole = merge([*before, *map(Table.load, args.results)])
    whole.write(DATA)
    write_whole(ROOT / "docs/support.md", page(whole, Settings.load()))
    return 0


def _check(args: argparse.Namespace) -> int:
    found = difference(Table.load(), [Table.load(path) for path in args.results], Settings.load())
    print(found or "the support table is as measured")
    if args.summary:
        told = f"```diff\n{found}\n```" if found else "As measured."
        with args.summary.open("a") as summary:
            summary.write(f"### Support table\n\n{told}\n")
    if found:
        print("next: nox -s support_page -- build/support/*.json, then commit what it writes")
    return int(bool(found))


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    return command.run(lambda: args.run(args), set_up=REPAIR)


if __name__ == "__main__":
    sys.exit(main())
