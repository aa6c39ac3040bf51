"""`check`: somebody's own kernels against their references, by a matrix.toml."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from toolchain.errors import ConformanceError, NoGPU

from .common.options import add_json, command, seed

CHECK = """\
  tilestack check                                      matrix.toml of this folder, on a GPU or else on the CPU
  tilestack check kernels/matrix.toml --op axpy --executor cpu --report build/report
  tilestack check --recording build/recording          what `tilestack record` compiled, where no compiler is
"""


def add(commands: Any) -> None:
    made = command(commands, "check", check, "check kernels of your own against their references", CHECK)
    made.add_argument("table", type=Path, nargs="?", default=Path("matrix.toml"), help="default matrix.toml")
    made.add_argument("--recording", type=Path, metavar="DIR", help="run what `record` left there instead")
    made.add_argument("--op", action="append", default=[], help="only this one; repeat")
    made.add_argument("--dtype", action="append", default=[], help="only this one; repeat")
    made.add_argument("--executor", choices=("auto", "cpu", "cuda"), default="auto", help="default auto")
    made.add_argument("--report", type=Path, metavar="DIR", help="write results.json, JUnit and HTML")
    made.add_argument("--seed", type=seed, default=1, help="of the inputs (default 1)")
    add_json(made)


def check(args: argparse.Namespace) -> int:
    from ci.report.write import write_report
    from conformance.results.result import CellResult

    on, executor, target = _place(args.executor)

    def told(row: CellResult) -> None:
        if not args.json:
            print(f"{row.status}: {row.cell} {row.shape}  {row.share}{row.said}".rstrip(), flush=True)

    if args.recording:
        from ..own.recorded import run_recorded

        results = run_recorded(args.recording, args.op, args.dtype, on, told)
    else:
        from ..own.run import run
        from ..own.table import load, only

        ops, folder = only(load(args.table), args.op, args.dtype, args.table), args.table.absolute().parent
        results = run(ops, folder, on=on, executor=executor, target=target, seed=args.seed, told=told)
    if args.report:
        lines = write_report(results, args.report)
        if not args.json:
            print(*lines, sep="\n")
    if args.json:
        print(results.to_json(), end="")
    else:
        print(f"{results.summary()} in {results.environment['seconds']} s on {executor}")
    return 0 if results.green else ConformanceError.exit_code


def _place(executor: str) -> tuple[str, str, str]:
    """Where launches run, and how rows name it."""
    from toolchain.runtime import gpus

    found = () if executor == "cpu" else gpus()
    if executor == "cuda" and not found:
        raise NoGPU("there is no GPU, or no driver for it", hint="--executor cpu")
    if not found:
        return "cpu", "cpu interpreter", ""
    gpu, (major, minor) = found[0], found[0].compute_capability
    return f"cuda:{gpu.index}", f"cuda:{gpu.index} {gpu.name}", f"sm_{major}{minor}"
