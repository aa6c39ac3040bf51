"""The actions that the workflows use, pinned in toolchain/pinned/actions.toml: `nox -s update_pins -- actions`.

The newest release of each is found in its repository's tags: GitHub's own, or those of a copy, `--mirrors DIR` with a
bare repository or a checkout in DIR/OWNER/NAME. The workflows' `uses:` lines are written from the table.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolFailed, UsageError
from ..files import write_whole
from ..knobs import ROOT
from ..tables import check_keys, is_table, read_table, text

TABLE = ROOT / "toolchain/pinned/actions.toml"
WORKFLOWS = ROOT / ".github/workflows"
HEADER = """\
# The actions that the workflows use, each by its commit. Written by `nox -s update_pins -- actions`, never by hand.
"""
RELEASE = re.compile(r"refs/tags/v(\d+)\.(\d+)\.(\d+)(\^\{\})?")
USES = re.compile(r"(?P<key>uses: +)(?P<name>[\w.-]+/[\w.-]+)(?P<folder>(?:/[\w./-]+)?)@[0-9a-f]{40} # v[\d.]+")


@dataclass(frozen=True)
class Action:
    """A release of an action, `vX.Y.Z`, and the commit of its tag."""

    version: str
    commit: str

    @property
    def order(self) -> tuple[int, ...]:
        return tuple(map(int, self.version[1:].split(".")))


def load(path: Path = TABLE) -> dict[str, Action]:
    """The pinned actions by `OWNER/NAME`. Raises UsageError for what is wrong in the table."""
    table = read_table(path)
    check_keys(table, {"actions": is_table}, str(path))
    found: dict[str, Action] = {}
    for name, row in table["actions"].items():
        check_keys(row, {"version": text, "commit": text}, f"{path}: {name}")
        if not re.fullmatch(r"v\d+\.\d+\.\d+", row["version"]) or not re.fullmatch("[0-9a-f]{40}", row["commit"]):
            raise UsageError(f"{path}: {name}: a version is vX.Y.Z and a commit 40 hexadecimal digits")
        found[name] = Action(row["version"], row["commit"])
    return found


def render(actions: Mapping[str, Action]) -> str:
    """The table's text."""
    rows = [f'[actions."{n}"]\nversion = "{a.version}"\ncommit = "{a.commit}"\n' for n, a in sorted(actions.items())]
    return "\n".join([HEADER, *rows])


def newest(refs: str) -> Action:
    """The newest `vX.Y.Z` of what `git ls-remote --tags` wrote. Raises UsageError if there is none.

    Of an annotated tag, which is an object of its own, the line with `^{}` has the commit.
    """
    found: dict[tuple[int, ...], str] = {}
    for line in refs.splitlines():
        commit, _, ref = line.partition("\t")
        if match := RELEASE.fullmatch(ref):
            number = tuple(int(match[part]) for part in (1, 2, 3))
            if match[4] or number not in found:
                found[number] = commit
    if not found:
        raise UsageError("it has no tag vX.Y.Z")
    number = max(found)
    return Action(f"v{'.'.join(map(str, number))}", found[number])


def tags(place: str) -> str:
    """The tags of a repository, at an address or in a folder. Raises ToolFailed."""
    words = ["git", "ls-remote", "--tags", place]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolFailed(words, done.returncode, done.stderr, version="git", hint="is it there, and a git repository?")
    return done.stdout


def rewritten(workflow: str, actions: Mapping[str, Action]) -> str:
    """A workflow with the commit and the version of each `uses:` as in the table. Raises UsageError for an action that
    the table lacks."""

    def line(match: re.Match[str]) -> str:
        if match["name"] not in actions:
            raise UsageError(f"{match[0]}: {TABLE.name} has no {match['name']}", hint="add it there")
        action = actions[match["name"]]
        return f"{match['key']}{match['name']}{match['folder']}@{action.commit} # {action.version}"

    return USES.sub(line, workflow)


def update(arguments: Sequence[str]) -> Iterator[str]:
    """Take the newest releases; yields a line for each action. One that the table has newer stays."""
    parser = argparse.ArgumentParser(prog="nox -s update_pins -- actions", description="Move the actions' pins.")
    parser.add_argument("names", nargs="*", metavar="OWNER/NAME", help="default: all")
    parser.add_argument("--mirrors", type=Path, metavar="DIR", help="read DIR/OWNER/NAME, not GitHub")
    args = parser.parse_args(arguments)
    actions = load()
    if unknown := [name for name in args.names if name not in actions]:
        raise UsageError(f"no action {', '.join(unknown)} in {TABLE}", hint=f"one of {', '.join(actions)}")
    for name in args.names or list(actions):
        place = str(args.mirrors / name) if args.mirrors else f"https://github.com/{name}"
        if args.mirrors and not Path(place).is_dir():
            yield f"{name}: stays {actions[name].version}: there is no {place}"
            continue
        found, before = newest(tags(place)), actions[name]
        if found.order > before.order:
            actions[name] = found
            yield f"{name}: {before.version} -> {found.version} {found.commit}"
        elif found.order == before.order and found.commit != before.commit:
            raise UsageError(
                f"{name}: the tag {found.version} was moved: pinned {before.commit}, in {place} {found.commit}",
                hint="find out why before anything else",
            )
        else:
            yield f"{name}: stays {before.version}; the newest in {place} is {found.version}"
    write_whole(TABLE, render(actions))
    for path in sorted(WORKFLOWS.glob("*.yml")):
        write_whole(path, rewritten(path.read_text(), actions))
