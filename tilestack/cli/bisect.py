"""`bisect`: what made a kernel's machine code different in two bundles, or from one commit to another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common.options import SOURCES, add_json, command, print_json
from .common.two_bundles import add_bundles

BISECT = """\
  tilestack bisect build/before build/bundle           the most suspicious kernel: its code, bytecode, or which tool
  tilestack bisect build/before build/bundle --source mlir --entry gelu_any_f32 --target sm_90
  tilestack bisect A B --check "python3 measure.py {base} {bundle}"   a command decides, such as one that measures
  tilestack bisect v0.1 HEAD --commits --source mlir --entry gelu_any_f32 --target sm_90    which commit made it
exit codes:
  0 found   1 nothing that was tried made it   2 bad input   4 toolchain   5 bundle
"""


def add(commands: Any) -> None:
    made = command(commands, "bisect", bisect, "find what made a kernel's machine code different", BISECT)
    add_bundles(made)
    made.add_argument("--entry", metavar="SYMBOL", help="with --source and --target (default: the most suspicious)")
    made.add_argument("--source", choices=list(SOURCES), help="of that entry")
    made.add_argument("--commits", action="store_true", help="BUNDLE_A and BUNDLE_B are commits, the older one first")
    made.add_argument("--nox", default="nox", metavar="PATH", help="with --commits: makes each commit's toolchain")
    made.add_argument("--check", metavar="COMMAND", help="decides by exit code, as `git bisect run`; {base}, {bundle}")
    add_json(made)


def bisect(args: argparse.Namespace) -> int:
    from ci.diff.bisect import bisect as take_apart
    from ci.diff.compare import compare, opened
    from toolchain import knobs
    from toolchain.caching.cache import Cache
    from toolchain.errors import UsageError

    if args.commits:
        return _by_commit(args)
    cache = Cache(knobs.cache_dir())
    with opened(args.before) as before, opened(args.after) as after:
        bundles, words = (before, after), (args.source, args.entry, args.target)
        if any(words) and not all(words):
            raise UsageError("--source, --entry and --target name one cubin", hint="give all of them, or none")
        cell = f"{args.source}/{args.entry} {args.target}"
        if not args.entry:
            found = compare(bundles, (str(args.before), str(args.after)), cache, knobs.jobs())
            if not found.changed:
                raise UsageError("the bundles have the same cubins", hint="nothing is to be found")
            cell = found.changed[0].cell
        answer = take_apart(bundles, cell, cache, args.check)
    if args.json:
        print_json(answer.to_json())
    else:
        print(*answer.lines(), sep="\n")
    return 0 if answer.causes else 1


def _by_commit(args: argparse.Namespace) -> int:
    import tempfile

    from ci.diff.commits import bisect_commits, compiler
    from toolchain import knobs
    from toolchain.caching.cache import Cache
    from toolchain.errors import UsageError

    if not (args.source and args.entry and args.target):
        raise UsageError("--commits compiles one kernel", hint="name it: --source, --entry and --target")
    cell = f"{args.source}/{args.entry} {args.target}"
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        made = compiler(cell, Path(folder, "bundle"), args.nox)
        found = bisect_commits(str(args.before), str(args.after), cell, made, Cache(knobs.cache_dir()), args.check)
    if args.json:
        print_json(found.to_json())
    else:
        print(*found.lines(), sep="\n")
    return 0
