"""The whole conformance matrix of a bundle, on one or more executors."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType
from typing import Protocol

import numpy as np

from toolchain.bundle import Bundle
from toolchain.entry import DTYPES, ops
from toolchain.errors import UsageError
from toolchain.native.tools import NativeTools
from toolchain.runtime import Executor, open_executor

from .cases import CASES, Case
from .jobs import Job, Plan, Site, run_here, run_in_processes
from .native import native_rows
from .result import Results, Row
from .run import OpRows, same_inputs
from .smallest import Wanted, cost, smallest


class Suite(Protocol):
    """Jobs of more than one op, such as a model's forward pass. The caller brings them: conformance knows no model."""

    def __call__(self, dtypes: Sequence[str]) -> Sequence[Job]: ...


NO_SUITES: Mapping[str, Suite] = MappingProxyType({})


FEW = 12  # jobs: fewer take no longer than starting processes does


def nobody(*_: object) -> None:
    """Progress that nobody looks at."""


def chosen(wanted: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    """The wanted ones of `known`, all if none is named. Raises UsageError for one that is unknown."""
    if unknown := [name for name in wanted if name not in known]:
        raise UsageError(f"no {what} {', '.join(unknown)}", hint=f"one of {', '.join(known)}")
    return [name for name in known if name in wanted or not wanted]


def run_matrix(
    bundle: Bundle,
    executors: Sequence[Executor],
    *,
    sources: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    selected: Sequence[str] = (),
    suites: Mapping[str, Suite] = NO_SUITES,
    seed: int = 1,
    native: NativeTools | str | None = None,
    full: bool = True,
    processes: int = 1,
    progress: Callable[[Row, int, int], object] = nobody,
) -> Results:
    """Run the chosen cells (all of them where nothing is chosen) and return every row with the environment.

    `suites`: cells beside the ops', by the name they are chosen by.
    `native`: the open C++ tools to compare with, or in words why there are none; None leaves these cells out.
    `full`: whether the interpreter runs every case, or for each entry the smallest that can fail it.
    `progress`: told each row, and how many of all jobs have ended.
    Raises UsageError for a source, dtype or op that there is not.
    """
    use_sources = chosen(sources, bundle.sources, "source in this bundle")
    use_dtypes = chosen(dtypes, DTYPES, "dtype")
    use_names = chosen(selected, [*ops(), *suites], "op")
    cases = [case for case in CASES if case.op in use_names]
    started = time.perf_counter()
    rows: list[Row] = []
    for executor in executors:
        small = executor.kind == "cpu" and not full
        jobs = op_jobs(cases, use_dtypes, smallest(bundle, executor, cases, use_sources) if small else None)
        jobs += [job for name, suite in suites.items() if name in use_names for job in suite(use_dtypes)]
        found: list[tuple[int, Row]] = []
        ended: set[int] = set()
        for number, row in _run(jobs, bundle, executor, use_sources, seed, processes):
            ended.add(number)
            found.append((number, row))
            progress(row, len(ended), len(jobs))
        rows += [row for _, row in sorted(found, key=lambda pair: pair[0])]
    if native is not None:
        interpreter = partial(open_executor, "cpu")
        chosen_ones = native_rows(bundle, native, interpreter, cases, sources=use_sources, dtypes=use_dtypes, seed=seed)
        for row in chosen_ones:
            progress(row, 0, 0)
            rows.append(row)
    environment = {
        "executors": ", ".join(executor.name for executor in executors),
        "sources": ", ".join(use_sources),
        "seed": str(seed),
        "seconds": f"{time.perf_counter() - started:.1f}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.platform(),
        **{name: f"{tool['version']} sha256 {tool['sha256'][:16]}" for name, tool in bundle.tools.items()},
    }
    return Results(environment, rows)


def op_jobs(cases: Sequence[Case], dtypes: Sequence[str], wanted: Wanted | None) -> list[Job]:
    """A job for each case and group of dtypes with the same inputs; of the `wanted` ones alone, if there are such."""
    jobs: list[Job] = []
    for number, case in enumerate(cases):
        for group in same_inputs(dtype for dtype in case.dtypes() if dtype in dtypes):
            only = None
            if wanted is not None:
                only = {
                    (d, source): symbols for (n, d, source), symbols in wanted.items() if n == number and d in group
                }
            if only or wanted is None:
                jobs.append(Job(cost(case), OpRows(case, group, only)))
    return jobs


def _run(
    jobs: Sequence[Job], bundle: Bundle, executor: Executor, sources: Sequence[str], seed: int, processes: int
) -> Iterator[tuple[int, Row]]:
    if processes == 1 or len(jobs) < FEW:
        return run_here(jobs, Site(bundle, executor, sources, seed, nullcontext()))
    name = "cpu" if executor.kind == "cpu" else f"cuda:{executor.device[1]}"
    return run_in_processes(jobs, Plan(bundle.root, name, sources, seed), min(processes, len(jobs)))
