"""The jobs of an event: what is reached, split by machine and grouped to a sensible length."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from conformance.cases import CASES
from conformance.cells import borrows_from
from conformance.results.cell import CPU
from gpt.conformance.models import SUITES
from toolchain.contract.entries import entries_of
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import cell_name
from toolchain.errors import UsageError
from toolchain.pinned.pins import pins

from ..bench.request import Request
from ..matrix import STAGES, Event, Matrix, Runner
from .graph import EVERY, Reach, union

COMPILER = "nvidia-cuda-tileiras"  # the wheel of tileiras


@dataclass(frozen=True)
class Job:
    """One job, as GitHub's matrix gets it. `minutes`: estimated. `more`: the fields of its kind."""

    name: str
    runs_on: Sequence[str]
    minutes: float
    required: bool
    local: str
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        fields = {key: value for key, value in asdict(self).items() if key != "more"}
        timeout = 10 * math.ceil(max(3 * self.minutes, 15) / 10)
        return {**fields, "minutes": round(self.minutes, 1), "timeout": timeout, **self.more}


@dataclass(frozen=True)
class JobPlan:
    """All jobs of an event. `cells`: how many cells of the matrix run on GPUs. `why`: what the plan was made of, in
    words."""

    event: str
    base: str | None
    reaches: Sequence[Reach]
    full: bool
    compile: Sequence[Job]
    interpret: Sequence[Job]
    gpu: Sequence[Job]
    tools: Sequence[Job]
    cells: int
    bench: Sequence[Job] = ()
    why: str = ""

    @property
    def kinds(self) -> Mapping[str, Sequence[Job]]:
        return {
            "compile": self.compile, "interpret": self.interpret, "gpu": self.gpu, "tools": self.tools,
            "bench": self.bench,
        }  # fmt: skip

    def minutes(self, *kinds: str) -> float:
        return sum(job.minutes for kind in kinds for job in self.kinds[kind])

    def to_json(self) -> dict[str, Any]:
        return {
            "event": self.event, "base": self.base, "full": self.full, "why": self.why,
            "reasons": [{"path": r.path, "stages": [s for s in STAGES if s in r.stages], "why": r.why}
                        for r in self.reaches],
            "jobs": {kind: [job.to_json() for job in jobs] for kind, jobs in self.kinds.items()},
            "estimate": {
                "gpu_minutes": round(self.minutes("gpu", "bench"), 1),
                "hosted_minutes": round(self.minutes("compile", "interpret", "tools"), 1),
                "jobs": sum(map(len, self.kinds.values())), "cells": self.cells,
            },
        }  # fmt: skip


@dataclass(frozen=True)
class Cells:
    """Cells that one `tilestack matrix run` takes: these ops of these sources, in all dtypes of the event."""

    ops: Sequence[str]
    sources: Sequence[str]
    dtypes: Mapping[str, Sequence[str]]  # of each op

    @property
    def names(self) -> list[tuple[str, str, str]]:
        return [
            (op, source, dtype)
            for op in self.ops
            for source in self.sources
            for dtype in self.dtypes[op]
            if _has_cell(op, source, dtype)
        ]


def _has_cell(op: str, source: str, dtype: str) -> bool:
    """False for what a source borrows: see conformance/cells.py, which asks a bundle."""
    return not borrows_from(source) or (op if op not in SUITES else "", dtype) in _own(source)


@functools.cache
def _own(source: str) -> frozenset[tuple[str, str]]:
    """The ops and dtypes that a source has entries of; "" for any op."""
    specs = entries_of(source)
    return frozenset({*((spec.op, spec.dtype) for spec in specs), *(("", spec.dtype) for spec in specs)})


def plan(
    matrix: Matrix,
    event: Event,
    reaches: Sequence[Reach] | None,
    base: str | None = None,
    only: Sequence[str] = (),
    request: Request | None = None,
    why: str = "",
) -> JobPlan:
    """The jobs of an event. `reaches`: what the changed files reach; None runs everything, as does an event whose
    table says so. `only`: of all that these ops, for a run by hand. `request`: the benchmarks that a pull request asks
    for. `why`: what `reaches` was made of, in words. Raises UsageError for an op that there is not."""
    if unknown := [op for op in only if op not in {*SUITES, *(case.op for case in CASES)}]:
        raise UsageError(f"no op {', '.join(unknown)}", hint="tilestack matrix list shows them")
    full = reaches is None or not event.changed_only
    stages = frozenset(STAGES) if full else union(reaches or ())
    groups = _groups(event, None if full else reaches or ())
    if only:
        groups = [replace(group, ops=[op for op in group.ops if op in only]) for group in groups]
    everywhere = full or any(r.target == EVERY and r.stages for r in reaches or ())
    alone = {r.target for r in reaches or () if r.stages}
    reached = [t for t in event.targets if everywhere or t in alone]
    gpu, cells = _gpu(matrix, event, [r for r in event.runners if r.target in reached], stages, groups)
    bench = _bench(matrix, request) if request and event.changed_only else []
    needed = {job.more["target"] for job in (*gpu, *bench)}
    asked = {job.more["target"] for job in bench}
    wanted = [t for t in event.targets if t in asked or (t in reached and ("compile" in stages or t in needed))]
    wanted += sorted(asked - set(wanted))
    entries = [spec for source in event.sources for spec in entries_of(source)]
    made = JobPlan(
        event.name, base, list(reaches or ()), full,
        [_compile(matrix, event, target, entries, only) for target in wanted],
        _interpret(matrix, event, groups) if stages & {"interpret", "conformance", "model"} else [],
        gpu, _tools(matrix) if event.tools and not only else [], cells, bench, why,
    )  # fmt: skip
    for kind, jobs in made.kinds.items():
        if len(jobs) > matrix.limits.jobs:
            raise UsageError(
                f"{len(jobs)} {kind} jobs: GitHub takes {matrix.limits.jobs} in a matrix",
                hint="raise limits.minutes in ci/matrix.toml, or take fewer targets or tools",
            )
    return made


def _groups(event: Event, reaches: Sequence[Reach] | None) -> list[Cells]:
    """The cells that are reached, those of the same sources together. The model stands among the ops."""
    dtypes: dict[str, Sequence[str]] = {}
    for case in CASES:
        dtypes[case.op] = [d for d in event.dtypes if d in {*dtypes.get(case.op, ()), *case.dtypes()}]
    dtypes |= dict.fromkeys(SUITES, event.dtypes)
    if reaches is None:
        return [Cells(list(dtypes), event.sources, dtypes)]
    stages = union(reaches)
    wide = union(r for r in reaches if not r.narrow)
    sources: dict[str, set[str]] = {}
    for op in dtypes:
        whole = wide & ({"interpret", "model"} if op in SUITES else {"interpret", "conformance"})
        narrow = {s for r in reaches for s, ops in r.ops.items() if op in ops or (op in SUITES and "model" in stages)}
        if op in SUITES:  # whose other ops are borrowed
            narrow |= {s for s in event.sources if borrows_from(s) in narrow}
        if found := {s for s in event.sources if whole or s in narrow}:
            sources[op] = found
    by_sources: dict[tuple[str, ...], list[str]] = {}
    for op, found in sources.items():
        by_sources.setdefault(tuple(s for s in event.sources if s in found), []).append(op)
    return [Cells(ops, names, dtypes) for names, ops in by_sources.items()]


def _merged(groups: Sequence[Cells], seconds: float, start: float) -> Sequence[Cells]:
    """One group instead of several, if the cells that this adds take less than the starts of further jobs."""
    if len(groups) < 2:
        return groups
    ops = list(dict.fromkeys(op for group in groups for op in group.ops))
    sources = list(dict.fromkeys(source for group in groups for source in group.sources))
    one = Cells(ops, sources, groups[0].dtypes)
    more = len(one.names) - sum(len(group.names) for group in groups)
    return [one] if seconds * more <= start * (len(groups) - 1) else groups


def _split(groups: Sequence[Cells], seconds: float, start: float, limit: float) -> list[Cells]:
    """Groups of ops that take at most `limit` seconds each, unless one op alone takes longer."""
    parts: list[Cells] = []
    for group in _merged([group for group in groups if group.ops], seconds, start):
        ops: list[str] = []
        for op in group.ops:
            if ops and seconds * len(Cells([*ops, op], group.sources, group.dtypes).names) > limit:
                parts.append(Cells(ops, group.sources, group.dtypes))
                ops = []
            ops.append(op)
        parts += [Cells(ops, group.sources, group.dtypes)] if ops else []
    return parts


def _options(event: Event, cells: Cells, every: int) -> str:
    """Options of `tilestack matrix run` for these cells. `every`: how many ops there are with the model; all need no
    option."""
    words = [f"--source {s}" for s in cells.sources] if set(cells.sources) != set(event.sources) else []
    words += [f"--op {op}" for op in cells.ops] if len(cells.ops) < every else []
    return " ".join(words)


def _gpu(
    matrix: Matrix, event: Event, runners: Sequence[Runner], stages: frozenset[str], groups: Sequence[Cells]
) -> tuple[list[Job], int]:
    """Jobs on GPUs and the number of their cells."""
    on_gpu = [
        replace(group, ops=[op for op in group.ops if ("model" if op in SUITES else "conformance") in stages])
        for group in groups
    ]
    parts = _split(on_gpu, matrix.seconds.gpu_cell, matrix.seconds.gpu_start, 60 * matrix.limits.minutes)
    every = len({case.op for case in CASES} | set(SUITES))
    made: list[Job] = []
    cells = 0
    for runner in runners:
        bundle = f"bundle-{runner.target}"
        for number, part in enumerate(parts or [None] * ("gate" in stages)):
            gate = "gate" in stages and number == 0
            names = [cell_name(*name, runner.target) for name in part.names] if part else []
            cells += len(names)
            options = _options(event, part, every) if part else ""
            seconds = matrix.seconds.gpu_start + matrix.seconds.gpu_cell * len(names) + matrix.seconds.gpu_gate * gate
            check = "python3 -m tilestack matrix run --bundle build/bundle --executor cuda"
            local = [f"{check} {options}".rstrip()] * bool(part)
            local += ["python3 -m ci.gate run --bundle build/bundle --base build/before"] * gate
            what = {
                "runner": runner.name, "gpu": runner.gpu, "target": runner.target, "image": runner.image,
                "artifact": bundle, "number": number, "options": options, "check": bool(part), "gate": gate,
                "cells": len(names),
            }  # fmt: skip
            title = f"{runner.name} {number + 1}/{max(len(parts), 1)}"
            required = gate or any(event.required.search(name) for name in names)
            made.append(Job(title, runner.labels, seconds / 60, required, " && ".join(local), what))
    return made, cells


def _compile(matrix: Matrix, event: Event, target: str, every: Sequence[EntrySpec], only: Sequence[str]) -> Job:
    entries = [spec for spec in every if spec.runs_on(target) and (not set(only) - set(SUITES) or spec.op in only)]
    minutes = (matrix.seconds.hosted_start + matrix.seconds.cubin * len(entries)) / 60
    options = " ".join([f"--target {target}", *(f"--op {op}" for op in only)])
    what = {"target": target, "artifact": f"bundle-{target}", "options": options}
    local = f"nox -s bundles -- {options}"
    required = any(event.required.search(f"{s.cell}-{target}") for s in entries)
    return Job(f"compile {target}", matrix.hosted.labels, minutes, required, local, what)


def _interpret(matrix: Matrix, event: Event, groups: Sequence[Cells]) -> list[Job]:
    share = 1.0 if event.full else 0.2  # the smallest cases: 2 minutes of 12, on two cores
    parts = _split(groups, share * matrix.seconds.cpu_cell, matrix.seconds.hosted_start, 60 * matrix.limits.minutes)
    every = len({case.op for case in CASES} | set(SUITES))
    made: list[Job] = []
    for number, part in enumerate(parts):
        options = " ".join(filter(None, ["--executor cpu", "--full" * event.full, _options(event, part, every)]))
        seconds = matrix.seconds.hosted_start + share * matrix.seconds.cpu_cell * len(part.names)
        required = any(event.required.search(cell_name(*name, CPU)) for name in part.names)
        name = f"interpret {number + 1}/{len(parts)}"
        local = f"nox -s gpu_tests -- {options}"
        made.append(
            Job(name, matrix.hosted.labels, seconds / 60, required, local, {"number": number, "options": options})
        )
    return made


def _bench(matrix: Matrix, request: Request) -> list[Job]:
    """A job for each GPU. The estimate is for as many cases as the gate has."""
    minutes = (matrix.seconds.gpu_start + matrix.seconds.gpu_sample * request.samples) / 60
    local = "python3 -m ci.bench run --bundle build/bundle --base build/before"
    return [
        Job(f"bench {runner.name}", runner.labels, minutes, False, local, {
            "runner": runner.name, "gpu": runner.gpu, "target": runner.target, "image": runner.image,
            "artifact": f"bundle-{runner.target}",
        })
        for runner in matrix.runners if runner.name in request.gpus
    ]  # fmt: skip


def _tools(matrix: Matrix) -> list[Job]:
    pinned = pins().wheels[COMPILER]
    seconds = matrix.seconds.hosted_start + matrix.seconds.tool
    return [
        Job(
            f"tileiras {version}", matrix.hosted.labels, seconds / 60, version == pinned,
            f"nox -s support -- --tileiras {version}", {"tileiras": version},
        )
        for version in matrix.tools["tileiras"]
    ]  # fmt: skip
