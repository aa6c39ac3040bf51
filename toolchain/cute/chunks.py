"""Files of tests as LLVM's projects write them: RUN lines, chunks between `// -----`, and what is expected of a line.

The rules are those of lit (https://llvm.org/docs/CommandGuide/lit.html) and of MLIR's `-split-input-file` and
`-verify-diagnostics` (https://mlir.llvm.org/docs/Diagnostics/#sourcemgr-diagnostic-verifier-handler).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_RUN = re.compile(r"RUN:(.*)")
_EXPECTED = re.compile(
    r"expected-(?P<kind>error|note|remark|warning)(?P<regex>-re)? *(?:@(?P<at>[+-]\d+|above|below|unknown))? *"
    r"\{\{(?P<message>.*)\}\}$"
)
_SPLIT = re.compile(r"^// -----[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True)
class Expected:
    """What a tool is to say. `kind`: error, note, remark or warning. `line`: of the file, from 1; None if it has no
    place. `message`: a part of it; a `regex` has patterns in it, in double braces."""

    kind: str
    line: int | None
    message: str
    regex: bool

    def said_in(self, text: str) -> bool:
        """Whether a message has what is expected."""
        if not self.regex:
            return self.message in text
        parts = re.split(r"\{\{(.*?)\}\}", self.message)  # words and patterns take turns
        return bool(re.search("".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts)), text))


@dataclass(frozen=True)
class Chunk:
    """A part of a file that is a test of its own. `line`: its first in the file, from 1."""

    line: int
    text: str
    expected: tuple[Expected, ...]

    @property
    def in_place(self) -> str:
        """The text with blank lines before it, so that a parser counts the lines of the file."""
        return "\n" * (self.line - 1) + self.text

    @property
    def errors(self) -> tuple[Expected, ...]:
        """The expected errors. Without any, a tool takes the chunk."""
        return tuple(each for each in self.expected if each.kind == "error")


@dataclass(frozen=True)
class TestFile:
    """A file of tests."""

    __test__ = False  # for pytest, which collects what is named Test

    text: str

    @cached_property
    def runs(self) -> tuple[str, ...]:
        """The commands of its RUN lines, each with the lines that it goes on in, with lit's substitutions as they are
        written: `cute-opt %s | FileCheck %s`."""
        found: list[str] = []
        goes_on = False
        for words in (match[1].strip() for match in _RUN.finditer(self.text)):
            line = words.removesuffix("\\").strip()
            if goes_on:
                found[-1] += f" {line}"
            else:
                found.append(line)
            goes_on = words.endswith("\\")
        return tuple(found)

    @property
    def is_split(self) -> bool:
        """Whether its commands take each chunk by itself."""
        return any("split-input-file" in run for run in self.runs)

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """Its chunks: one if it is not split. Otherwise those without a word of code are left out."""
        return chunks(self.text, split=self.is_split)


def chunks(text: str, *, split: bool) -> tuple[Chunk, ...]:
    """The chunks of a text: one if it is not split. Otherwise those without a word of code are left out."""
    starts = [0, *(match.end() for match in _SPLIT.finditer(text))] if split else [0]
    ends = [*(match.start() for match in _SPLIT.finditer(text)), len(text)][: len(starts) - 1]
    parts = [(start, text[start:end]) for start, end in zip(starts, [*ends, len(text)], strict=True)]
    found = [_chunk(text.count("\n", 0, start) + 1, part) for start, part in parts]
    return tuple(each for each in found if not split or each.expected or _has_code(each.text))


def _chunk(first: int, text: str) -> Chunk:
    lines = text.splitlines()
    said = [_EXPECTED.search(line.rstrip()) for line in lines]
    return Chunk(first, text, tuple(_expected(match, at, first, said) for at, match in enumerate(said) if match))


def _expected(match: re.Match[str], at: int, first: int, said: Sequence[re.Match[str] | None]) -> Expected:
    """What line `at` of a chunk expects; `above` and `below` are the nearest lines that expect nothing."""
    where, line = match["at"], at
    if where == "unknown":
        return Expected(match["kind"], None, match["message"], bool(match["regex"]))
    if where in ("above", "below"):
        step = -1 if where == "above" else 1
        while 0 <= line < len(said) and said[line] is not None:
            line += step
    elif where is not None:
        line += int(where)
    return Expected(match["kind"], first + line, match["message"], bool(match["regex"]))


def _has_code(text: str) -> bool:
    return any(line.strip() and not line.strip().startswith("//") for line in text.splitlines())
