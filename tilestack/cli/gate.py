"""`gate`: whether somebody's own kernels are as fast as those of another commit."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from toolchain.files import write_whole

from .common.options import command, pattern

GATE = """\
  tilestack gate --recording build/recording --base build/before       both as `tilestack record` leaves them
  tilestack gate --recording build/recording --base build/before --case axpy --all-cells
exit codes: 0 no regression   1 a regression   9 a wrong output   11 a cell without a verdict
"""


def add(commands: Any) -> None:
    made = command(commands, "gate", gate, "compare your own kernels' speed with another commit's", GATE)
    made.add_argument("--recording", type=Path, default=Path("build/recording"), metavar="DIR", help="what is judged")
    made.add_argument("--base", type=Path, default=Path("build/before"), metavar="DIR", help="what it is compared with")
    made.add_argument("--case", type=pattern, default="", metavar="REGEX", help="only cases with a match")
    made.add_argument("--all-cells", action="store_true", help="measure the cells of the same machine code too")
    made.add_argument("--executor", choices=("cuda", "cpu"), default="cuda", help="cpu: the interpreter, to try it")
    made.add_argument("--accepted", type=Path, default=Path("accepted.toml"), metavar="FILE", help="of regressions")
    made.add_argument("--output", type=Path, default=Path("build/gate"), metavar="DIR", help="default build/gate")
    made.add_argument("--summary", type=Path, metavar="FILE", help="append the Markdown to this file as well")


def gate(args: argparse.Namespace) -> int:
    from ..own.gate import Asked, thresholds
    from ..own.gate import gate as judge

    asked = Asked(
        args.recording, args.base, args.output, args.case, args.all_cells, args.executor, args.accepted
    )  # fmt: skip
    made = judge(asked, thresholds(), ["tilestack", *sys.argv[1:]])
    write_whole(args.output / "verdicts.json", json.dumps(made.to_json(), indent=1) + "\n", parents=True)
    write_whole(args.output / "summary.md", made.markdown())
    if args.summary:
        with args.summary.open("a") as summary:
            summary.write(made.markdown())
    print(made.markdown(), flush=True)
    return made.exit_code
