"""`diff`: what compiled kernels use of a GPU in two bundles."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .common.options import add_json, command, print_json, write
from .common.two_bundles import add_bundles

DIFF = """\
  tilestack diff build/before build/bundle             what changed in registers, spills, instructions, tensor-core use
  tilestack diff old.tar.xz new.tar.xz --target sm_90 --html diff.html
  tilestack diff build/before build/bundle --markdown comment.md
exit codes:
  0 nothing suspicious   1 a suspicious kernel   2 bad input   4 toolchain   5 bundle
"""


def add(commands: Any) -> None:
    made = command(commands, "diff", diff, "compare the machine code of two bundles, without a GPU", DIFF)
    add_bundles(made)
    made.add_argument("--markdown", type=Path, metavar="FILE", help="write a comment for a pull request")
    made.add_argument("--html", type=Path, metavar="FILE", help="write a page")
    add_json(made)


def diff(args: argparse.Namespace) -> int:
    from ci.diff import show
    from ci.diff.compare import compare, opened
    from toolchain import knobs
    from toolchain.caching.cache import Cache

    with opened(args.before) as before, opened(args.after) as after:
        names = (str(args.before), str(args.after))
        made = compare((before, after), names, Cache(knobs.cache_dir()), knobs.jobs(), args.target)
    for path, content in ((args.markdown, show.markdown), (args.html, show.html)):
        if path is not None:
            write(path, content(made).encode())
            print(f"wrote {path}", file=sys.stderr)
    if args.json:
        print_json(made.to_json())
    else:
        print(*show.text(made), sep="\n")
    return made.exit_code
