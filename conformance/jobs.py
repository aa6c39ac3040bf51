"""The matrix as jobs that several processes run side by side. A job is given a bundle and an executor, and yields rows.

A job is one case in all dtypes whose inputs are the same, so that its reference is computed once. On a GPU the
processes take turns: one launches and times while the others compute references.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.bundle import Bundle
from toolchain.errors import ConformanceError
from toolchain.knobs import one_numpy_thread
from toolchain.runtime import Executor, open_executor

from .result import Row


@dataclass(frozen=True)
class Site:
    """Where a job runs. `gate` is a lock held while the device works, so that a time measures one process alone."""

    bundle: Bundle
    executor: Executor
    sources: Sequence[str]
    seed: int
    gate: AbstractContextManager[Any]


@dataclass(frozen=True)
class Job:
    """Some rows of the matrix. `cost`: about how long it takes, in any unit. `rows` must be picklable."""

    cost: float
    rows: Callable[[Site], Iterator[Row]]


@dataclass(frozen=True)
class Plan:
    """The bundle and the executor (by name) that every process opens."""

    bundle: Path
    executor: str
    sources: Sequence[str]
    seed: int


def run_here(jobs: Sequence[Job], site: Site) -> Iterator[tuple[int, Row]]:
    """Run the jobs in their order. Yields each row with the number of its job."""
    for number, job in enumerate(jobs):
        for row in job.rows(site):
            yield number, row


def run_in_processes(jobs: Sequence[Job], plan: Plan, processes: int) -> Iterator[tuple[int, Row]]:
    """Run the jobs in processes, the longest first. Yields each row with the number of its job, as the jobs end.

    Raises ConformanceError if a process ends without an answer.
    """
    context = multiprocessing.get_context("spawn")  # a GPU's driver does not survive a fork
    pool = ProcessPoolExecutor(processes, context, _open, (plan, context.Lock()))
    try:
        with one_numpy_thread():
            order = sorted(range(len(jobs)), key=lambda number: -jobs[number].cost)
            numbers = {pool.submit(_run, jobs[number]): number for number in order}
        for future in as_completed(numbers):
            for row in future.result():
                yield numbers[future], row
    except BrokenProcessPool as error:
        raise ConformanceError(
            "a process of the matrix ended without an answer: killed, or out of memory",
            hint="tilestack matrix run --jobs 1 runs all cells in one process",
        ) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


_here = threading.local()  # the Site of this process


def _open(plan: Plan, gate: AbstractContextManager[Any]) -> None:
    signal.signal(signal.SIGINT, _leave)
    executor = open_executor(plan.executor)
    _here.site = Site(
        Bundle.load(plan.bundle), executor, plan.sources, plan.seed,
        nullcontext() if executor.kind == "cpu" else gate,
    )  # fmt: skip


def _leave(*_: object) -> None:
    """Leave without a message: Ctrl-C reaches every process, and the first one reports it."""
    os._exit(130)


def _run(job: Job) -> list[Row]:
    return list(job.rows(_here.site))
