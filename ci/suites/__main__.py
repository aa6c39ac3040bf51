"""Runs a suite and writes its section of docs/suites.md."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from toolchain import command, knobs
from toolchain.errors import ToolchainError

from .checkout import checkout, suite
from .environment import environment
from .page import section, update

BUILD = knobs.ROOT / "build" / "suites"
PAGE = knobs.ROOT / "docs" / "suites.md"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="nox -s suites --", description=__doc__)
    made.add_argument("suite", help="a suite of ci/suites/suites.toml")
    made.add_argument("--mirror", type=Path, metavar="DIR", help="copies of the repositories, instead of fetching them")
    made.add_argument("--python", type=Path, metavar="FILE", help="the Python of an environment that is there already")
    made.add_argument("--record", type=Path, metavar="FILE", help="write the page from this record, without a run")
    made.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="default: docs/suites.md")
    made.add_argument("--timeout", type=int, default=60, metavar="SECONDS", help="of one test (default 60)")
    made.add_argument("--jobs", type=int, metavar="N", help="tests at once (default: TILESTACK_JOBS)")
    made.add_argument("words", nargs="*", help="after another --: words for pytest, such as -k add; no page is written")
    return made


def main(args: argparse.Namespace) -> int:
    chosen = suite(args.suite)
    BUILD.mkdir(parents=True, exist_ok=True)
    tree = BUILD / chosen.name
    record, begun = args.record, time.monotonic()
    if record is None:
        tree = checkout(chosen, BUILD, args.mirror)
        python = args.python or environment(BUILD, chosen.requirements)
        record = BUILD / f"{chosen.name}.jsonl"
        jobs = args.jobs or knobs.jobs()
        words = [
            str(python), "-m", "tilestack", "run", "-m", "pytest", "-q", "-p", "no:cacheprovider",
            "-p", "ci.suites.recording", "--record", str(record), "-n", str(jobs), "--timeout", str(args.timeout),
            *(args.words or chosen.words),
        ]  # fmt: skip
        done = subprocess.run(words, cwd=tree / chosen.folder, env=knobs.with_our_packages(), check=False)
        if done.returncode not in (0, 1):  # 1: some tests failed, which the page is about
            raise ToolchainError(f"{chosen.name}: pytest ended with {done.returncode}", hint="see its output above")
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    if args.words:
        return 0
    spent = time.monotonic() - begun if args.record is None else sum(row["seconds"] for row in rows)
    update(args.page, chosen.title, section(chosen, rows, spent, tree))
    print(f"{args.page}: {len(rows)} tests of {chosen.name}")
    return 0


if __name__ == "__main__":
    given = parser().parse_args()
    sys.exit(command.run(lambda: main(given), set_up="nox -s build_toolchain"))
