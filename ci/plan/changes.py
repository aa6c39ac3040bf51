"""The files that differ from a base commit. Where that cannot be told, everything is planned, and the plan says why."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolchain.errors import UsageError
from toolchain.knobs import ROOT

from .graph import git

SHA = re.compile(r"[0-9a-f]{40}")
NO_COMMIT = "0" * 40  # how GitHub names the commit before the first of a branch


@dataclass(frozen=True)
class Changes:
    """`paths`: what differs; None if that cannot be told. `renamed`: of paths that are gone, where their content is
    now. `why`: in words, for whoever reads the plan."""

    paths: Sequence[str] | None
    why: str
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])


def changed_since(base: str, root: Path = ROOT) -> Changes:
    """The files that differ from the last commit that this checkout and `base` share, and those that are not committed.
    Everything is planned if the clone has no commit of the hash `base`, or shares none with it: after a force-push, or
    in a shallow clone. Raises UsageError for a name that git does not know."""
    if base == NO_COMMIT:
        return Changes(None, "there is no commit before: the branch is new")
    shallow = git(root, "rev-parse", "--is-shallow-repository").strip() == "true"
    cut = "this clone is shallow: git fetch --unshallow" if shallow else "it is gone after a force-push, say"
    if SHA.fullmatch(base) and not _has(root, base):
        return Changes(None, f"the base {base[:12]} is not in this clone; {cut}")
    if not _has(root, base):
        more = cut if shallow else "git fetch gets those of others"
        raise UsageError(f"git knows no commit {base!r}", hint=f"--base takes one; {more}")
    parted = git(root, "merge-base", base, "HEAD", answers=(0, 1)).strip()
    if not parted:
        cut = "this clone is shallow: git fetch --unshallow" if shallow else "their histories are unrelated"
        return Changes(None, f"no common commit of {base[:40]} and this one is in this clone; {cut}")
    paths, renamed = _named(git(root, "diff", "--name-status", "--find-renames", "-z", parted))
    paths |= set(filter(None, git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")))
    where = f"{parted[:12]}, where this and {base[:40]} parted"
    if not paths:
        return Changes([], f"nothing differs from {where}")
    moved = f", {len(renamed)} of them renamed" if renamed else ""
    return Changes(sorted(paths), f"{len(paths)} paths differ from {where}{moved}", renamed)


def _has(root: Path, commit: str) -> bool:
    try:
        git(root, "cat-file", "-e", f"{commit}^{{commit}}")
    except UsageError:
        return False
    return True


def _named(status: str) -> tuple[set[str], dict[str, str]]:
    """All paths of a `git diff --name-status -z`, and those that were renamed with their new names."""
    words = iter(status.split("\0"))
    paths: set[str] = set()
    renamed: dict[str, str] = {}
    for kind in filter(None, words):
        old = next(words)
        paths.add(old)
        if kind[0] in "RC":
            new = next(words)
            paths.add(new)
            if kind[0] == "R":
                renamed[old] = new
    return paths, renamed
