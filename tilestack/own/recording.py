"""A recording: what the cells of a matrix.toml launch, compiled for GPUs, for machines without a compiler.

It is a folder: `recording.json`; `matrix.toml`, from which the inputs are drawn again; `commit.json`, of the kernels;
and `files/<sha256>`: code, cubins, the contents of arrays. Reading a file checks its sha256.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from toolchain.bundles.checkout import COMMIT, stamped
from toolchain.contract.artifact import Form
from toolchain.errors import BundleError, UsageError
from toolchain.files import folder_beside

from .problem import Problem
from .table import Op, load

FORMAT = 1
MANIFEST, TABLE, FILES = "recording.json", "matrix.toml", "files"
_AGAIN = "record it again with `tilestack record`"


@dataclass(frozen=True)
class Kept:
    """An array of a cell. `name`: of an input or output; empty for one that `launch` made itself. `dtype`: numpy's.
    `content`: the file with its bytes before the first launch; empty for inputs, which are drawn, and outputs.
    `written`: whether a kernel writes it, so that it must be set again before each run."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    content: str = ""
    written: bool = False


@dataclass(frozen=True)
class Launch:
    """One launch. `code`: the file of its Tile IR or PTX; `cubins`: by target. `parameters`, in the code's order:
    `{"array": N}`, its address; `{"number": [DTYPE, VALUE]}`; `{"table": [{"array": N, "numbers": […]}, …]}`, the
    address of the table of a list. `maps`: of each of the form's tensor maps the array that it describes."""

    symbol: str
    form: Form
    grid: tuple[int, int, int]
    code: str
    cubins: Mapping[str, str]
    parameters: Sequence[Mapping[str, Any]]
    maps: Sequence[Mapping[str, Any]] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "symbol": self.symbol, "form": self.form.to_json(), "grid": self.grid, "code": self.code,
            "cubins": dict(self.cubins), "parameters": list(self.parameters), "maps": list(self.maps),
        }  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """What an output must be. `exact`: the file of the right values, float64 or int64, at the places that `sample`
    names. `bound`: of the error. `digest`: of all bytes of an output of integers; empty for others."""

    exact: str
    bound: float
    digest: str = ""


@dataclass(frozen=True)
class Cell:
    """An op at one dtype and some sizes. `checked`: its sizes are among those to check; `timed`: it is a
    case for the gate. `drawn`: the digest of its inputs."""

    op: str
    dtype: str
    sizes: Mapping[str, int]
    checked: bool
    timed: bool
    drawn: str
    arrays: Sequence[Kept]
    launches: Sequence[Launch]
    expected: Mapping[str, Expected]

    def to_json(self) -> dict[str, Any]:
        return {
            "op": self.op, "dtype": self.dtype, "sizes": dict(self.sizes), "checked": self.checked,
            "timed": self.timed, "drawn": self.drawn,
            "arrays": [vars(each) for each in self.arrays], "launches": [each.to_json() for each in self.launches],
            "expected": {name: vars(each) for name, each in self.expected.items()},
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Recording:
    """A loaded recording. `tools`: version and sha256 of each that compiled it."""

    root: Path
    seed: int
    targets: tuple[str, ...]
    tools: Mapping[str, Mapping[str, str]]
    cells: tuple[Cell, ...]

    @classmethod
    def load(cls, root: Path) -> Recording:
        """Raises BundleError if `root` has none, or one that we cannot read."""
        path = root / MANIFEST
        try:
            row: Any = json.loads(path.read_text())
            if row["format"] != FORMAT:
                raise BundleError(f"{path} has format {row['format']}; this version reads {FORMAT}", hint=_AGAIN)
            cells = tuple(_cell(each) for each in row["cells"])
            return cls(root, row["seed"], tuple(row["targets"]), row["tools"], cells)
        except OSError as error:
            raise BundleError(f"no recording in {root}: {error}", hint=_AGAIN) from error
        except (ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
            raise BundleError(f"{path} is damaged: {type(error).__name__}: {error}", hint=_AGAIN) from error

    def read(self, sha256: str) -> bytes:
        """The content of a file. Raises BundleError if it is missing or damaged."""
        path = self.root / FILES / sha256
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BundleError(f"the recording lacks {path}: {error}", hint=_AGAIN) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise BundleError(f"{path} is damaged: its sha256 is another one", hint=_AGAIN)
        return data

    @cached_property
    def ops(self) -> Mapping[str, Op]:
        return {op.name: op for op in load(self.root / TABLE)}

    def problem(self, cell: Cell) -> Problem:
        """What a cell computes, with the inputs of the machine that recorded it. Raises BundleError if numpy draws
        others here."""
        made = Problem(self.ops[cell.op], cell.dtype, cell.sizes, self.seed)
        if drawn(made) != cell.drawn:
            raise BundleError(
                f"{made.case}: numpy draws other inputs here than where it was recorded",
                hint="install the same numpy on both machines",
            )
        return made

    @property
    def sha256(self) -> str:
        """Of what it holds, without the commit."""
        return hashlib.sha256((self.root / MANIFEST).read_bytes()).hexdigest()

    @property
    def commit(self) -> Mapping[str, str]:
        """`commit` and `changes` of the kernels' repository; empty if it was none."""
        return stamped(self.root)


def drawn(problem: Problem) -> str:
    """A digest of its inputs."""
    digest = hashlib.sha256()
    for array in problem.inputs.values():
        digest.update(array.tobytes())
    return digest.hexdigest()


def _cell(row: Mapping[str, Any]) -> Cell:
    fields: dict[str, Any] = {
        **row,
        "arrays": [_kept(each) for each in row["arrays"]],
        "launches": [_launch(each) for each in row["launches"]],
        "expected": {name: Expected(**each) for name, each in row["expected"].items()},
    }
    return Cell(**fields)


def _kept(row: Mapping[str, Any]) -> Kept:
    fields: dict[str, Any] = {**row, "shape": tuple(row["shape"])}
    return Kept(**fields)


def _launch(row: Mapping[str, Any]) -> Launch:
    fields: dict[str, Any] = {**row, "form": Form.from_json(row["form"]), "grid": tuple(row["grid"])}
    return Launch(**fields)


class Files:
    """What a recording will hold, by sha256."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def add(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self.contents[name] = data
        return name


def write(
    root: Path, table: Path, seed: int, targets: Sequence[str], tools: Mapping[str, Mapping[str, str]],
    cells: Sequence[Cell], files: Files, commit: Mapping[str, str],
) -> Recording:  # fmt: skip
    """Writes a recording and loads it; one that is there is replaced when all is written. Raises UsageError if `root`
    holds anything else."""
    check_replaceable(root)
    root.parent.mkdir(parents=True, exist_ok=True)
    with folder_beside(root) as scratch:
        fresh = scratch / "new"
        (fresh / FILES).mkdir(parents=True)
        for name, data in files.contents.items():
            (fresh / FILES / name).write_bytes(data)
        shutil.copyfile(table, fresh / TABLE)
        row = {
            "format": FORMAT, "seed": seed, "targets": list(targets), "tools": tools,
            "cells": [cell.to_json() for cell in cells],
        }  # fmt: skip
        (fresh / MANIFEST).write_text(json.dumps(row, indent=1) + "\n")
        if commit:
            (fresh / COMMIT).write_text(json.dumps(dict(commit)) + "\n")
        if root.exists():
            root.rename(scratch / "old")
        fresh.rename(root)
    return Recording.load(root)


def check_replaceable(root: Path) -> None:
    """Raises UsageError if `root` is anything but a recording or an empty folder."""
    if root.exists() and not (root / MANIFEST).is_file() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} exists and is no recording, so it is not overwritten", hint="another --output")
