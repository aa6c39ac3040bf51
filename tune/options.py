"""The options of measuring, which `tilestack tune` and `python -m tune` have in common."""

from __future__ import annotations

import argparse
import re
from pathlib import Path


def add_measuring(parser: argparse.ArgumentParser) -> None:
    """The options of measuring."""
    parser.add_argument(
        "--classes", type=pattern, metavar="REGEX", help="only shape classes whose name has a match, such as '^m64$'"
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="DIR",
        help="a bundle to check large shapes against, and nothing else (default: the source's own entries)",
    )  # fmt: skip
    parser.add_argument("--measured", type=Path, metavar="FILE", help="default: measured.json in the folder")
    parser.add_argument("--executor", default="cuda", help="cuda, cuda:N; cpu tries the search out, its times are none")
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="of one variant (default 60)")
    parser.add_argument(
        "--stop-after",
        type=seconds,
        default=float("inf"),
        metavar="S",
        help="then start nothing more; run again to go on",
    )


def pattern(text: str) -> re.Pattern[str]:
    """An argparse type."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error


def seconds(text: str) -> float:
    """An argparse type: a time above 0."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from error
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text}: it must be above 0")
    return value
