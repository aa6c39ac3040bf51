"""`fmt`: one layout for files of Tile IR text and kernel sources."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from toolchain.errors import SourceError, UsageError

from .common.options import STREAM, command, emit, read_text, shown, write

EXAMPLES = """\
  tilestack fmt kernels_mlir                           every .mlir file of a folder, in place
  tilestack fmt my_kernel.mlir --diff                  shows what would change
  tilestack fmt kernels_mlir --check                   1 if a file would change
  tilestack fmt - < my_kernel.mlir                     from standard input to standard output
tokens and comments stay as they are, so the bytecode does too
"""


def add(commands: Any) -> None:
    made = command(commands, "fmt", fmt, "lay out Tile IR text: indentation, spaces and blank lines", EXAMPLES)
    made.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help=".mlir, or a folder with such files; - is standard input"
    )
    made.add_argument("--check", action="store_true", help="change nothing; 1 if a file would change")
    made.add_argument("--diff", action="store_true", help="change nothing; show what would change")


def fmt(args: argparse.Namespace) -> int:
    from toolchain.tileir.compose.formatter import format_text

    dry = args.check or args.diff
    changed = total = 0
    bad: list[SourceError] = []
    for path in _files(args.paths):
        total += 1
        before = read_text(path)
        try:
            after = format_text(before, filename="<stdin>" if path == STREAM else str(path))
        except SourceError as error:  # it stays as it is
            if args.debug:
                raise
            bad.append(error)
            print(f"error: {error}", file=sys.stderr)
            continue
        if path == STREAM and not dry:
            emit(None, after.encode())
            continue
        if after == before:
            continue
        changed += 1
        if args.diff:
            sys.stdout.writelines(_difference(before, after, shown(path)))
        elif args.check:
            print(f"{shown(path)}: would change")
        else:
            write(path, after.encode())
            print(f"{path}: changed")
    if args.paths != [STREAM] or dry:
        wrong = f", {len(bad)} not read" if bad else ""
        print(f"{changed} of {total} files {'would change' if dry else 'changed'}{wrong}", file=sys.stderr)
    return SourceError.exit_code if bad else int(args.check and changed > 0)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files themselves, and those of the folders. Raises UsageError for a folder without any."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(path.rglob("*.mlir"))
        if not inside:
            raise UsageError(f"{path} has no .mlir file")
        yield from inside


def _difference(before: str, after: str, name: str) -> Iterator[str]:
    for line in difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, f"{name} (formatted)"
    ):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
