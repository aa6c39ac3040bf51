"""A suite's repository at its pinned commit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.errors import ToolFailed, UsageError
from toolchain.tables import header, place, read_table

TABLE = Path(__file__).parent / "suites.toml"


@dataclass(frozen=True)
class Suite:
    """A row of suites.toml, whose head explains the fields."""

    name: str
    title: str
    repository: str
    commit: str
    folder: str
    about: str = ""
    by: str = "file"
    operations: str = ""
    sparse: bool = False
    files: tuple[str, ...] = (".",)
    words: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


def suite(name: str) -> Suite:
    """The suite of that name. Raises UsageError."""
    rows = read_table(TABLE)
    if name not in rows:
        raise UsageError(f"no suite {name!r}", hint=f"one of {', '.join(rows)}")
    row: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in rows[name].items()}
    try:
        return Suite(name, **row)
    except TypeError as error:
        raise UsageError(f"{place(TABLE, header(name))}: {error}") from error


def checkout(suite: Suite, folder: Path, mirror: Path | None) -> Path:
    """A clean tree of the suite in `folder`. `mirror`: a folder with copies of repositories, each in `owner+name/repo`
    or `owner/name.git`; by default they are fetched. Raises ToolFailed, and UsageError if the mirror has none."""
    tree = folder / suite.name
    source = suite.repository if mirror is None else str(_copy(suite, mirror))
    if not (tree / ".git").is_dir():
        _git("clone", "--no-checkout", "--quiet", source, str(tree))
    if suite.sparse:
        _git("-C", str(tree), "sparse-checkout", "set", suite.folder)
    _git("-C", str(tree), "checkout", "--quiet", "--force", "--detach", suite.commit)
    _git("-C", str(tree), "clean", "-fdxq")
    return tree


def files_to_run(suite: Suite, tree: Path, given: Sequence[str]) -> Sequence[str]:
    """These files, by default the suite's, seen from its folder. One may be given from there or from the root of the
    repository, as the page names it; behind `::`, a test. Raises UsageError if there is none."""
    found: list[str] = []
    for each in given or suite.files:
        name, colons, test = each.partition("::")
        path = next((p for p in (tree / suite.folder / name, tree / name) if p.exists()), None)
        if path is None:
            raise UsageError(f"{suite.name} has no file {name}", hint="name it as a table of docs/suites.md does")
        found.append(os.path.relpath(path, tree / suite.folder) + colons + test)
    return found


def _copy(suite: Suite, mirror: Path) -> Path:
    owner, name = suite.repository.rsplit("/", 2)[-2:]
    for path in (mirror / f"{owner}+{name}" / "repo", mirror / owner / f"{name}.git"):
        if path.is_dir():
            return path
    where = mirror / owner / f"{name}.git"
    raise UsageError(f"{mirror} has no copy of {owner}/{name}", hint=f"git clone --mirror {suite.repository} {where}")


def _git(*words: str) -> None:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolFailed(["git", *words], done.returncode, done.stderr, version="git")
