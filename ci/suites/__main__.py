"""Runs a suite and writes its section of docs/suites.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolchain import command, knobs
from toolchain.errors import ToolchainError

from . import operations
from .checkout import Suite, checkout, files_to_run, suite
from .environment import environment
from .page import newly_failed, section, update

UV = knobs.ROOT / ".venv" / "bin" / "uv"
BUILD = knobs.ROOT / "build" / "suites"
PAGE = knobs.ROOT / "docs" / "suites.md"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="nox -s suites --", description=__doc__, epilog="after another --: words for pytest"
    )
    made.add_argument("suite", help="a suite of ci/suites/suites.toml")
    made.add_argument("--mirror", type=Path, metavar="DIR", help="copies of the repositories, instead of fetching them")
    made.add_argument("--torch", type=Path, metavar="WHEEL", help="PyTorch for CPUs, instead of fetching it")
    made.add_argument("--python", type=Path, metavar="FILE", help="the Python of an environment that is there already")
    made.add_argument("--record", type=Path, metavar="FILE", help="write the page from this record, without a run")
    made.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="default: docs/suites.md")
    made.add_argument("--seconds", type=int, default=60, help="of the processor, that a test may take (default 60)")
    made.add_argument("--jobs", type=int, metavar="N", help="tests at once (default: TILESTACK_JOBS)")
    made.add_argument("--files", nargs="+", default=[], metavar="FILE", help="as the page names them: run these again")
    made.add_argument("--uv", type=Path, default=UV, metavar="FILE", help="makes the environment (default: .venv's)")
    made.add_argument(
        "--check", action="store_true", help="fail if a test fails that does not by the page, and keep it"
    )
    made.add_argument("--summary", type=Path, metavar="FILE", help="Markdown to which --check adds what it found")
    return made


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The options, and as `words` what stands behind another `--`: words for pytest, such as `-k add`, with which no
    page is written."""
    at = words.index("--") if "--" in words else len(words)
    return parser().parse_args(words[:at], argparse.Namespace(words=list(words[at + 1 :])))


def main(args: argparse.Namespace) -> int:
    chosen = suite(args.suite)
    BUILD.mkdir(parents=True, exist_ok=True)
    record = args.record or BUILD / f"{chosen.name}.jsonl"
    if args.record is None:
        now = BUILD / f"{chosen.name}.now.jsonl"
        tree = checkout(chosen, BUILD, args.mirror)
        files = files_to_run(chosen, tree, args.files)
        python = args.python or environment(BUILD, chosen.requirements, args.uv, args.torch)
        run(chosen, tree, python, now, files, args)
        if args.words:
            return 0
        merge(record, now, again=bool(args.files))
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    if args.check:
        return check(chosen, rows, args.page, args.summary)
    update(args.page, chosen.title, section(chosen, rows, BUILD / chosen.name))
    if chosen.operations:
        operations.write(chosen.name, rows, BUILD / chosen.name, chosen.operations)
    print(f"{args.page}: {len(rows)} tests of {chosen.name}")
    return 0


def check(chosen: Suite, rows: list[dict[str, Any]], page: Path, summary: Path | None) -> int:
    """Compares with the page, and adds what it found to a file of Markdown."""
    new = newly_failed(chosen, rows, page)
    found = f"{len(rows)} tests of {chosen.name}, {len(new)} that newly fail"
    lines = [*(f"- fails, though not by {page.name}: {each}" for each in new), "", found]
    print("\n".join(lines))
    if summary is not None:
        with summary.open("a") as file:
            file.write("\n".join([*lines, ""]))
    return 1 if new else 0


def run(
    chosen: Suite, tree: Path, python: Path, record: Path, files: Sequence[str], args: argparse.Namespace
) -> None:  # fmt: skip
    """Runs the suite's tests of these files of `tree`, seen from its folder, and records them. Raises ToolchainError if
    pytest could not run them."""
    cutile = bool(chosen.requirements)
    words = [
        str(python), "-m", *(("tilestack", "run", "-m") if cutile else ()),
        "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tree), "-n", str(args.jobs or knobs.jobs()),
        "--dist", "worksteal",
        *(word for plugin in ("ci.suites.recording", *chosen.plugins) for word in ("-p", plugin)),
        # With `=`: pytest looks for its configuration around each word that it does not know yet.
        f"--record={record}", f"--seconds={args.seconds}",
        # The time of the clock is for what waits. `-c`: not this repository's own configuration.
        *((f"--timeout={10 * args.seconds}",) if cutile else ("-c", os.devnull)),
        *chosen.words, *files, *args.words,
    ]  # fmt: skip
    paths = [tree / path for path in chosen.paths]
    done = subprocess.run(words, cwd=tree / chosen.folder, env=knobs.with_our_packages(paths), check=False)
    if done.returncode not in (0, 1):  # 1: some tests failed, which the page is about
        raise ToolchainError(f"{chosen.name}: pytest ended with {done.returncode}", hint="see its output above")


def merge(record: Path, now: Path, *, again: bool) -> None:
    """Makes what was recorded now the suite's record; `again`: in the place of what it had of the same files."""
    lines = now.read_text().splitlines()
    files = {_file(line) for line in lines}
    before = record.read_text().splitlines() if again and record.is_file() else []
    kept = [line for line in before if _file(line) not in files]
    record.write_text("".join(f"{line}\n" for line in (*kept, *lines)))


def _file(line: str) -> str:
    return json.loads(line)["test"].partition("::")[0]


if __name__ == "__main__":
    given = parsed(sys.argv[1:])
    sys.exit(command.run(lambda: main(given), set_up="nox -s build_toolchain"))
