"""`matrix`: list the kernels, plan what CI runs, and check every kernel and the forward pass of a bundle."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain.errors import ConformanceError, UsageError

from .common.options import SOURCES, add_json, command, positive, print_json, seed
from .matrix_plan import add_plan

if TYPE_CHECKING:
    from conformance.results.filters import Filter
    from conformance.results.result import Results
    from toolchain.native.tools import NativeTools
    from toolchain.runtime import Executor

MATRIX = """\
  tilestack matrix list                                every cell of a compile
  tilestack matrix plan --base origin/main             which jobs CI runs for a branch
  tilestack matrix run --bundle build/bundle           on the GPUs here, or the CPU interpreter where there is none
  tilestack matrix run --bundle build/bundle --executor cpu --op attention --dtype bf16
"""
LIST = """\
  tilestack matrix list --op gelu --dtype bf16
  tilestack matrix list --target sm_90 -k "linear and not gelu"
"""
RUN = """\
  tilestack matrix run --bundle build/bundle           the GPUs here share the cells; the CPU interpreter without any
  tilestack matrix run --every-gpu                     each GPU runs every cell
  tilestack matrix run -k "layernorm and not (f32 or f16)"     words of a cell's name, such as layernorm-mlir-bf16-cpu
  tilestack matrix run --op linear --shape "M<=64 K=768" --shape misaligned
  tilestack matrix run --executor cpu -n 4 -x          in four processes, to the first failure
  tilestack matrix run --last-failed                   what failed in the run that the report is of
"""
EXPRESSION = "EXPR"


def add(commands: Any) -> None:
    matrix = command(commands, "matrix", None, "list, run or plan the conformance matrix", MATRIX)
    actions = matrix.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = command(actions, "list", list_, "list the entries of all sources", LIST)
    _add_names(listed)
    listed.add_argument("--target", metavar="SM", help="only what this target takes")
    listed.add_argument("-k", dest="expression", default="", metavar=EXPRESSION,
                        help="only entries for whose OP-SOURCE-DTYPE SYMBOL it is true: see matrix run")  # fmt: skip
    add_json(listed)
    run = command(actions, "run", run_, "check every kernel and the forward pass of a bundle", RUN)
    run.add_argument("--bundle", type=Path, default=Path("build/bundle"), metavar="DIR", help="default build/bundle")
    run.add_argument("--report", type=Path, default=Path("build/report"), metavar="DIR", help="default build/report")
    run.add_argument(
        "--executor", default="auto", help="auto (the GPUs share the cells, else the CPU), cpu, cuda, cuda:N"
    )
    run.add_argument(
        "--model", action="append", default=[], metavar="MODEL",
        help="also the forward pass of this checkpoint, such as smollm2, with its real weights; repeat",
    )  # fmt: skip
    run.add_argument("--every-gpu", action="store_true", help="each GPU runs every cell, instead of sharing them out")
    _add_names(run)
    run.add_argument("-k", dest="expression", default="", metavar=EXPRESSION,
                     help="only cells whose name it is true for: words, and, or, not, ()")  # fmt: skip
    run.add_argument("--shape", action="append", default=[], metavar="TERMS",
                     help="only rows of these sizes and words, such as 'M<=64 misaligned'; repeat")  # fmt: skip
    run.add_argument("--last-failed", action="store_true", help="only rows that failed in the report that is there")
    run.add_argument("-x", "--exitfirst", action="store_true", help="end with the first failure")
    run.add_argument("--seed", type=seed, default=1, help="of the inputs (default 1)")
    run.add_argument(
        "--full", action="store_true", help="on the CPU too every case, not the few that show all that an entry does"
    )
    run.add_argument(
        "-n", "--jobs", type=positive, default=0, metavar="N",
        help="processes (default: one for each usable CPU core, but at most twelve for each GPU)",
    )  # fmt: skip
    run.add_argument(
        "--resume", action="store_true", help="go on with an interrupted run of the same bundle and options"
    )
    run.add_argument("--quiet", action="store_true", help="no line for a row that passes")
    run.add_argument("--json", action="store_true", help="print the results as JSON; the rest goes to standard error")
    add_plan(actions)


def _add_names(made: argparse.ArgumentParser) -> None:
    made.add_argument("--source", action="append", default=[], help="only this source; repeat")
    made.add_argument("--dtype", action="append", default=[], help="only this dtype; repeat")
    made.add_argument("--op", action="append", default=[], help="only this op, or forward; repeat")


def list_(args: argparse.Namespace) -> int:
    from conformance.results.expression import Expression
    from toolchain.contract.op import DTYPES, ops
    from toolchain.contract.sources import load_source
    from toolchain.contract.targets import targets

    known = {"source": list(SOURCES), "dtype": list(DTYPES), "op": list(ops()), "target": list(targets())}
    given = {"source": args.source, "dtype": args.dtype, "op": args.op, "target": [args.target] if args.target else []}
    for name, values in given.items():
        if unknown := [value for value in values if value not in known[name]]:
            raise UsageError(f"no {name} {', '.join(unknown)}", hint=f"one of {', '.join(known[name])}")
    chosen = Expression(args.expression)
    specs = [
        spec
        for module in SOURCES.values()
        for spec in load_source(module).entries()
        if all(getattr(spec, name) in given[name] for name in ("source", "dtype", "op") if given[name])
        and (args.target is None or spec.runs_on(args.target))
        and chosen(f"{spec.cell} {spec.symbol}")
    ]
    if args.json:
        print_json([spec.to_json() for spec in specs])
        return 0
    rows = [("source", "dtype", "entry", "targets", "conditions")]
    for spec in specs:
        aligned = f"aligned {' '.join(spec.aligned)}" if spec.aligned else ""
        conditions = "; ".join(filter(None, (" and ".join(spec.where), aligned)))
        rows.append((spec.source, spec.dtype, spec.symbol, " ".join(spec.targets) or "all", conditions))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        print(" ".join([*(word.ljust(width) for word, width in zip(row, widths, strict=False)), row[4]]).rstrip())
    return 0


def run_(args: argparse.Namespace) -> int:
    from ci.report import write_report
    from conformance.jobs.jobs import get_ready
    from conformance.jobs.journal import FILE, Journal
    from conformance.matrix import processes_for, run_matrix
    from gpt.conformance.models import suites
    from toolchain import knobs
    from toolchain.bundles.bundle import Bundle
    from toolchain.command import Terminated
    from toolchain.files import check_makable

    from .common.matrix_progress import Show

    chosen = _filter(args)
    if chosen is None:
        print(f"nothing failed in {args.report / RESULTS}: there is nothing to run", file=sys.stderr)
        return 0
    check_makable(args.report)
    bundle = Bundle.load(args.bundle)
    if (args.jobs or knobs.jobs()) > 1:
        get_ready(("conformance.ops.run", "gpt.conformance.models"))  # imports them while the GPUs are looked at
    journal = Journal(args.report / FILE)
    say = partial(print, file=sys.stderr if args.json else sys.stdout, flush=True)
    with ExitStack() as opened:
        executors, left_out = _executors(args.executor, opened)
        where = _where(args.executor, executors)
        say(f"conformance of {args.bundle} ({', '.join(bundle.sources)}): {where}")
        if left_out:
            say(f"left out: {left_out}")
        native = opened.enter_context(_native_tools())
        with Show.on(sys.stderr if args.json else sys.stdout, quiet=args.quiet) as show:
            results = run_matrix(
                bundle, executors, journal, sources=args.source, dtypes=args.dtype, selected=args.op,
                suites=suites(args.model), seed=args.seed, native=native, full=args.full, wanted=chosen,
                exit_first=args.exitfirst, processes=args.jobs or processes_for(executors), resume=args.resume,
                progress=show, command=args.words, every_gpu=args.every_gpu, left_out=left_out,
            )  # fmt: skip
    for line in write_report(results, args.report):
        say(line)
    _tell(results, where, say)
    if results.interrupted:
        say(f"next: the same command with --resume runs the rest; what is done is in {journal.path}")
        raise Terminated if results.interrupted == "SIGTERM" else KeyboardInterrupt
    journal.remove()
    if args.json:
        print(results.to_json(), end="")
    if not results.green:
        raise ConformanceError(f"not green: {results.summary()}", hint=f"see {args.report / 'index.html'}")
    return 0


RESULTS = "results.json"


def _filter(args: argparse.Namespace) -> Filter | None:
    """Which rows to run; None if those are wanted that failed, and none did. Raises UsageError."""
    from conformance.results.filters import failed_rows, parse
    from conformance.results.result import Results

    chosen = parse(args.expression, args.shape)
    if not args.last_failed:
        return chosen
    failed = failed_rows(Results.load(args.report / RESULTS))
    return replace(chosen, only=failed) if failed else None


def _tell(results: Results, where: str, say: Any) -> None:
    if lacking := results.environment.get("not run"):
        say(f"not run: {lacking}")
    reasons = Counter(row.detail for row in results.rows if row.status == "not run")
    for reason, count in reasons.most_common(3):
        say(f"not run: {count} of {len(results.rows)}: {reason}")
    if again := results.environment.get("retries"):
        say(f"tried again after an error of the machine: {again}")
    say(f"{results.summary()} in {results.environment['seconds']} s; {where}")


def _executors(name: str, opened: ExitStack) -> tuple[list[Executor], str]:
    """The executors of a run, and which GPUs are left out and why. One that is named is taken as it is."""
    from toolchain.runtime import gpus, open_executor

    from .common.well_gpus import well

    names, left_out = [name], ""
    if name == "auto" and (found := gpus()):
        taken, left_out = well(found)
        names = [f"cuda:{gpu.index}" for gpu in taken]
    return [opened.enter_context(open_executor(each)) for each in names], left_out


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
    if found.cuda_tile is None:
        yield f"{found.prefix} was built without cuda-tile"
        return
    with found.open() as tools:
        yield tools
