"""Compares a group of cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .cases import Case
from .verdict import DIFFERENT, ours, verdict


class Evaluates(Protocol):
    """CuTe's side: the compiler, or a test's stand-in."""

    def results(self, cases: Sequence[Case], folder: Path) -> list[Any]:
        """CuTe's result of each case, or None where it refuses."""
        ...


@dataclass(frozen=True)
class Finding:
    """A case, what was found, and both results; None is a refusal."""

    case: Case
    said: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.said}: {self.case}: ours {self.ours}, CuTe's {self.theirs}"


def compare(cases: Sequence[Case], compiler: Evaluates, folder: Path) -> Iterator[Finding]:
    """A finding for each case. Where g++ has met a template before, it does not repeat that CuTe refuses: a difference
    is compiled once more, alone."""
    for case, theirs in zip(cases, compiler.results(cases, folder), strict=True):
        mine = ours(case)
        said = verdict(case, mine, theirs)
        if said == DIFFERENT:
            theirs = compiler.results([case], folder)[0]
            said = verdict(case, mine, theirs)
        yield Finding(case, said, mine, theirs)
