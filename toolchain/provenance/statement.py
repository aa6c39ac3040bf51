"""How a bundle was made, as an in-toto statement with SLSA provenance, and whether a folder is what a statement says.

The forms: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md and
https://slsa.dev/spec/v1.0/provenance. A statement is not signed here: whoever hands it on signs it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

from ..bundles.bundle import Bundle
from ..errors import BundleError, ToolchainError, UsageError
from ..files import everything
from ..knobs import ROOT, ci_run
from ..pinned.pins import PINS, file_sha256, pins

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD = "urn:tilestack:build:bundle:v1"  # docs/provenance.md says what it means
LOCK = ROOT / "requirements.lock"
HERE = "make the statement in the checkout that compiled the bundle, or compile it again here"

Status = Literal["match", "mismatch", "missing", "unlisted"]


@dataclass(frozen=True)
class Checkout:
    """The commit that is checked out, and whether the files differ from it."""

    commit: str
    dirty: bool


@dataclass(frozen=True)
class CheckedFile:
    """A file as a check found it. `expected`, `found`: sha256 in hex, empty for an unlisted and for a missing file."""

    name: str
    status: Status
    expected: str
    found: str


def checkout(folder: Path = ROOT) -> Checkout:
    """Raises ToolchainError if the folder is not a git checkout, or if git cannot be run."""

    def git(*args: str) -> str:
        command = ["git", "-C", str(folder), *args]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise ToolchainError(
                "provenance has to name the commit, but git is not installed", hint="install git"
            ) from error
        if done.returncode:
            said = f"{' '.join(command)}\n  exited {done.returncode}\n{done.stderr.strip()}"
            raise ToolchainError(f"the commit is unknown:\n  {said}", hint="run this in a git checkout")
        return done.stdout.strip()

    return Checkout(git("rev-parse", "HEAD"), bool(git("status", "--porcelain")))


def statement(bundle: Bundle, source: Checkout, fingerprints: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """The statement for a bundle that was compiled from `source`, by this environment.

    `fingerprints`: of each entry of the checkout, by kernel source and symbol; see `bundle.Compiled`. Raises
    BundleError if a file is not what the manifest says, or if the bundle was not made by the tools that this checkout
    pins, from the kernels that it has.
    """
    _same_tools(bundle)
    _same_kernels(bundle, fingerprints)
    for entry in bundle.entries:
        for file in entry.files:
            bundle.read(file)
    ci = ci_run()
    files = [
        {"name": path.name, "digest": {"sha256": file_sha256(path)}, "annotations": {"role": role}}
        for path, role in ((LOCK, "the packages"), (PINS, "the tools"))
    ]
    commit: dict[str, Any] = {
        "name": "checkout", "digest": {"gitCommit": source.commit}, "annotations": {"dirty": source.dirty},
    }  # fmt: skip
    if ci:
        commit = {"uri": f"git+{ci.repository}", **commit}
    tools = [
        {"name": name, "digest": {"sha256": row["sha256"]}, "annotations": {"version": row["version"]}}
        for name, row in sorted(bundle.tools.items())
    ]
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in hashes(bundle.root).items()],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": _parameters(bundle),
                "resolvedDependencies": [commit, *files, *tools],
            },
            "runDetails": {
                "builder": {"id": ci.workflow if ci else "local"},
                **({"metadata": {"invocationId": ci.run}} if ci else {}),
            },
        },
    }


def _parameters(bundle: Bundle) -> dict[str, Any]:
    from ..compiling.stages import OPTIONS

    return {
        "sources": list(bundle.sources),
        "targets": list(bundle.targets),
        "entries": [f"{entry.spec.source}/{entry.spec.symbol}" for entry in bundle.entries],
        "bytecodeVersions": sorted({entry.form.version for entry in bundle.entries if entry.interpretable}),
        "assemblerOptions": list(OPTIONS) if bundle.targets else [],
    }


def _same_tools(bundle: Bundle) -> None:
    for name, row in bundle.tools.items():
        pinned = pins().tools.get(name)
        if pinned is None or row.get("sha256") not in pinned.sha256.values():
            raise BundleError(
                f"{bundle.root}: it was compiled by {name} {row.get('version')} with sha256 {row.get('sha256')}, "
                "which is not what this checkout pins",
                hint=HERE,
            )


def _same_kernels(bundle: Bundle, fingerprints: Mapping[tuple[str, str], str]) -> None:
    other = [
        f"{entry.spec.source}/{entry.spec.symbol}"
        for entry in bundle.entries
        if not entry.fingerprint or entry.fingerprint != fingerprints.get((entry.spec.source, entry.spec.symbol))
    ]
    if other:
        more = f" and {len(other) - 3} more" if len(other) > 3 else ""
        raise BundleError(
            f"{bundle.root}: {', '.join(other[:3])}{more}: compiled from other kernels than this checkout has",
            hint=HERE,
        )


def hashes(folder: Path) -> dict[str, str]:
    """sha256 of every file in a folder, by its path there. Raises BundleError for what is neither file nor folder, such
    as a link that leads nowhere."""
    paths = everything(folder)
    if other := [str(path) for path in paths if not path.is_file()]:
        raise BundleError(f"no file: {', '.join(other)}", hint="a bundle contains only files: move it elsewhere")
    return {path.relative_to(folder).as_posix(): file_sha256(path) for path in paths}


def render(made: Mapping[str, Any]) -> bytes:
    return (json.dumps(made, indent=1) + "\n").encode()


def parse(text: bytes, where: str) -> dict[str, Any]:
    """A statement that we can check. Raises UsageError naming what is wrong with it."""
    try:
        made = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is not a statement: {error}") from error
    table = cast("dict[str, Any]", made) if isinstance(made, dict) else {}
    for key, expected in (("_type", STATEMENT), ("predicateType", PREDICATE)):
        if table.get(key) != expected:
            raise UsageError(f"{where}: {key} is {table.get(key)!r}, not {expected}")
    try:
        build = table["predicate"]["buildDefinition"]["buildType"]
        subjects = _subjects(table["subject"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{where} is damaged: {type(error).__name__}: {error}") from error
    if build != BUILD:
        raise UsageError(f"{where}: it states a build of type {build!r}, not {BUILD}")
    if not subjects:
        raise UsageError(f"{where}: it has no subjects")
    return table


def _subjects(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in rows:
        name, sha256 = str(row["name"]), str(row["digest"]["sha256"])
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"{name!r} is not a path in a bundle")
        if name in found:
            raise ValueError(f"{name!r} is listed twice")
        found[name] = sha256
    return found


def check(made: Mapping[str, Any], folder: Path) -> list[CheckedFile]:
    """Each subject of a statement (see `parse`) and each file of a folder, held against each other.

    Raises BundleError if there is no such folder.
    """
    if not folder.is_dir():
        raise BundleError(f"{folder}: there is no such folder")
    expected, found = _subjects(made["subject"]), hashes(folder)
    rows: list[CheckedFile] = []
    for name in sorted({*expected, *found}):
        wanted, had = expected.get(name, ""), found.get(name, "")
        status: Status = (
            "unlisted" if not wanted else "missing" if not had else "match" if wanted == had else "mismatch"
        )
        rows.append(CheckedFile(name, status, wanted, had))
    return rows
