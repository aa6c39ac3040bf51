"""Runs a suite and writes its section of docs/suites.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from toolchain import command, knobs
from toolchain.errors import ToolchainError

from .checkout import Suite, checkout, suite
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
    made.add_argument("--files", nargs="+", default=[], metavar="FILE", help="of the suite's folder: run these again")
    made.add_argument("words", nargs="*", help="after another --: words for pytest, such as -k add; no page is written")
    return made


def main(args: argparse.Namespace) -> int:
    chosen = suite(args.suite)
    BUILD.mkdir(parents=True, exist_ok=True)
    record = args.record or BUILD / f"{chosen.name}.jsonl"
    if args.record is None:
        now = BUILD / f"{chosen.name}.now.jsonl"
        tree = checkout(chosen, BUILD, args.mirror)
        python = args.python or environment(BUILD, chosen.requirements)
        run(chosen, tree, python, now, args)
        if args.words:
            return 0
        merge(record, now, again=bool(args.files))
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    update(args.page, chosen.title, section(chosen, rows, BUILD / chosen.name))
    print(f"{args.page}: {len(rows)} tests of {chosen.name}")
    return 0


def run(chosen: Suite, tree: Path, python: Path, record: Path, args: argparse.Namespace) -> None:
    """Runs the suite's tests in `tree`, and records them. Raises ToolchainError if pytest could not run them."""
    cutile = bool(chosen.requirements)
    words = [
        str(python), "-m", *(("tilestack", "run", "-m") if cutile else ()),
        "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tree), "-n", str(args.jobs or knobs.jobs()),
        *(word for plugin in ("ci.suites.recording", *chosen.plugins) for word in ("-p", plugin)),
        "--record", str(record),
        *(("--timeout", str(args.timeout)) if cutile else ("-c", os.devnull)),  # not this repository's configuration
        *chosen.words, *(args.files or chosen.files), *args.words,
    ]  # fmt: skip
    paths = [tree / path for path in chosen.paths]
    done = subprocess.run(words, cwd=tree / chosen.folder, env=knobs.with_our_packages(paths), check=False)
    if done.returncode not in (0, 1):  # 1: some tests failed, which the page is about
        raise ToolchainError(f"{chosen.name}: pytest ended with {done.returncode}", hint="see its output above")


def merge(record: Path, now: Path, *, again: bool) -> None:
    """Makes what was recorded now the suite's record; `again`: in the place of what it had of the same files."""
    lines = now.read_text().splitlines()
    files = {_file(line) for line in lines}
    kept = [line for line in record.read_text().splitlines() if _file(line) not in files] if again else []
    record.write_text("".join(f"{line}\n" for line in (*kept, *lines)))


def _file(line: str) -> str:
    return json.loads(line)["test"].partition("::")[0]


if __name__ == "__main__":
    given = parser().parse_args()
    sys.exit(command.run(lambda: main(given), set_up="nox -s build_toolchain"))
