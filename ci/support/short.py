"""Errors in a few words, for the cells of a table."""

from __future__ import annotations

import re

from toolchain.errors import TilestackError, ToolFailed

LONGEST = 160
POSITION = re.compile(r"^\S+:\d+:\d+: ")  # of a kernel's file: it moves with each edit


def short(error: TilestackError) -> str:
    """The pair that does not fit, if it is known; else the line of an error that says most, without a position in a
    file and the paths of one machine."""
    if isinstance(error, ToolFailed) and error.why:
        return error.why[:LONGEST]
    text = error.stderr if isinstance(error, ToolFailed) else str(error.args[0])
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [f"exit code of {type(error).__name__}"]
    best = next((line for line in lines if "error" in line.lower()), lines[0])
    words = [word.rpartition("/")[2] if word.count("/") > 1 else word for word in best.split()]
    return POSITION.sub("", " ".join(words))[:LONGEST]
