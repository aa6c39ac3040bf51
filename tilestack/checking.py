"""`matrix` and `doctor`: is everything right?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain.errors import ConformanceError

from .options import add_json, command, positive, print_json, seed
from .planning import add_plan

if TYPE_CHECKING:
    from toolchain.native.tools import NativeTools
    from toolchain.runtime import Executor

MATRIX = """\
  tilestack matrix list                                every cell of a compile
  tilestack matrix plan --base origin/main             which jobs CI runs for a branch
  tilestack matrix run --bundle build/bundle           every GPU here, or the CPU interpreter where there is none
  tilestack matrix run --bundle build/bundle --executor cpu --op attention --dtype bf16
"""


def add(commands: Any) -> None:
    matrix = command(commands, "matrix", None, "list, run or plan the conformance matrix", MATRIX)
    actions = matrix.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = command(actions, "list", list_, "list the entries of both sources", "")
    add_json(listed)
    run = command(actions, "run", run_, "check every kernel and the forward pass of a bundle", MATRIX)
    run.add_argument("--bundle", type=Path, default=Path("build/bundle"), metavar="DIR", help="default build/bundle")
    run.add_argument("--report", type=Path, default=Path("build/report"), metavar="DIR", help="default build/report")
    run.add_argument("--executor", default="auto", help="auto (every GPU, else the CPU), cpu, cuda, cuda:N")
    run.add_argument("--source", action="append", default=[], help="only this source; repeat")
    run.add_argument("--dtype", action="append", default=[], help="only this dtype; repeat")
    run.add_argument("--op", action="append", default=[], help="only this op, or forward; repeat")
    run.add_argument("--seed", type=seed, default=1, help="of the inputs (default 1)")
    run.add_argument("--full", action="store_true", help="on the CPU too every case, not the smallest of each entry")
    run.add_argument("--jobs", type=positive, default=0, metavar="N", help="processes (default: the usable CPU cores)")
    run.add_argument(
        "--resume", action="store_true", help="go on with an interrupted run of the same bundle and options"
    )
    run.add_argument("--quiet", action="store_true", help="no line for a row that passes")
    add_plan(actions)
    add_json(
        command(
            commands, "doctor", doctor, "show what is installed here, and what to do",
            "  tilestack doctor\n"
            "  tilestack doctor --json       exits with 0, with 4 if something is broken, with 7 if only the GPU is\n",
        )
    )  # fmt: skip


def list_(args: argparse.Namespace) -> int:
    from toolchain.pipeline import load_source

    from .options import SOURCES

    specs = [spec for module in SOURCES.values() for spec in load_source(module).entries()]
    if args.json:
        print_json([spec.to_json() for spec in specs])
        return 0
    for spec in specs:
        conditions = " and ".join(spec.where)
        aligned = f"aligned {' '.join(spec.aligned)}" if spec.aligned else ""
        print(f"{spec.source:5} {spec.dtype:5} {spec.symbol:36} {'; '.join(filter(None, (conditions, aligned)))}")
    return 0


def run_(args: argparse.Namespace) -> int:
    from ci.report import write_report
    from conformance.journal import FILE, Journal
    from conformance.matrix import run_matrix
    from gpt.conformance.models import SUITES
    from toolchain import knobs
    from toolchain.bundle import Bundle
    from toolchain.command import Terminated
    from toolchain.files import check_makable

    from .matrix_progress import Show

    check_makable(args.report)
    bundle = Bundle.load(args.bundle)
    journal = Journal(args.report / FILE)
    with ExitStack() as opened:
        executors = _executors(args.executor, opened)
        where = _where(args.executor, executors)
        print(f"conformance of {args.bundle} ({', '.join(bundle.sources)}): {where}", flush=True)
        terminal = sys.stdout.isatty()
        show = Show(rows=terminal and not args.quiet, lines=not terminal, say=partial(print, flush=True))
        native = opened.enter_context(_native_tools())
        with show:
            results = run_matrix(
                bundle, executors, journal, sources=args.source, dtypes=args.dtype, selected=args.op,
                suites=SUITES, seed=args.seed, native=native, full=args.full,
                processes=args.jobs or knobs.jobs(), resume=args.resume, progress=show,
                command=args.words,
            )  # fmt: skip
    for line in write_report(results, args.report):
        print(line)
    if lacking := results.environment.get("not run"):
        print(f"not run: {lacking}")
    if again := results.environment.get("retries"):
        print(f"tried again after an error of the machine: {again}")
    print(f"{results.summary()} in {results.environment['seconds']} s; {where}")
    if results.interrupted:
        print(f"next: the same command with --resume runs the rest; what is done is in {journal.path}", flush=True)
        raise Terminated if results.interrupted == "SIGTERM" else KeyboardInterrupt
    journal.remove()
    if not results.green:
        raise ConformanceError(f"not green: {results.summary()}", hint=f"see {args.report / 'index.html'}")
    return 0


def _executors(name: str, opened: ExitStack) -> list[Executor]:
    from toolchain.runtime import gpus, open_executor

    names = [f"cuda:{gpu.index}" for gpu in gpus()] if name == "auto" else []
    return [opened.enter_context(open_executor(each)) for each in names or [name]]


def _where(name: str, executors: Sequence[Executor]) -> str:
    if executors[0].kind == "cpu":
        why = "no GPU found: " if name == "auto" else ""
        return f"{why}running on the CPU interpreter, no cubin is run"
    return f"running on {', '.join(executor.name for executor in executors)}"


@contextmanager
def _native_tools() -> Generator[NativeTools | str]:
    """The open C++ tools of cuda-tile, or why there are none."""
    from toolchain.native.tools import NativeToolchain, NativeToolsAbsent

    try:
        found = NativeToolchain.find()
    except NativeToolsAbsent as error:
        yield str(error.args[0]).removeprefix("native tools absent: ")
        return
    if not found.has("cuda-tile-opt", "cuda-tile-translate", "cuda-tile-optimize"):
        yield f"{found.prefix} was built without cuda-tile"
        return
    with found.open() as tools:
        yield tools


def doctor(args: argparse.Namespace) -> int:
    from toolchain import doctor as toolchain_doctor

    return toolchain_doctor.report(as_json=args.json)
