"""`time`: how long somebody's own kernels take, from a recording."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError

from .common.options import command, pattern, positive

TIME = """\
  tilestack time build/recording                                            the timed cells, on a GPU
  tilestack time build/recording --against base=build/before --case axpy    beside those of another commit
"""


def add(commands: Any) -> None:
    made = command(commands, "time", time, "time your own kernels, as `record` left them", TIME)
    usual = Path("build/recording")
    made.add_argument("recording", type=Path, nargs="?", default=usual, help=f"default {usual}")
    made.add_argument("--against", action="append", default=[], metavar="NAME=DIR", help="another recording; repeat")
    made.add_argument("--case", type=pattern, default="", metavar="REGEX", help="only cases with a match")
    made.add_argument("--samples", type=positive, default=30, metavar="N", help="rounds (default 30)")
    made.add_argument("--executor", choices=("cuda", "cpu"), default="cuda", help="cpu: the interpreter's own time")
    made.add_argument("--output", type=Path, default=Path("build/times"), metavar="DIR", help="default build/times")


def time(args: argparse.Namespace) -> int:
    from benchmarks.report.table import table
    from toolchain.runtime import open_executor

    from ..own.recording import Recording
    from ..own.timing import measure

    if wrong := [each for each in args.against if "=" not in each]:
        raise UsageError(f"--against {wrong[0]}: it is no NAME=DIR")
    recording = Recording.load(args.recording)
    others = {each.partition("=")[0]: Recording.load(Path(each.partition("=")[2])) for each in args.against}
    with open_executor(args.executor) as executor:
        results, code = measure(
            executor, recording, others, args.case, args.samples, args.output, lambda line: print(line, flush=True)
        )
    print(f"{table(results)}\nwrote {args.output / results.file_name}")
    return code
