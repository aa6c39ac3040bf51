"""The matrix as jobs that several processes run side by side. A job is given a bundle and an executor, and yields rows.

A job is one case in all dtypes whose inputs are the same, so that its reference is computed once. On a GPU the
processes take turns: one launches and times while the others compute references. Several GPUs share the jobs out: each
process has one of them. Each row goes to the journal as its cell ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from toolchain.bundles.bundle import Bundle
from toolchain.errors import ConformanceError, DeviceError
from toolchain.knobs import kept_memory, one_numpy_thread
from toolchain.runtime import Executor
from toolchain.runtime.executor import Loaded

from ..results.filters import EVERYTHING, Filter
from ..results.result import CellResult
from .journal import Journal
from .retries import DeviceLost, declared

STOPS = (signal.SIGINT, signal.SIGTERM)  # what ends a run from outside


@dataclass(frozen=True)
class JobContext:
    """Where a job runs. `gate` is a lock held while the device works, so that a time measures one process alone.
    `filter`: which rows to make."""

    bundle: Bundle
    executor: Executor
    sources: Sequence[str]
    seed: int
    gate: AbstractContextManager[Any]
    filter: Filter = EVERYTHING


@dataclass(frozen=True)
class Job:
    """Some rows of the matrix, all of one op. `cost`: about how long it takes, in any unit. `rows` must be picklable.
    `shape` and `dtypes` describe the job in the report if it did not run."""

    cost: float
    rows: Callable[[JobContext], Iterator[CellResult]]
    op: str
    shape: str
    dtypes: Sequence[str]


@runtime_checkable
class Ahead(Protocol):
    """Rows of which something can be computed without a device."""

    def ahead(self, seed: int) -> None:
        """Computes it, for the call that follows."""


Opener = Callable[[], Executor]  # picklable


@dataclass(frozen=True)
class WorkerSetup:
    """The bundle and the executor that a process opens. `openers`: one for each device; the processes take them in
    turns. `name`: of these executors in the journal. `silent_s`: if no job ends for so many seconds, the processes are
    ended; None waits for ever. `short`: how many processes take the shortest jobs first, all others the longest."""

    bundle: Path
    openers: Sequence[Opener]
    sources: Sequence[str]
    seed: int
    journal: Journal
    name: str
    silent_s: float | None = None
    filter: Filter = EVERYTHING
    short: int = 0


def run_here(
    jobs: Mapping[int, Job], site: JobContext, journal: Journal, name: str = ""
) -> Generator[tuple[int, list[CellResult]]]:
    """Run the jobs in their order. Yields the number and the rows of each. `name`: in the journal, by default the
    executor's. Raises DeviceLost."""
    site.executor.warm_up()
    for number, job in jobs.items():
        with _lost([number]):
            rows = _written(job, site, journal, (name or site.executor.name, number))
        yield number, rows


def get_ready(modules: Collection[str]) -> None:
    """Starts the process that those of `run_in_processes` are forked from, and does not wait for it. It imports the
    modules, and has no GPU, whose driver would not survive a fork. A second call does nothing."""
    resource_tracker.ensure_running()  # the first time it lets signals in that were held back
    with one_numpy_thread(), kept_memory(), _held_back():
        multiprocessing.set_forkserver_preload(sorted(modules))
        forkserver.ensure_running()


def run_in_processes(
    jobs: Mapping[int, Job], plan: WorkerSetup, processes: int
) -> Generator[tuple[int, list[CellResult]]]:
    """Run the jobs in processes. Yields the number and the rows of each as it ends.

    The processes are gone when this ends, in whatever way. Raises ConformanceError if one ends without an answer, and
    DeviceLost after an error of the machine.
    """
    get_ready({type(job.rows).__module__ for job in jobs.values()})
    context = multiprocessing.get_context("forkserver")
    others = set(multiprocessing.active_children())
    places = [_Place(opener, context.Lock(), context.Lock()) for opener in plan.openers]
    pool = ProcessPoolExecutor(processes, context, _begin, (plan, places, context.Value("i", 0)))
    try:
        yield from _in_turns(pool, jobs, processes, plan)
    except BrokenProcessPool as error:
        raise ConformanceError(
            "a process of the matrix ended without an answer: killed, or out of memory",
            hint="tilestack matrix run --jobs 1 runs all cells in one process",
        ) from error
    finally:
        with _held_back():
            ours = set(multiprocessing.active_children()) - others
            for process in ours:
                process.kill()
            for process in ours:  # a driver takes some time to give up a context
                process.join()
            pool.shutdown(cancel_futures=True)  # waits for the pool's thread, whose end Python's exit must not meet


def _in_turns(
    pool: ProcessPoolExecutor, jobs: Mapping[int, Job], processes: int, plan: WorkerSetup
) -> Generator[tuple[int, list[CellResult]]]:
    """The longest jobs first, which are references nearly alone. Meanwhile a few processes take the shortest, so that
    no GPU is idle while all compute references, or has all of them waiting for it in the end. A process that gets no
    more jobs gives up its GPU while the others work, for the driver does that for one process after the other."""
    waiting = deque(sorted(jobs, key=lambda number: -jobs[number].cost))
    running: dict[Future[list[CellResult]], tuple[int, bool]] = {}

    def start(*, short: bool) -> None:
        if waiting:
            number = waiting.pop() if short else waiting.popleft()
            running[pool.submit(_run, number, jobs[number])] = number, short

    for turn in range(processes):
        start(short=turn >= processes - plan.short)
    while running:
        done, _ = wait(running, timeout=plan.silent_s, return_when=FIRST_COMPLETED)
        if not done:
            raise DeviceLost([number for number, _ in running.values()], f"no job ended in {plan.silent_s:g} s")
        for future in done:
            number, short = running.pop(future)
            if not waiting:
                pool.submit(_leave)
            start(short=short)
            with _lost([number]):
                rows = future.result()
            yield number, rows


@contextmanager
def _lost(numbers: Sequence[int]) -> Generator[None]:
    """Raises DeviceLost for a declared error of the machine."""
    try:
        yield
    except DeviceError as error:
        if why := declared(error):
            raise DeviceLost(numbers, f"{error.args[0]}: {why}") from error
        raise


@contextmanager
def _held_back() -> Generator[None]:
    """STOPS that come inside the block take effect behind it. A process that is started inside holds them back for
    good: a started process inherits its parent's mask."""
    caught: list[int] = []
    handlers: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():  # nobody else may set handlers, or hears of signals
        # The mask alone does not do: any thread of numpy's without it could take the signal, and Python then raises in
        # this one.
        handlers = {stop: signal.signal(stop, lambda number, _: caught.append(number)) for stop in STOPS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for stop, handler in handlers.items():
            signal.signal(stop, handler)
        for number in caught[:1]:
            signal.raise_signal(number)


@dataclass(frozen=True)
class _Place:
    """A device of some processes. `opening`: held while one of them opens it, because all that did so at once would be
    ready with the last. `gate`: see JobContext."""

    opener: Opener
    opening: AbstractContextManager[Any]
    gate: AbstractContextManager[Any]


@dataclass(frozen=True)
class _Here:
    """What this process was started with, and has opened."""

    site: JobContext
    journal: Journal
    name: str


_here = threading.local()


def _begin(plan: WorkerSetup, places: Sequence[_Place], begun: Any) -> None:
    """`begun`: how many processes have come here before."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    with begun.get_lock():
        _here.plan, _here.place = plan, places[begun.value % len(places)]
        begun.value += 1


def _open(plan: WorkerSetup, place: _Place) -> _Here:
    with place.opening:
        executor = place.opener()
    executor.warm_up()
    gate = nullcontext() if executor.kind == "cpu" else place.gate
    site = JobContext(Bundle.load(plan.bundle), executor, plan.sources, plan.seed, gate, plan.filter)
    return _Here(site, plan.journal, plan.name)


def _leave_with_parent() -> None:
    """A parent that was killed cannot end its processes: they would wait for its next job for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(number: int, job: Job) -> list[CellResult]:
    """A process opens its device when its first job needs it: one with long references lets the others go first."""
    if not hasattr(_here, "opened"):
        if _here.plan.short and isinstance(job.rows, Ahead):  # a CPU leaves out what is too slow for it
            job.rows.ahead(_here.plan.seed)
        _here.opened = _open(_here.plan, _here.place)
    opened: _Here = _here.opened
    return _written(job, opened.site, opened.journal, (opened.name, number))


def _leave() -> None:
    """Gives up the device, and waits for the end of the run: each process takes one such call."""
    if opened := getattr(_here, "opened", None):
        opened.site.executor.close()
    threading.Event().wait()


def _written(job: Job, site: JobContext, journal: Journal, key: tuple[str, int]) -> list[CellResult]:
    """A job's rows, each with the entries that it launched, and in the journal before the next is computed."""
    rows: list[CellResult] = []
    known: set[Loaded] = set()
    ran = site.executor.ran
    ran.clear()
    journal.begin(key)
    for found in job.rows(site):
        if not site.filter.takes(found.cell, found.shape):
            continue
        row = replace(found, entries=tuple(sorted({loaded.symbol for loaded in ran})))
        journal.ran(sorted(ran - known))
        journal.add(key, row)
        rows.append(row)
        known |= ran
        ran.clear()
    journal.end(key)
    return rows
