"""`ci/matrix.toml`: what CI checks, on which machines, and what a change reaches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.contract.op import DTYPES
from toolchain.contract.sources import packages
from toolchain.contract.targets import targets
from toolchain.errors import UsageError
from toolchain.knobs import ROOT
from toolchain.tables import (
    Check,
    check_keys,
    flag,
    header,
    is_number,
    is_table,
    natural,
    one_of,
    place,
    positive,
    read_table,
    table_of,
    tables,
    text,
    text_or_empty,
    texts,
)

TABLE = ROOT / "ci/matrix.toml"
EVENTS = ("pull_request", "nightly", "release")
STAGES = ("compile", "interpret", "conformance", "model", "gate")


MODULES: Mapping[str, Check] = {"modules": texts}
LIMITS: Mapping[str, Check] = {"jobs": natural, "minutes": natural}
RUNNER: Mapping[str, Check] = {"name": text, "labels": texts, "gpu": text, "target": text, "image": text_or_empty}
EVENT: Mapping[str, Check] = {
    "changed_only": flag, "runners": texts, "targets": one_of("default", "all"), "sources": texts, "dtypes": texts,
    "shapes": one_of("smallest", "full"), "tools": flag, "required": text,
}  # fmt: skip
TOP: Mapping[str, Check] = {
    "limits": is_table, "seconds": table_of(is_number, "numbers"), "runner": tables,
    "tools": table_of(lambda value: texts(value) is None, "lists of texts"), "event": is_table, "stage": is_table,
    "files": tables,
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """`jobs`: how many a matrix may have at most. `minutes`: how long a job should take."""

    jobs: int
    minutes: int


@dataclass(frozen=True)
class Seconds:
    """What steps of jobs take, in seconds; the table says how each was measured."""

    gpu_start: float
    gpu_cell: float
    gpu_gate: float
    gpu_sample: float
    hosted_start: float
    cpu_cell: float
    cubin: float
    tool: float


@dataclass(frozen=True)
class Runner:
    """A kind of machine that GitHub chooses by labels. `gpu` and `target` are empty if it has no GPU."""

    name: str
    labels: Sequence[str]
    gpu: str = ""
    target: str = ""
    image: str = ""


@dataclass(frozen=True)
class Event:
    """What one kind of run includes; the table explains the fields."""

    name: str
    changed_only: bool
    runners: Sequence[Runner]
    targets: Sequence[str]
    sources: Sequence[str]
    dtypes: Sequence[str]
    full: bool
    tools: bool
    required: re.Pattern[str]


@dataclass(frozen=True)
class Files:
    """Files that no import leads to. `patterns`: as in a shell; `*` goes through folders too."""

    patterns: Sequence[str]
    stages: Sequence[str]


@dataclass(frozen=True)
class Matrix:
    """The whole table. `modules`: of each stage those whose imports it depends on; a compile depends on the kernel
    sources too, which register themselves in sources.toml."""

    limits: Limits
    seconds: Seconds
    runners: Sequence[Runner]
    tools: Mapping[str, Sequence[str]]
    events: Mapping[str, Event]
    modules: Mapping[str, Sequence[str]]
    files: Sequence[Files]

    @property
    def hosted(self) -> Runner:
        """The machine for jobs that need no GPU."""
        return next(runner for runner in self.runners if not runner.gpu)

    @classmethod
    def load(cls, path: Path = TABLE) -> Matrix:
        """Raises UsageError with file and line for whatever is wrong in the table."""
        table = read_table(path)
        check_keys(table, TOP, str(path))
        try:
            made = cls(
                Limits(**_checked(path, table, "limits", LIMITS)),
                Seconds(**_checked(path, table, "seconds", dict.fromkeys(Seconds.__dataclass_fields__, positive))),
                [_runner(path, row) for row in table["runner"]],
                table["tools"],
                {},
                {name: _modules(path, table["stage"], name) for name in STAGES},
                [_files(path, row) for row in table["files"]],
            )
        except KeyError as error:
            raise UsageError(f"{path}: it has no [stage.{error.args[0]}]") from error
        if sum(not runner.gpu for runner in made.runners) != 1:
            raise UsageError(f"{path}: one runner has no GPU, and the jobs that need none go there")
        by_name = {runner.name: runner for runner in made.runners}
        if unknown := [name for name in (*EVENTS, *table["event"]) if (name in EVENTS) != (name in table["event"])]:
            raise UsageError(f"{path}: the events are {', '.join(EVENTS)}; see {', '.join(unknown)}")
        events = {name: _event(path, name, table["event"], by_name) for name in EVENTS}
        return cls(made.limits, made.seconds, made.runners, made.tools, events, made.modules, made.files)


def _modules(path: Path, table: Mapping[str, Any], stage: str) -> list[str]:
    listed = _checked(path, table, stage, MODULES, "stage.")["modules"]
    return [*listed, *packages().values()] if stage == "compile" else listed


def _checked(
    path: Path, table: Mapping[str, Any], name: str, keys: Mapping[str, Check], prefix: str = ""
) -> dict[str, Any]:
    """A table in a table. Raises UsageError with its line."""
    check_keys(table[name], keys, f"{place(path, header(prefix + name))}: [{prefix}{name}]")
    return table[name]


def _runner(path: Path, row: Mapping[str, Any]) -> Runner:
    where = f"{place(path, header('[runner]'), repr(row.get('name', ''))[1:-1])}: a runner"
    check_keys(row, RUNNER, where, optional=("gpu", "target", "image"))
    if ("gpu" in row) != ("target" in row):
        raise UsageError(f"{where}: {row['name']} has either a gpu and a target, or neither")
    if "target" in row and row["target"] not in targets():
        raise UsageError(f"{where}: {row['name']}: no target {row['target']}", hint=f"one of {', '.join(targets())}")
    return Runner(**row)


def _files(path: Path, row: Mapping[str, Any]) -> Files:
    where = f"{place(path, header('[files]'))}: files"
    check_keys(row, {"patterns": texts, "stages": texts}, where)
    if unknown := [stage for stage in row["stages"] if stage not in STAGES]:
        raise UsageError(f"{where}: no stage {', '.join(unknown)}", hint=f"one of {', '.join(STAGES)}")
    return Files(**row)


def _event(path: Path, name: str, table: Mapping[str, Any], runners: Mapping[str, Runner]) -> Event:
    row = _checked(path, table, name, EVENT, "event.")
    where = f"{place(path, header(f'event.{name}'))}: [event.{name}]"
    known = {"runners": [r.name for r in runners.values() if r.gpu], "sources": packages(), "dtypes": DTYPES}
    for key, names in known.items():
        if unknown := [each for each in row[key] if each not in names]:
            raise UsageError(f"{where}: {key}: unknown {', '.join(unknown)}", hint=f"one of {', '.join(names)}")
    try:
        required = re.compile(row["required"])
    except re.error as error:
        raise UsageError(f"{where}: required is not a regular expression: {error}") from error
    wanted = [target.name for target in targets().values() if row["targets"] == "all" or target.default]
    wanted += [t for t in dict.fromkeys(runners[r].target for r in row["runners"]) if t not in wanted]
    return Event(
        name, row["changed_only"], [runners[each] for each in row["runners"]], wanted, row["sources"], row["dtypes"],
        row["shapes"] == "full", row["tools"], required,
    )  # fmt: skip
