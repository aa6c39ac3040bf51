"""LLVM's FileCheck, as far as its directives CHECK, -LABEL, -SAME, -NEXT, -NOT, -DAG, -COUNT and -EMPTY go, with
regular expressions and string variables.

Source: https://llvm.org/docs/CommandGuide/FileCheck.html. Numeric variables are not read: `[[#` is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

_PART = re.compile(r"\{\{(?P<regex>.*?)\}\}|\[\[(?P<name>[$]?\w+)(?::(?P<definition>(?:[^\]]|\](?!\]))*\]*))?\]\]")
_BLANKS = re.compile(r"[ \t]+")


@dataclass(frozen=True)
class Check:
    """A directive. `line`: where it stands, from 1."""

    kind: str
    count: int
    pattern: str
    line: int

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind or 'CHECK'}: {self.pattern}"


def checks(text: str, prefix: str = "CHECK") -> list[Check]:
    """The directives of a text with a prefix."""
    form = re.compile(rf"(?<![\w-]){re.escape(prefix)}(?:-(LABEL|SAME|NEXT|NOT|DAG|EMPTY|COUNT-(\d+)))?:(.*)")
    found = [(number, form.search(line)) for number, line in enumerate(text.splitlines(), 1)]
    return [_check(match, number) for number, match in found if match]


def _check(match: re.Match[str], line: int) -> Check:
    kind = (match[1] or "").partition("-")[0]
    return Check(kind, int(match[2] or 1), _BLANKS.sub(" ", match[3].strip()), line)


def compare(directives: Sequence[Check], output: str) -> None:
    """Raises AssertionError with the first directive that the output does not meet."""
    text = "\n".join(_BLANKS.sub(" ", line) for line in output.splitlines()) + "\n"
    variables: dict[str, str] = {}
    parts: list[list[Check]] = [[]]
    labels: list[tuple[int, int]] = [(0, 0)]
    for check in directives:
        if check.kind == "LABEL":
            labels.append(_label(check, text, labels[-1][1]))
            parts.append([])
        else:
            parts[-1].append(check)
    ends = [begin for begin, _ in labels[1:]] + [len(text)]
    for part, (_, begin), end in zip(parts, labels, ends, strict=True):
        _Region(text, begin, end, variables).run(part)


def _label(check: Check, text: str, at: int) -> tuple[int, int]:
    """Where a label begins and ends. They divide the output, so that what fails in one part is not sought in the
    next."""
    match = re.compile(_compiled(check.pattern, {})).search(text, at)
    assert match is not None, f"{check}: not found"
    return match.span()


class _Region:
    """A part of the output, from one label to the next."""

    def __init__(self, text: str, begin: int, end: int, variables: dict[str, str]) -> None:
        self.text, self.at, self.end, self.variables = text, begin, end, variables

    def run(self, directives: Sequence[Check]) -> None:
        absent: list[Check] = []
        for kind, group in groupby(directives, key=lambda check: check.kind):
            if kind == "NOT":
                absent += group
                continue
            for begin, end in self._matched(kind, list(group)):
                self._refuse(absent, self.at, begin)
                absent, self.at = [], end
        self._refuse(absent, self.at, self.end)

    def _matched(self, kind: str, group: Sequence[Check]) -> Iterator[tuple[int, int]]:
        if kind == "DAG":
            taken: list[tuple[int, int]] = []
            for check in group:
                taken.append(self._find(check, self.at, taken))
            yield min(begin for begin, _ in taken), max(end for _, end in taken)
            return
        for check in group:
            for _ in range(check.count):
                begin, end = self._next(check)
                yield begin, end

    def _next(self, check: Check) -> tuple[int, int]:
        if check.kind == "EMPTY":
            empty = self.text.startswith("\n\n", self.at) or self.text.startswith("\n", self.at)
            assert empty, f"{check}: the next line is not empty"
            return self.at + 1, self.at + 1
        begin, end = self._find(check, self.at, [])
        between = self.text.count("\n", self.at, begin)
        wanted = {"SAME": 0, "NEXT": 1}.get(check.kind, between)
        assert between == wanted, f"{check}: found {between} lines further: {self._line(begin)}"
        return begin, end

    def _find(self, check: Check, at: int, taken: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """The first match from a place on that overlaps none of those taken."""
        pattern = re.compile(_compiled(check.pattern, self.variables))
        while (match := pattern.search(self.text, at, self.end)) is not None:
            overlapped = [end for begin, end in taken if match.start() < end and begin < match.end()]
            if not overlapped:
                self.variables |= {name.removeprefix("v_"): value for name, value in match.groupdict().items()}
                return match.span()
            at = max(overlapped)
        raise AssertionError(f"{check}: not found behind: {self._line(self.at)}")

    def _refuse(self, absent: Sequence[Check], begin: int, end: int) -> None:
        for check in absent:
            match = re.compile(_compiled(check.pattern, self.variables)).search(self.text, begin, end)
            assert match is None, f"{check}: found: {self._line(match.start())}"

    def _line(self, at: int) -> str:
        return self.text[self.text.rfind("\n", 0, at) + 1 :].partition("\n")[0].strip()


def _compiled(pattern: str, variables: dict[str, str]) -> str:
    """A directive's words as a regular expression; a variable that it defines is a group."""
    made, at, defined = "", 0, set[str]()
    assert "[[#" not in pattern, f"{pattern}: numeric variables are not read"
    for part in _PART.finditer(pattern):
        made += re.escape(pattern[at : part.start()])
        at, name = part.end(), part["name"]
        if name is None:
            made += f"(?:{part['regex']})"
        elif part["definition"] is not None:
            made += f"(?P<v_{name}>{part['definition']})"
            defined.add(name)
        elif name in defined:
            made += f"(?P=v_{name})"
        else:
            assert name in variables, f"{pattern}: {name} has no value"
            made += re.escape(variables[name])
    return made + re.escape(pattern[at:])
