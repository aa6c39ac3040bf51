"""The suite `cute`: NVIDIA's tests of its CuTe IR on our `cute-opt`. A plugin of pytest (chunk_items.py).

A chunk with an expected error passes if it is refused. Any other passes if each of its commands is met: the passes run,
what they print is read again, and FileCheck finds in it what the chunk says. A file of a program is run as a whole: its
passes, then the numbers that `main` prints.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from toolchain.cute.chunks import Chunk, TestFile
from toolchain.cute.mlir_text import mlir_text
from toolchain.cute.nvvm.location import verify
from toolchain.cute.parse import parse
from toolchain.cute.passes import PASSES
from toolchain.errors import SourceError, UsageError

from .base_level import printed
from .chunk_items import collecting
from .filecheck import checks, compare

TO_BASE = ("cute-fold-static", "cute-expand-ops", "cute-to-base")
NOT_PASSES = {"split-input-file", "verify-diagnostics", "mlir-print-op-generic"}
RUNS = {"%cutlass-compiler-run-host", "%cutlass-compiler-run-device"}  # lit's names for a program that is run


def judge(path: Path, file: TestFile, chunk: Chunk) -> None:
    """Raises AssertionError, SourceError or UsageError for a chunk that fails."""
    commands = [[shlex.split(one) for one in run.split(" | ")] for run in file.runs]
    ours = [run for run in commands if run[0][0] == "cute-opt" or RUNS & set(run[0])]
    if not ours:
        pytest.skip("of tools that we do not have")
    if chunk.errors:
        _refused(path, chunk)
        return
    for run in ours:
        text = chunk.in_place
        for words in run:
            text = _done(words, text, chunk, str(path))


def _refused(path: Path, chunk: Chunk) -> None:
    try:
        parse(chunk.in_place, str(path))
    except (SourceError, UsageError):
        return
    raise AssertionError(f"accepted, and not: {chunk.errors[0].message}")


def _done(words: list[str], text: str, chunk: Chunk, name: str) -> str:
    """What a command prints for a text."""
    if words[0] == "FileCheck":
        prefix = re.search(r"--?check-prefix[= ](\S+)", " ".join(words))
        compare(checks(chunk.text, prefix[1] if prefix else "CHECK"), text)
        return ""
    options = [word.lstrip("-") for word in words if word.startswith("-")]
    module = parse(text, name)
    for option in TO_BASE if RUNS & set(words) else options:
        if option in NOT_PASSES or (RUNS & set(words) and option not in TO_BASE):
            continue
        if option not in PASSES:
            raise UsageError(f"no pass {option!r}")
        PASSES[option](module)
        verify(module, f"after {option}")
    if RUNS & set(words):
        return printed(module, dict(word.split("=") for word in words if "=" in word and not word.startswith("-")))
    return mlir_text(module, generic="mlir-print-op-generic" in options)


pytest_collect_file = collecting(judge)
