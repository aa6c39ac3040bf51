"""The stacks in `pins.toml`: the LLVM and the cuda-tile that belong together, and where their sources are.

MLIR's C++ interface has no stable version. A cuda-tile release therefore builds only with an interval of LLVM commits:
from the commit that it was ported to, until the commit that the next release was ported to. pins.toml has the first
commit of each interval.
"""

from __future__ import annotations

import datetime
import functools
import re
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import ToolchainError, UsageError
from .pins import PINS

Provider = Literal["source", "system"]


@dataclass(frozen=True)
class Archive:
    """An archive of a source, found by its `url` or by its path on a Debian mirror (`debian`). `sha256` is in hex."""

    sha256: str
    url: str | None = None
    debian: str | None = None


@dataclass(frozen=True)
class GitSource:
    """A commit of a git repository. `tree`: the hash of its tree, which can be checked on any copy of the files."""

    url: str
    mirrors: tuple[str, ...]
    commit: str
    tree: str


@dataclass(frozen=True)
class Interval:
    """The LLVM commits that a cuda-tile builds with: from `commit`, made on `date`, until the next interval's."""

    cuda_tile: str
    commit: str
    date: datetime.date


@dataclass(frozen=True)
class Stack:
    """An LLVM and a cuda-tile that fit together. `llvm`: its versions by provider. `suite`: the Debian release that has
    the system LLVM."""

    name: str
    cuda_tile: str
    llvm: Mapping[Provider, str]
    suite: str

    @property
    def series(self) -> str:
        """LLVM's major version, by which Debian names its packages."""
        return self.llvm["system"].partition(".")[0]


@dataclass(frozen=True)
class Stacks:
    """All stacks and sources. `llvm` and `cuda_tile`: sources by version; `intervals`: in the order of their dates."""

    default: str
    stacks: Mapping[str, Stack]
    llvm: Mapping[str, tuple[Archive, ...]]
    cuda_tile: Mapping[str, GitSource]
    intervals: tuple[Interval, ...]

    def stack(self, name: str | None = None) -> Stack:
        """The stack of that name, or the default one. Raises UsageError."""
        if (chosen := name or self.default) not in self.stacks:
            raise UsageError(f"no stack {chosen!r}", hint=f"one of {', '.join(self.stacks)}")
        return self.stacks[chosen]


def parse(table: Mapping[str, Any]) -> Stacks:
    """The stacks in a table of pins.toml's form. Raises ToolchainError if its parts do not fit together."""
    native = table["native"]
    made = Stacks(
        default=native["default"],
        stacks={name: Stack(name, **row) for name, row in native["stacks"].items()},
        llvm={version: tuple(Archive(**row) for row in rows) for version, rows in native["llvm"].items()},
        cuda_tile={
            version: GitSource(row["url"], tuple(row["mirrors"]), row["commit"], row["tree"])
            for version, row in native["cuda_tile"].items()
        },
        intervals=tuple(Interval(**row) for row in native["compatibility"]),
    )
    if made.default not in made.stacks:
        raise ToolchainError(f"pins.toml: the default is {made.default!r}, which is not a stack")
    for stack in made.stacks.values():
        if stack.llvm["source"] not in made.llvm or stack.cuda_tile not in made.cuda_tile:
            raise ToolchainError(f"pins.toml: stack {stack.name} names a source that is not pinned")
    if list(made.intervals) != sorted(made.intervals, key=lambda interval: interval.date):
        raise ToolchainError("pins.toml: the compatibility intervals are not in the order of their dates")
    return made


@functools.cache
def stacks() -> Stacks:
    """The stacks of `pins.toml`."""
    return parse(tomllib.loads(PINS.read_text()))


@dataclass(frozen=True)
class Fit:
    """The cuda-tile that fits an LLVM (None: no known one), the stack that has both, if any, and the reason."""

    llvm: str
    cuda_tile: str | None
    stack: str | None
    why: str


def check(llvm: str, *, date: datetime.date | None = None, clone: Path | None = None) -> Fit:
    """The cuda-tile that builds with `llvm`, which is a version (`22.1.8`, `22.1`) or a commit's hash.

    If the commit is not the first of an interval, its interval is found by its committer date, or exactly by a `clone`
    of LLVM. Raises UsageError if `llvm` is neither a version nor a hash, or if the interval cannot be found.
    """
    known = stacks()
    if re.fullmatch(r"(llvmorg-)?\d{1,2}(\.\d+){0,2}", llvm):
        return _check_version(known, llvm.removeprefix("llvmorg-"))
    if not re.fullmatch(r"[0-9a-f]{7,40}", llvm):
        raise UsageError(
            f"{llvm!r} is neither an LLVM version nor a commit",
            hint="write a version such as 22.1.8, or 7 to 40 hex digits",
        )
    if clone is not None:
        return _check_commit(known, llvm, clone)
    for interval in known.intervals:
        if interval.commit.startswith(llvm) or llvm.startswith(interval.commit):
            return _fit(known, llvm, interval, f"it is the first commit that v{interval.cuda_tile} builds with")
    if date is None:
        raise UsageError(
            f"commit {llvm} is not the start of a known interval, so its date or position is needed",
            hint="give its date, --date YYYY-MM-DD, or a clone of llvm-project, --llvm-clone DIR",
        )
    return _last(known, llvm, [row for row in known.intervals if row.date <= date], f"by its date, {date}")


def _check_version(known: Stacks, version: str) -> Fit:
    for stack in known.stacks.values():
        for provider, pinned in stack.llvm.items():
            if version == pinned:
                why = f"stack {stack.name} pins it as its {provider} LLVM"
                return Fit(version, stack.cuda_tile, stack.name, why)
    series = version.split(".")[:2]
    for stack in known.stacks.values():
        if any(pinned.split(".")[: len(series)] == series for pinned in stack.llvm.values()):
            why = f"of the release series of {' and '.join(sorted(set(stack.llvm.values())))}, not itself pinned"
            return Fit(version, stack.cuda_tile, stack.name, why)
    return Fit(version, None, None, "no stack has an LLVM of this series; nox -s llvm_canary tries one")


def _check_commit(known: Stacks, commit: str, clone: Path) -> Fit:
    def contains(first: str) -> bool:
        command = ["git", "-C", str(clone), "merge-base", "--is-ancestor", first, commit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise UsageError(f"{' '.join(command)}\n{done.stderr.strip()}", hint="is it a full clone of llvm-project?")
        return done.returncode == 0

    return _last(known, commit, [row for row in known.intervals if contains(row.commit)], f"by the history in {clone}")


def _last(known: Stacks, llvm: str, intervals: Sequence[Interval], how: str) -> Fit:
    if not intervals:
        return Fit(llvm, None, None, f"{how}, older than {known.intervals[0].commit}, the first that we know")
    return _fit(known, llvm, intervals[-1], f"{how}, in the interval from {intervals[-1].commit}")


def _fit(known: Stacks, llvm: str, interval: Interval, why: str) -> Fit:
    names = [stack.name for stack in known.stacks.values() if stack.cuda_tile == interval.cuda_tile]
    return Fit(llvm, interval.cuda_tile, names[0] if names else None, why)
