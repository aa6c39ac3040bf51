"""`report`: a page, JUnit XML and Markdown of files of results, and the check of what a bundle has against them."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError

from .common.options import STREAM, as_file, command, emit

EXAMPLES = """\
  tilestack report build/report/results.json
  tilestack report h100.json h200.json bench-h200.json --bundle build/bundle --output report.html
  tilestack report --check h200.json --bundle build/bundle      is this the bundle that was measured?
"""


def add(commands: Any) -> None:
    made = command(commands, "report", report, "make one report of the results of one machine or several", EXAMPLES)
    made.add_argument(
        "results", type=Path, nargs="+", metavar="RESULTS",
        help="results.json of `matrix run`, and files of `python -m benchmarks gpu`; earlier ones give the history",
    )  # fmt: skip
    made.add_argument(
        "--output", type=Path, metavar="FILE", help="the page (default: index.html beside the first results)"
    )
    made.add_argument("--junit", type=Path, metavar="FILE", help="also JUnit XML")
    made.add_argument("--markdown", type=Path, metavar="FILE", help="also Markdown, for a step's summary or a comment")
    made.add_argument("--diff", type=Path, metavar="FILE", help="what `tilestack diff --json` wrote, for the page")
    made.add_argument("--support", type=Path, metavar="FILE", help="the support table's data, for the page")
    made.add_argument(
        "--cache", type=Path, metavar="FILE", help="runs.jsonl of the compile cache, for the page and the Markdown"
    )
    made.add_argument(
        "--bundle", type=Path, metavar="DIR", help="adds the registers and spills of its cubins; needs the toolchain"
    )
    made.add_argument(
        "--check", action="store_true", help="only check that each kernel of the results is in --bundle, byte for byte"
    )


def report(args: argparse.Namespace) -> int:
    if args.check:
        for path in args.results:
            check(path, args.bundle)
        return 0
    from ci.report import load, render_html, render_junit, render_markdown, write_text
    from ci.report.resources import of_bundle
    from ci.report.runs import table
    from toolchain.bundles.bundle import Bundle
    from toolchain.caching.cache import read_runs
    from toolchain.files import check_makable

    if STREAM in args.results and args.output is None:
        raise UsageError("results from standard input have no folder for the page", hint="name it with --output")
    page = args.output or args.results[0].parent / "index.html"
    if page.is_dir():
        raise UsageError(f"{page} is a folder", hint=f"name a file, such as {page / 'index.html'}")
    for path in filter(None, (page, args.junit, args.markdown)):
        check_makable(path.parent)
    with ExitStack() as opened:
        runs = load([opened.enter_context(as_file(path)) for path in args.results])
    resources = of_bundle(Bundle.load(args.bundle)) if args.bundle else None
    compiles = read_runs(args.cache) if args.cache else None
    difference = table(args.diff, "changed", "tilestack diff --json")
    support = table(args.support, "compiled", "python -m ci.support page")
    made = {page: render_html(runs, resources, difference, support, compiles)}
    if args.junit:
        made[args.junit] = render_junit(runs)
    if args.markdown:
        made[args.markdown] = render_markdown(runs, compiles)
    for path, text in made.items():
        if path == STREAM:
            emit(None, text.encode(errors="backslashreplace"))
        else:
            print(write_text(path, text), file=sys.stderr if STREAM in made else sys.stdout)
    return 0


def check(path: Path, folder: Path | None) -> None:
    """Raises BundleError if a bundle lacks a kernel that results were measured with."""
    from conformance.results.origin import read, tools, unlike
    from toolchain.bundles.bundle import Bundle
    from toolchain.errors import BundleError

    if folder is None:
        raise UsageError("--check compares with a bundle", hint="name it: --bundle DIR")
    origin, bundle = read(path), Bundle.load(folder)
    lines = unlike(origin, bundle)
    for line in lines:
        print(line)
    count = len(origin.kernels)
    if lines:
        raise BundleError(
            f"{folder} is not what {path} measured: {len(lines)} of {count} kernels differ",
            hint=f"compile commit {origin.commit or '(unknown)'} with {tools(origin)}",
        )
    print(f"{folder} has each of the {count} kernels that {path} measured, byte for byte")
