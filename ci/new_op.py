"""Adds stubs of a new op to every file that has to know it: `nox -s new_op -- NAME`.

The stubs do not work yet, on purpose: each says what belongs there, and the tests fail until all of them are filled in.
The places are the rows of new_op.toml. `nox -s new_op -- --left` lists the places that are not filled in yet.
"""

from __future__ import annotations

import argparse
import keyword
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain import command
from toolchain.errors import UsageError
from toolchain.files import write_whole
from toolchain.knobs import ROOT
from toolchain.pinned.manifest import REPAIR

TABLE = Path(__file__).with_suffix(".toml")
MARK = "TODO(new_op "


@dataclass(frozen=True)
class Place:
    """A row of new_op.toml; the head of that file explains the fields."""

    what: str
    path: str
    todo: str
    text: str
    new: bool = False
    after: str = ""
    before_last: str = ""
    skip: int = 0

    def filled(self, name: str) -> str:
        """The text to write for an op called `name`."""
        todo = f"{MARK}{name}): {self.todo.format(name=name)}"
        return self.text.format(name=name, todo=todo)

    def written(self, before: str, name: str) -> str:
        """The file's text `before`, with the stub added. Raises UsageError if the line to put it beside is missing."""
        text = self.filled(name)
        if self.new:
            return text
        lines = before.splitlines(keepends=True)
        at = len(lines)
        if wanted := self.after or self.before_last:
            found = [i for i, line in enumerate(lines) if line.rstrip("\n") == wanted]
            if not found:
                raise UsageError(
                    f"{self.path}: no line reads {wanted!r}", hint=f"say in {TABLE.name} where {self.what} goes"
                )
            at = found[0] + 1 + self.skip if self.after else found[-1]
        return "".join([*lines[:at], text, *lines[at:]])


def places(root: Path = ROOT) -> list[Place]:
    """The rows whose files exist. Raises UsageError if a file is missing and no other row has the same `what`."""
    rows = [Place(**row) for row in tomllib.loads(TABLE.read_text())["place"]]
    there = [place for place in rows if place.new or (root / place.path).is_file()]
    kinds = {place.what for place in there}
    if lost := [place for place in rows if place.what not in kinds]:
        raise UsageError(f"{lost[0].path}: not there", hint=f"say in {TABLE.name} where {lost[0].what} goes")
    return there


def start(name: str, root: Path = ROOT) -> dict[Place, Path]:
    """Write the stubs of the op `name`. If one cannot be written, raises UsageError and writes none."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} is not a valid name for an op", hint="lower case, as rms_linear")
    if name in tomllib.loads((root / "toolchain/contract/ops.toml").read_text()):
        raise UsageError(f"there is an op {name} already", hint="nox -s new_op -- --left lists what it lacks")
    found = {place: root / place.path.format(name=name) for place in places(root)}
    if taken := [path for place, path in found.items() if place.new and path.exists()]:
        raise UsageError(f"{taken[0]} is there already", hint="choose another name, or move it away")
    texts: dict[Path, str] = {}
    for place, path in found.items():
        before = texts.get(path) or ("" if place.new else path.read_text())
        texts[path] = place.written(before, name)
    for path, text in texts.items():
        write_whole(path, text)
    return found


def left(root: Path = ROOT) -> list[str]:
    """The places that are not filled in yet, as `path:line: instruction`."""
    paths = {path for place in places(root) for path in root.glob(place.path.format(name="*"))}
    return [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in sorted(paths)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if MARK in line
    ]


def show(found: Mapping[Place, Path], name: str) -> None:
    print(f"{name} has to be filled in at {len(found)} places:")
    for place, path in found.items():
        print(f"  {path.relative_to(ROOT)!s:42} {place.what}")
    print("next: docs/add-a-kernel.md; `nox -s new_op -- --left` lists what is left, and so do the tests")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="nox -s new_op --")
    parser.add_argument("name", nargs="?", help="the new op, as rms_linear")
    parser.add_argument("--left", action="store_true", help="list what is left to fill in")
    args = parser.parse_args(arguments)
    if args.left == bool(args.name):
        parser.error("a name, or --left")
    return command.run(lambda: _left() if args.left else show(start(args.name), args.name), set_up=REPAIR)


def _left() -> None:
    found = left()
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} places are left to fill in")


if __name__ == "__main__":
    sys.exit(main())
