"""Known defects of the native stacks, from issues.toml."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ISSUES = Path(__file__).parent / "issues.toml"
REPORT = "docs/native.md, Known defects"


@dataclass(frozen=True)
class Issue:
    """A defect of a `cuda_tile` version with an LLVM series (its major version). `instead`: what to use."""

    name: str
    cuda_tile: str
    llvm: str
    about: str
    instead: str

    def __str__(self) -> str:
        return f"{self.about}; {self.instead} ({REPORT})"


@functools.cache
def issues() -> tuple[Issue, ...]:
    """All known defects."""
    return tuple(Issue(**row) for row in tomllib.loads(ISSUES.read_text()).get("issue", ()))


def known(cuda_tile: str | None, llvm: str) -> tuple[Issue, ...]:
    """The defects of a cuda-tile version with an LLVM. For a commit, whose series is unknown, the series is ignored."""
    version = re.fullmatch(r"(\d{1,2})(\.\d+)*", llvm)
    return tuple(row for row in issues() if row.cuda_tile == cuda_tile and (not version or version[1] == row.llvm))


def of_name(found: tuple[Issue, ...], name: str) -> Issue | None:
    """The defect with that name among `found`, if any."""
    return next((row for row in found if row.name == name), None)
