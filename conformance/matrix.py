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
    """Jobs that run more than one op, such as a model's forward pass. The caller passes them in, because conformance
    must not import a model."""

    def __call__(self, dtypes: Sequence[str]) -> Sequence[Job]: ...


NO_SUITES: Mapping[str, Suite] = MappingProxyType({})


FEW = 12  # jobs: with fewer, starting processes would cost more than it saves


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
    """Run the chosen cells (all cells if nothing is chosen) and return every row with the environment.

    `suites`: further cells beside those of the ops, by the name that selects them.
    `native`: the open C++ tools to compare with, or a text that says why there are none; None leaves these cells out.
    `full`: the interpreter runs every case; otherwise only the cases that `smallest` picks for each entry.
    `progress`: called with each row, the number of jobs that have ended, and the number of all jobs.
    Raises UsageError for an unknown source, dtype or op.
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
    """A job for each case and each group of dtypes with the same inputs. `wanted` limits them; None makes all jobs."""
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
