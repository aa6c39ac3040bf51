"""Options that several commands share, and reading and writing of the files that they name."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from toolchain.contract.sources import packages
from toolchain.errors import UsageError
from toolchain.files import read_named, write_whole

SOURCES = packages()
QUANTIZATIONS = ("f8", "i8", "f8-weights", "i8-weights")  # of gpt/parameters/quantize.py, which imports numpy


def command(commands: Any, name: str, run: Any, doc: str, examples: str) -> argparse.ArgumentParser:
    """A command with its help and examples."""
    made = commands.add_parser(
        name,
        help=doc,
        description=doc[0].upper() + doc[1:] + ".",
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # Where it is not given here, what was given before the command's name stands.
    made.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show a traceback with an error")
    made.set_defaults(run=run)
    return made


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")


def print_json(value: object) -> None:
    print(json.dumps(value, indent=1, allow_nan=False))


def seed(text: str) -> int:
    """An argparse type: what a random generator starts from."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 0")
    return int(text)


def pattern(text: str) -> str:
    """An argparse type: a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error
    return text


def positive(text: str) -> int:
    """An argparse type: a count of at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 1")
    return int(text)


STREAM = Path("-")  # standard input where a file is read, standard output where one is written


def read(path: Path) -> bytes:
    """A file the user named, or standard input. Raises UsageError."""
    if path != STREAM:
        return read_named(path)
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        _cannot("standard input", "read", error)


def read_text(path: Path) -> str:
    """The same as text. Raises UsageError if it is not UTF-8."""
    try:
        return read(path).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown(path)} is not UTF-8 text: byte {error.start}") from error


def shown(path: Path) -> str:
    """What messages call it."""
    return "standard input" if path == STREAM else str(path)


def source_name(path: Path) -> str:
    """What errors with a line and a column call it."""
    return "<stdin>" if path == STREAM else str(path)


@contextmanager
def as_file(path: Path) -> Generator[Path]:
    """A file the user named, or one with what standard input holds, for what reads files alone."""
    if path != STREAM:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        held = Path(folder, "stdin")
        held.write_bytes(read(STREAM))
        yield held


def write(path: Path, data: bytes) -> None:
    """A file the user named, whole or not at all. Raises UsageError."""
    if path == STREAM:
        emit(None, data)
        return
    try:
        write_whole(path, data)
    except OSError as error:
        _cannot(path, "written", error)


def emit(path: Path | None, data: bytes) -> None:
    """To a file, or to standard output."""
    if path is not None and path != STREAM:
        write(path, data)
        return
    if b"\x00" in data and sys.stdout.isatty():
        raise UsageError("the output is binary, not text for a terminal", hint="name a file with --output")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # nobody reads on: not an error of the file
        raise
    except OSError as error:
        _cannot("standard output", "written", error)


def _cannot(name: object, what: str, error: OSError) -> NoReturn:
    raise UsageError(f"{name} cannot be {what}: {error.strerror or error}") from error
