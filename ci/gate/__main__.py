"""`python -m ci.gate [run | judge | accept | simulate | slow]`: see docs/gate.md."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.harness import environment
from benchmarks.report.result import Results
from toolchain import command
from toolchain.bundles import checkout
from toolchain.bundles.bundle import Bundle
from toolchain.errors import UsageError
from toolchain.files import write_whole

from . import accepted, thresholds
from .measure import BASE, NEW, Job, Measured, measure
from .measurement import measurements
from .report import Report
from .verdict import judge

SET_UP = "numpy and a checkout; on a GPU also PyTorch: docs/gate.md"
OUTPUT = Path("build/gate")
EXAMPLES = """\
examples:
  python -m ci.gate run --bundle build/bundle --base build/before --summary "$GITHUB_STEP_SUMMARY"
  python -m ci.gate judge build/gate/first/nvidia-h200.json --again build/gate/again/nvidia-h200.json
  python -m ci.gate accept build/gate/verdicts.json --cell '^gelu .* mlir' --reason 'exact tanh: half the error'
  python -m ci.gate slow --bundle build/bundle --op layernorm --percent 10 --output build/slow
exit codes:
  0 no regression   1 a regression   9 a wrong output   11 a required cell without a verdict, or any not compared
  2 bad input       4 a measurement that left no results
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m ci.gate", description="Whether a bundle is as fast as another: see docs/gate.md.",
        epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    top.add_argument("--thresholds", type=Path, default=thresholds.TABLE, metavar="FILE", help="default ci/gate.toml")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    run = commands.add_parser("run", help="measure two bundles on a GPU, and judge")
    run.add_argument("--bundle", type=Path, required=True, metavar="DIR", help="what is judged")
    run.add_argument("--base", type=Path, required=True, metavar="DIR", help="what it is compared with")
    run.add_argument("--only", default="", metavar="GROUPS", help="default: measure.only of the thresholds")
    run.add_argument("--case", default="", metavar="REGEX", help="only cases with a match")
    run.add_argument("--sources", default="", help="default: all of the bundle")
    run.add_argument("--all-cells", action="store_true", help="measure the cells of the same machine code too")
    run.set_defaults(run=_run)
    judged = commands.add_parser("judge", help="judge what was measured")
    judged.add_argument("first", type=Path, help="results of benchmarks gpu --bundle NEW --against base=OLD")
    judged.add_argument(
        "--again", type=Path, metavar="FILE", help="of the cells in doubt: --bundle OLD --against new=NEW"
    )
    judged.set_defaults(run=_judge)
    for one in (run, judged):
        one.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help=f"default {OUTPUT}")
        one.add_argument("--accepted", type=Path, default=accepted.TABLE, metavar="FILE", help=argparse.SUPPRESS)
        one.add_argument("--summary", type=Path, metavar="FILE", help="append the Markdown to this file as well")
    allowed = commands.add_parser("accept", help="allow a regression, with the reason")
    allowed.add_argument("verdicts", type=Path, help="verdicts.json of a gate")
    allowed.add_argument("--cell", required=True, metavar="REGEX", help="of `CASE SOURCE`")
    allowed.add_argument("--reason", required=True)
    allowed.add_argument("--accepted", type=Path, default=accepted.TABLE, metavar="FILE", help=argparse.SUPPRESS)
    allowed.set_defaults(run=_accept)
    simulated = commands.add_parser("simulate", help="how often the gate errs, with recorded noise")
    simulated.add_argument("--runs", type=int, default=1000, help="of the whole matrix (default 1000)")
    simulated.add_argument("--noise", type=Path, action="append", default=[], metavar="FILE", help="default: all GPUs")
    simulated.add_argument("--output", type=Path, default=OUTPUT / "simulation", metavar="DIR")
    simulated.set_defaults(run=_simulate)
    noise = commands.add_parser("noise", help="keep the noise of runs of a bundle beside itself, for simulate")
    noise.add_argument("results", type=Path, nargs="+")
    noise.add_argument("--output", type=Path, required=True, metavar="FILE")
    noise.set_defaults(run=_noise)
    slow = commands.add_parser("slow", help="a bundle with kernels slowed on purpose, to try the gate")
    slow.add_argument("--bundle", type=Path, required=True, metavar="DIR")
    slow.add_argument("--op", action="append", required=True, help="repeat")
    slow.add_argument("--percent", type=int, required=True, help="more blocks; the time has to be measured")
    slow.add_argument("--output", type=Path, required=True, metavar="DIR")
    slow.set_defaults(run=_slow)
    return top


def _run(args: argparse.Namespace) -> int:
    rules = thresholds.load(args.thresholds)
    groups = [name for name in args.only.split(",") if name] or list(rules.measure.only)
    sources = [name for name in args.sources.split(",") if name]
    job = Job(args.bundle, args.base, args.output, groups, args.case, sources, args.all_cells)
    measured = measure(job, rules)
    return _write(args, rules, measured, job)


def _judge(args: argparse.Namespace) -> int:
    return _write(args, thresholds.load(args.thresholds), Measured(args.first, args.again))


def _write(args: argparse.Namespace, rules: thresholds.Thresholds, measured: Measured, job: Job | None = None) -> int:
    """`job`: what was measured; None for files that are judged alone."""
    expected = [case.name for case in job.cases()] if job else []
    found, confirmed, seen = {}, {}, {}
    if measured.first is not None:
        one = Results.load(measured.first)
        found, seen = measurements(one, BASE), one.environment
    elif job:
        bundle = Bundle.load(job.bundle)
        seen = environment.describe(bundle, {BASE: Bundle.load(job.base)}, {}, checkout.commit(bundle.root))
    base = seen["against"][BASE]
    if measured.again is not None:
        two = Results.load(measured.again)
        confirmed = measurements(two, NEW, swapped=True)
        pairs = ((seen, two.environment["against"][NEW]), (base, two.environment))
        if any(a.get("bundle") != b.get("bundle") for a, b in pairs) or seen["gpu"] != two.environment["gpu"]:
            raise UsageError(f"{measured.again} is of other bundles or another GPU than {measured.first}")
    cells = judge(found, confirmed, rules, expected, measured.same)
    rows = accepted.load(args.accepted)
    cells = accepted.mark(cells, rows, str(seen.get("gpu", "")), str(seen.get("bundle", "")))
    words = [Path(sys.executable).name, "-m", "ci.gate", *sys.argv[1:]]
    made = Report(cells, seen, base, rules, words, measured.retries)
    write_whole(args.output / "verdicts.json", json.dumps(made.to_json(), indent=1) + "\n", parents=True)
    write_whole(args.output / "summary.md", made.markdown())
    if args.summary:
        with args.summary.open("a") as summary:
            summary.write(made.markdown())
    print(made.markdown(), flush=True)
    return made.exit_code


def _accept(args: argparse.Namespace) -> int:
    try:
        document: dict[str, Any] = json.loads(args.verdicts.read_text())
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        rows = accepted.accept(document, args.cell, args.reason, date, args.accepted)
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{args.verdicts}: no verdicts of a gate ({type(error).__name__}: {error})") from error
    except re.error as error:
        raise UsageError(f"{args.cell!r} is no regular expression: {error}") from error
    for row in rows:
        print(f"accepted: {row.case} {row.source}, {100 * row.change:+.1f} %, up to {100 * row.at_most:+.1f} %")
    print(f"wrote {args.accepted}: commit it with the change")
    return 0


def _simulate(args: argparse.Namespace) -> int:
    from .simulate import simulate

    for path in simulate(thresholds.load(args.thresholds), args.runs, args.output, args.noise):
        print(f"wrote {path}")
    return 0


def _noise(args: argparse.Namespace) -> int:
    from .noise import record

    print(f"wrote {args.output}: {record([Results.load(path) for path in args.results], args.output)} cells")
    return 0


def _slow(args: argparse.Namespace) -> int:
    from .slowed import write_slowed

    bundle = write_slowed(args.bundle, args.output, args.op, args.percent)
    print(f"wrote {bundle.root}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    command.settle_streams()
    args = parser().parse_args(argv)
    return command.run(lambda: args.run(args), set_up=SET_UP)


if __name__ == "__main__":
    sys.exit(main())
