"""The actions that workflows use: the real one if its repository is at hand, else a stand-in of tests/."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from toolchain.errors import UsageError
from toolchain.knobs import ROOT

STAND_INS = ROOT / "tests/compile/ci/workflows/actions"
USES = re.compile(r"^[ -]*uses: +(?P<name>[\w.-]+/[\w.-]+)(?:/(?P<folder>[\w./-]+))?@(?P<commit>\S+)", re.MULTILINE)
# These share a store: one stands in if the other does.
TOGETHER = (frozenset({"actions/upload-artifact", "actions/download-artifact"}),)
SERVICES = {"actions/attest-build-provenance": "GitHub alone signs"}


@dataclass(frozen=True)
class Used:
    """An action's repository at a commit. `folders`: the actions in it that are used; "" is its root."""

    name: str
    commit: str
    folders: frozenset[str]


@dataclass(frozen=True)
class Found:
    """Where an action is taken from. `why`: the reason for a stand-in, empty for the real action."""

    used: Used
    folder: Path
    why: str = ""

    def __str__(self) -> str:
        return f"{self.used.name}: {f'a stand-in: {self.why}' if self.why else 'the real one'}"


def used(workflow: Path, local: Mapping[str, Path] | None = None) -> list[Used]:
    """The actions of other repositories that a workflow uses, and the workflows that it calls: those beside it, and
    those of the repositories in `local`, which has folders by OWNER/NAME@REF."""
    folders: dict[tuple[str, str], set[str]] = {}
    for path in _called(workflow, local or {}):
        for match in USES.finditer(path.read_text()):
            if not match["folder"] or not match["folder"].endswith((".yml", ".yaml")):  # else another workflow
                folders.setdefault((match["name"], match["commit"]), set()).add(match["folder"] or "")
    return [Used(name, commit, frozenset(found)) for (name, commit), found in sorted(folders.items())]


def _called(workflow: Path, local: Mapping[str, Path]) -> list[Path]:
    """A workflow and, one after the other, all that it calls."""
    found = [workflow]
    for path in found:  # which grows
        names = re.findall(r"^ *uses: +\./\.github/workflows/([\w.-]+)", path.read_text(), re.MULTILINE)
        found += [beside for name in names if (beside := path.parent / name) not in found]
        for match in USES.finditer(path.read_text()):
            folder = local.get(f"{match['name']}@{match['commit']}")
            if folder and match["folder"] and (other := folder / match["folder"]) not in found:
                found.append(other)
    return found


def find(wanted: Iterable[Used], checkouts: Path | None, scratch: Path) -> list[Found]:
    """Each action's folder. `checkouts`: git repositories as OWNER/NAME. Raises UsageError if there is neither the
    action nor a stand-in."""
    reasons: dict[Used, str] = {}
    for each in wanted:
        reasons[each] = SERVICES.get(each.name) or _take(each, checkouts, scratch / each.name / each.commit)
    for names in TOGETHER:
        if away := [each.name for each, why in reasons.items() if why and each.name in names]:
            for each in reasons:
                if each.name in names and not reasons[each]:
                    reasons[each] = f"it shares its files with {away[0]}, which is one"
    return [
        Found(each, _stand_in(each) if why else scratch / each.name / each.commit, why) for each, why in reasons.items()
    ]


def _stand_in(used: Used) -> Path:
    folder = STAND_INS / used.name.partition("/")[2]
    if missing := [name for name in used.folders if not (folder / name / "action.yml").is_file()]:
        raise UsageError(
            f"{used.name}@{used.commit}: neither the action nor a stand-in is there: {folder / missing[0]}",
            hint=f"--actions DIR with a git repository in DIR/{used.name}, or write {folder / missing[0]}/action.yml",
        )
    return folder


def _take(used: Used, checkouts: Path | None, folder: Path) -> str:
    """Unpack an action into a folder. Returns why it cannot be run here, or an empty text."""
    if checkouts is None:
        return "without --actions DIR"
    repository = checkouts / used.name
    if not repository.is_dir():
        return f"there is no {repository}"
    done = subprocess.run(
        ["git", "-C", str(repository), "archive", "--format=tar", used.commit], capture_output=True, check=False
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        return f"{repository} is not whole: {lines[-1]}"
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    for name in sorted(used.folders):
        if why := _unfit(folder / name):
            return why
    return ""


def _unfit(folder: Path) -> str:
    table: Mapping[str, Any] = yaml.safe_load((folder / "action.yml").read_text())["runs"]
    if not str(table["using"]).startswith("node"):
        return ""
    if not (folder / table["main"]).is_file():
        return f"its repository lacks {table['main']}"
    return "" if shutil.which("node") else "node is not installed"
