"""The whole conformance matrix of a bundle, on one or more executors. GPUs of one kind share its jobs out."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from toolchain import knobs
from toolchain.bundles.bundle import Bundle
from toolchain.command import Terminated
from toolchain.contract.op import DTYPES, ops
from toolchain.errors import UsageError
from toolchain.native.tools import NativeTools
from toolchain.runtime import Executor, open_executor

from .cases import CASES
from .cells import borrowed_by, sources_of
from .coverage import NO_SUITES, Suite, check_selected, lacking
from .jobs.jobs import Job, JobContext, Opener, WorkerSetup, run_here, run_in_processes
from .jobs.journal import Journal, Record, bundle_hash, check_same, code_hash
from .jobs.retries import Rows, retries, with_retries
from .native import Check, cut_off_native, native_checks
from .ops.smallest import op_jobs, smallest
from .results.cell import Cell
from .results.filters import EVERYTHING, Filter
from .results.origin import describe, ended
from .results.result import CellResult, Results, Status

FEW = 12  # jobs: with fewer, starting processes would cost more than it saves
PER_GPU = 12  # processes: more wait for their turn on the GPU, and each opens it for some 0.2 s, one after the other
SHORT = 3  # of these: they keep the GPU busy with short jobs while the others compute the references of long ones

FIRST = "the run ended with the first failure"
NATIVE_TOOLS = "native tools"  # the name of that part of a run
NATIVE = "native"  # the journal's name for what the C++ tools do


@dataclass(frozen=True)
class Share:
    """Executors that share the jobs of one matrix out: `name` stands for them in the journal."""

    executors: Sequence[Executor]

    @property
    def name(self) -> str:
        return ", ".join(executor.name for executor in self.executors)

    @property
    def first(self) -> Executor:
        """What they have in common is read from it."""
        return self.executors[0]


def shares(executors: Sequence[Executor], *, every: bool = False) -> list[Share]:
    """GPUs of one kind together; with `every` each executor alone, so that it runs all jobs."""
    kinds: dict[tuple[str, str | None, str], list[Executor]] = {}
    for number, executor in enumerate(executors):
        alone = str(number) if every else executor.name.split(" ", 1)[-1]
        kinds.setdefault((executor.kind, executor.target, alone), []).append(executor)
    return [Share(tuple(alike)) for alike in kinds.values()]


def opener(executor: Executor) -> Opener:
    """What opens the same device in another process."""
    return partial(open_executor, "cpu" if executor.kind == "cpu" else f"cuda:{executor.device[1]}")


def processes_for(executors: Sequence[Executor]) -> int:
    """How many processes a run has that is not told: one for each usable core, but not more than GPUs need."""
    if any(executor.kind == "cpu" for executor in executors):
        return knobs.jobs()
    return min(knobs.jobs(), PER_GPU * len(executors))


class Progress(Protocol):
    """Told the rows of a job that has ended, how much of the work is done, in any unit, and how many of how many jobs.
    These numbers are of one part of the run, an executor or the native tools; a call with nothing done begins one."""

    def __call__(
        self, rows: Sequence[CellResult], done: float, total: float, jobs: tuple[int, int], part: str, /
    ) -> object:
        raise NotImplementedError


def nobody(*_: object) -> None:
    """The default `progress`: shows nothing."""


def chosen(wanted: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    """The names in `wanted`, in the order of `known`; all of `known` if `wanted` is empty. Raises UsageError for an
    unknown name."""
    if unknown := [name for name in wanted if name not in known]:
        raise UsageError(f"no {what} {', '.join(unknown)}", hint=f"one of {', '.join(known)}")
    return [name for name in known if name in wanted or not wanted]


def run_matrix(
    bundle: Bundle,
    executors: Sequence[Executor],
    journal: Journal,
    *,
    sources: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    selected: Sequence[str] = (),
    suites: Mapping[str, Suite] = NO_SUITES,
    seed: int = 1,
    native: NativeTools | str | None = None,
    full: bool = True,
    processes: int = 1,
    resume: bool = False,
    wanted: Filter = EVERYTHING,
    exit_first: bool = False,
    command: Sequence[str] = (),
    progress: Progress = nobody,
    every_gpu: bool = False,
    left_out: str = "",
    opened_by: Callable[[Executor], Opener] = opener,
) -> Results:
    """Run the chosen cells (all cells if nothing is chosen) and return every row with the environment.

    `journal`: gets each row as its cell ends; the caller removes it. `resume`: jobs that have ended in it are not run
    again.
    `suites`: further cells beside those of the ops, by the name that selects them.
    `native`: the open C++ tools to compare with, or a text that says why there are none; None leaves these cells out.
    `full`: the interpreter runs every case; otherwise only the cases that `smallest` picks for each entry.
    `wanted`: which of the chosen cells, and of their shapes.
    `exit_first`: the run ends with the first job that has a failed row; cells that it did not get to are "not run".
    `command`: the words that started the run, for the results.
    `progress`: called with the rows of each job that has ended, and how much of the work is done.
    `every_gpu`: each executor runs every job. By default executors of one kind share them out, and each row names its
    own; they take at least a process each.
    `left_out`: which GPUs of the machine take no part and why, for the results.
    `opened_by`: what opens an executor's device in another process.
    A KeyboardInterrupt ends the run early: each cell without a result gets a "not run" row, and the results are
    `interrupted`.
    Raises UsageError for an unknown source, dtype or op, for a selection without cases, and if the journal is of
    another run; BundleError if the bundle has no entries of what was selected.
    """
    use_sources = chosen(sources, bundle.sources, "source in this bundle")
    use_dtypes = chosen(dtypes, DTYPES, "dtype")
    use_names = chosen(selected, [*ops(), *suites], "op")
    check_selected(bundle, selected, dtypes, suites)
    lacks = lacking(bundle, use_names, use_dtypes, suites)
    present = {entry.spec.op for entry in bundle.entries}
    cases = [case for case in CASES if case.op in use_names and case.op in present]
    run_dtypes = [d for d in use_dtypes if any(entry.spec.dtype == d for entry in bundle.entries)]
    started = time.perf_counter()
    parts = shares(executors, every=every_gpu)
    work = {part.name: {} for part in parts}
    for part in parts:
        executor = part.first
        small = executor.kind == "cpu" and not full
        picked = smallest(bundle, executor, cases, use_sources) if small else None
        jobs = op_jobs(cases, run_dtypes, picked, executor.kind, lacks.cells)
        for name, suite in suites.items():
            if name in use_names:
                jobs += suite.jobs([d for d in run_dtypes if (name, d) not in lacks.cells], executor.kind)
        work[part.name] = dict(enumerate(job for job in jobs if _may_run(job, executor, use_sources, wanted)))
    if not any(work.values()):
        where = ", ".join(executor.name for executor in executors)
        which = f" and is {wanted.words}" if wanted.words else ""
        what = ", ".join(selected) if selected else "what the bundle has"
        raise UsageError(f"no case of {what} in {', '.join(use_dtypes)}{which} runs on {where}")
    run = {
        "bundle": bundle_hash(bundle), "code": code_hash(), "executors": "; ".join(work),
        "sources": ", ".join(use_sources), "dtypes": ", ".join(use_dtypes), "ops": ", ".join(use_names),
        "seed": str(seed), "cases": "full" if full else "smallest",
        **({"filter": wanted.words} if wanted.words else {}),
    }  # fmt: skip
    origin = describe(bundle, executors, command)
    before = journal.read() if resume else None
    if before is not None:
        check_same(journal, before.run, run)
    journal.start(run, before)
    done = before.ended if before else frozenset[tuple[str, int]]()
    stopped, why = "", "interrupted"
    try:
        for part in parts:
            jobs = {n: job for n, job in work[part.name].items() if (part.name, n) not in done}
            site = JobContext(bundle, part.first, use_sources, seed, nullcontext(), wanted)
            openers = [opened_by(executor) for executor in part.executors]
            many = max(processes, len(openers))
            if not _run(jobs, site, part.name, openers, many, journal, progress, exit_first=exit_first):
                why = FIRST
                break
        if native is not None and (NATIVE, 0) not in done and why != FIRST:
            with native_checks(
                bundle, native, partial(open_executor, "cpu"), cases,
                sources=use_sources, dtypes=run_dtypes, seed=seed, wanted=wanted, full=full,
            ) as checks:  # fmt: skip
                _compare(checks, journal, wanted, progress)
    except KeyboardInterrupt as error:
        stopped = "SIGTERM" if isinstance(error, Terminated) else "SIGINT"
    record = _read(journal)
    rows = _all_rows(record, bundle, parts, work, use_sources, why)
    if native is not None and (NATIVE, 0) not in record.ended:
        rows += cut_off_native(
            bundle, cases, record.of((NATIVE, 0)), sources=use_sources, dtypes=use_dtypes, wanted=wanted, detail=why
        )
    rows = [row for row in rows if wanted.takes_cell(row.cell)]
    absent = [row for part in parts for row in lacks.rows(part.first, use_sources)]
    rows += [row for row in absent if wanted.takes(row.cell, row.shape)]
    environment = {
        **({"borrows": borrowed} if (borrowed := borrowed_by(use_sources)) else {}),
        **({"interrupted": stopped} if stopped else {}),
        **({"filter": wanted.words} if wanted.words else {}),
        **({"not run": lacks.words} if lacks.words else {}),
        **({"retries": again} if (again := _retries(record, work)) else {}),
        "executors": ", ".join(executor.name for executor in executors),
        **({"left out": left_out} if left_out else {}),
        "sources": ", ".join(use_sources),
        "seed": str(seed),
        "seconds": f"{time.perf_counter() - started:.1f}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.platform(),
        **{name: f"{tool['version']} sha256 {tool['sha256'][:16]}" for name, tool in bundle.tools.items()},
    }
    return Results(environment, rows, ended(origin, record.kernels))


def _read(journal: Journal) -> Record:
    record = journal.read()
    if record is None:
        raise UsageError(f"{journal.path} is gone: another run, or a person, removed it", hint="run it again")
    return record


def _retries(record: Record, work: Mapping[str, Mapping[int, Job]]) -> str:
    """Which jobs were tried again, and why."""
    lines = [
        f"{work[name][number].op} {work[name][number].shape}: {why}"
        for (name, number), reasons in record.retries.items() for why in reasons
    ]  # fmt: skip
    return f"{len(lines)}: {'; '.join(lines)}" if lines else ""


def _may_run(job: Job, executor: Executor, sources: Sequence[str], chosen: Filter) -> bool:
    """False for a job of which no row is to be run."""
    cells = (Cell.on(job.op, source, dtype, executor) for dtype in job.dtypes for source in sources)
    return any(chosen.may_take(cell.name, job.shape) for cell in cells)


def _all_rows(
    record: Record,
    bundle: Bundle,
    parts: Sequence[Share],
    work: Mapping[str, Mapping[int, Job]],
    sources: Sequence[str],
    why: str,
) -> list[CellResult]:
    """The rows of the journal in the order of the jobs, and those of jobs that were cut off, which say `why`. Such a
    job had no executor yet: its rows name the first."""
    rows: list[CellResult] = []
    for part in parts:
        for number, job in work[part.name].items():
            key = (part.name, number)
            rows += (replace(row, retries=len(record.retries.get(key, ()))) for row in record.of(key))
            if key not in record.ended:
                rows += cut_off(job, bundle, part.first, sources, record.of(key), detail=why)
    return [*rows, *record.of((NATIVE, 0))]


def cut_off(
    job: Job, bundle: Bundle, executor: Executor, sources: Sequence[str], found: Sequence[CellResult],
    status: Status = "not run", detail: str = "interrupted",
) -> list[CellResult]:  # fmt: skip
    """A row for each cell of a job that did not end. How many shapes the cell has is not known before it runs."""
    rows: list[CellResult] = []
    for dtype in job.dtypes:
        for source in sources_of(bundle, job.op, dtype, sources):
            began = any((row.source, row.dtype) == (source, dtype) for row in found)
            shape = f"{job.shape}, the rest" if began else job.shape
            rows.append(Cell.on(job.op, source, dtype, executor).row(shape, status=status, detail=detail))
    return rows


def _compare(checks: Sequence[Check], journal: Journal, wanted: Filter, progress: Progress) -> None:
    """Compare with the native tools."""
    total, done = sum(check.cost for check in checks), 0.0
    journal.begin((NATIVE, 0))
    progress([], done, total, (0, len(checks)), NATIVE_TOOLS)
    for number, check in enumerate(checks, 1):
        rows: list[CellResult] = []
        for row in check.rows():
            if wanted.takes(row.cell, row.shape):
                journal.add((NATIVE, 0), row)
                rows.append(row)
        done += check.cost
        progress(rows, done, total, (number, len(checks)), NATIVE_TOOLS)
    journal.end((NATIVE, 0))


def _run(
    jobs: Mapping[int, Job], site: JobContext, name: str, openers: Sequence[Opener], processes: int, journal: Journal,
    progress: Progress, *, exit_first: bool,
) -> bool:  # fmt: skip
    """False if the run ended with the first failure. Few jobs run here, on the first executor."""
    bundle, executor, sources, seed = site.bundle, site.executor, site.sources, site.seed
    silent_s = retries().silent_s if executor.kind != "cpu" else None
    short = min(SHORT * len(openers), processes // 2) if executor.kind != "cpu" else 0
    plan = WorkerSetup(bundle.root, openers, sources, seed, journal, name, silent_s, site.filter, short)

    def here(numbers: Collection[int]) -> Rows:
        return run_here({number: jobs[number] for number in numbers}, site, journal, name)

    def apart(numbers: Collection[int]) -> Rows:
        return run_in_processes({n: jobs[n] for n in numbers}, plan, min(processes, len(numbers)))

    def give_up(number: int, why: str) -> list[CellResult]:
        key = (name, number)
        record = _read(journal)
        rows = cut_off(jobs[number], bundle, executor, sources, record.of(key), status="error", detail=why)
        for row in rows:
            journal.add(key, row)
        journal.end(key)
        return rows

    first = here if processes == 1 or len(jobs) < FEW else apart
    rows = with_retries(
        jobs, first, apart, table=retries(), give_up=give_up,
        note=lambda number, why: journal.retry((name, number), why),
    )  # fmt: skip
    total, done = sum(job.cost for job in jobs.values()), 0.0
    progress([], done, total, (0, len(jobs)), name)
    with closing(rows):  # an interrupt ends the processes here, not when garbage is collected
        for ended, (number, found) in enumerate(rows, 1):
            done += jobs[number].cost
            progress(found, done, total, (ended, len(jobs)), name)
            if exit_first and any(row.status in ("failed", "error") for row in found):
                return False
    return True
