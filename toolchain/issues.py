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
    """A defect of a `cuda_tile` version with LLVM of a series, its major version; and what to use `instead`."""

    name: str
    cuda_tile: str
    llvm: str
    about: str
    instead: str

    def __str__(self) -> str:
        return f"{self.about}; {self.instead} ({REPORT})"


@functools.cache
def issues() -> tuple[Issue, ...]:
    """All of them."""
    return tuple(Issue(**row) for row in tomllib.loads(ISSUES.read_text()).get("issue", ()))


def known(cuda_tile: str | None, llvm: str) -> tuple[Issue, ...]:
    """Those of a cuda-tile with an LLVM: a version, or a commit, whose series is not known and not asked for."""
    version = re.fullmatch(r"(\d{1,2})(\.\d+)*", llvm)
    return tuple(row for row in issues() if row.cuda_tile == cuda_tile and (not version or version[1] == row.llvm))


def of_name(found: tuple[Issue, ...], name: str) -> Issue | None:
    """The one of that name among `found`."""
    return next((row for row in found if row.name == name), None)
