"""`python -m ci.bench [check | run]`: checks `ci/bench.toml`, and measures what it asks for."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from benchmarks.cases.cases import CASES, Case
from benchmarks.report.result import AGAINST, BenchmarkRow, Results
from toolchain import command
from toolchain.errors import UsageError
from toolchain.files import write_whole

from ..gate.measure import BASE, Start, measured, start_process
from ..matrix import Matrix
from .request import Request, load

OUTPUT = Path("build/bench")
SET_UP = "numpy and a checkout; on a GPU also PyTorch: docs/ci.md"
EMPTIED = "Empty `ci/bench.toml` before this is merged: main asks for no benchmarks."


def cases(request: Request) -> list[Case]:
    """The cases that are asked for, each once. Raises UsageError for a pattern that matches none."""
    found: dict[str, Case] = {}
    for pattern in request.cases:
        matching = {case.name: case for case in CASES if re.search(pattern, case.name)}
        if not matching:
            near = get_close_matches(pattern.strip("^$"), [case.name for case in CASES], 1, 0.4)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(f"{request.at('cases', pattern)}: no case matches {pattern!r}",
                             hint=f"{hint}python -m benchmarks list shows all")  # fmt: skip
        found |= matching
    return list(found.values())


def measure(request: Request, bundle: Path, base: Path, output: Path, start: Start = start_process) -> Results:
    """Times the cases with the kernels of both bundles in turns. Raises ToolFailed if that left no results."""
    wanted = cases(request)
    names = "|".join(re.escape(case.name) for case in wanted)
    groups = dict.fromkeys(case.group for case in wanted)
    argv = [
        sys.executable, "-m", "benchmarks", "gpu", "--bundle", str(bundle), "--against", f"{BASE}={base}",
        "--peers", "", "--only", ",".join(groups), "--case", f"^(?:{names})$", "--samples", str(request.samples),
        "--output", str(output / "results"),
    ]  # fmt: skip
    return Results.load(measured(argv, start, []))


def markdown(results: Results, request: Request) -> Iterator[str]:
    """Lines of a comment: each cell's time with the base's kernels and with ours, and the change with its interval."""
    about = results.environment
    commits = (about["against"][BASE].get("commit", ""), about.get("bundle_commit", about.get("commit", "")))
    before, after = (f"`{commit[:12]}`" if commit else "an unknown commit" for commit in commits)
    yield f"## Benchmarks asked for by ci/bench.toml: {about['gpu']}\n"
    yield f"Driver {about['driver']} · {request.samples} samples of each side, in turns · {before} to {after}\n"
    yield "| case | source | before, µs | after, µs | change, 95 % |\n|---|---|--:|--:|--:|"
    found = [row for row in results.rows if row.peer_kind == AGAINST]
    for row in found:
        yield f"| {row.case} | {row.source} | {_us(row.peer_ms)} | {_us(row.ours_ms)} | {_change(row)} |"
    seen = {row.case for row in found}
    for case in cases(request):
        if case.name not in seen:
            yield f"| {case.name} | | | | not compared |"
    yield f"\n{EMPTIED}\n"


def _us(ms: float | None) -> str:
    return "" if ms is None else f"{1e3 * ms:.4g}"


def _change(row: BenchmarkRow) -> str:
    """The time over the base's less one, or why there is none."""
    if not (row.ratio and row.ratio_low and row.ratio_high):
        return f"{row.status}: {' '.join(row.detail.split())}".replace("|", "\\|")
    change, low, high = (100 / ratio - 100 for ratio in (row.ratio, row.ratio_high, row.ratio_low))
    return f"{change:+.1f} % [{low:+.1f}, {high:+.1f}]"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m ci.bench", description="The benchmarks that ci/bench.toml asks for.")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    checked = commands.add_parser("check", help="check the file")
    checked.add_argument("--empty", action="store_true", help="it must be empty, as on main")
    checked.set_defaults(run=_check)
    run = commands.add_parser("run", help="measure what it asks for on this GPU")
    run.add_argument("--bundle", type=Path, required=True, metavar="DIR")
    run.add_argument("--base", type=Path, required=True, metavar="DIR", help="what it is compared with")
    run.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help=f"default {OUTPUT}")
    run.add_argument("--summary", type=Path, metavar="FILE", help="append the Markdown to this file as well")
    run.set_defaults(run=_run)
    return top


def _check(args: argparse.Namespace) -> int:
    request = load(Matrix.load())
    if request is None:
        print("ci/bench.toml asks for no benchmarks")
        return 0
    found = cases(request)
    if args.empty:
        raise UsageError(
            f"{request.path} asks for {len(found)} benchmarks: on main it must be empty",
            hint="remove its keys; the comment lines stay",
        )
    print(f"ci/bench.toml asks for {len(found)} benchmarks on {', '.join(request.gpus)}")
    return 0


def _run(args: argparse.Namespace) -> int:
    request = load(Matrix.load())
    if request is None:
        raise UsageError("ci/bench.toml asks for no benchmarks", hint="its comment shows how")
    results = measure(request, args.bundle, args.base, args.output)
    lines = "\n".join(markdown(results, request))
    write_whole(args.output / "bench.md", lines, parents=True)
    if args.summary:
        with args.summary.open("a") as summary:
            summary.write(lines)
    print(lines, flush=True)
    return 1 if results.failures else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    command.settle_streams()
    args = parser().parse_args(argv)
    return command.run(lambda: args.run(args), set_up=SET_UP)


if __name__ == "__main__":
    sys.exit(main())
