"""The whole conformance matrix of a bundle, on one or more executors."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Protocol

import numpy as np

from toolchain.bundle import Bundle
from toolchain.entry import DTYPES, ops
from toolchain.errors import UsageError
from toolchain.native.tools import NativeTools
from toolchain.runtime import Executor, open_executor

from .cases import CASES
from .native import native_rows
from .result import Results, Row
from .run import run_ops


class Suite(Protocol):
    """Cells of more than one op, such as a model's forward pass. The caller brings them: conformance knows no model."""

    def __call__(
        self, bundle: Bundle, executor: Executor, *, sources: Sequence[str], dtypes: Sequence[str], seed: int
    ) -> Iterator[Row]: ...


NO_SUITES: Mapping[str, Suite] = MappingProxyType({})


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
    progress: Callable[[Row], object] = id,  # told each row
) -> Results:
    """Run the chosen cells (all of them where nothing is chosen) and return every row with the environment.

    `suites`: cells beside the ops', by the name they are chosen by.
    `native`: the open C++ tools to compare with, or in words why there are none; None leaves these cells out.
    Raises UsageError for a source, dtype or op that there is not.
    """
    use_sources = chosen(sources, bundle.sources, "source in this bundle")
    use_dtypes = chosen(dtypes, DTYPES, "dtype")
    use_names = chosen(selected, [*ops(), *suites], "op")
    started = time.perf_counter()
    rows: list[Row] = []
    for executor in executors:
        for row in _cells(bundle, executor, use_sources, use_dtypes, use_names, suites, seed):
            progress(row)
            rows.append(row)
    if native is not None:
        cases = [case for case in CASES if case.op in use_names]
        interpreter = partial(open_executor, "cpu")
        chosen_ones = native_rows(bundle, native, interpreter, cases, sources=use_sources, dtypes=use_dtypes, seed=seed)
        for row in chosen_ones:
            progress(row)
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


def _cells(
    bundle: Bundle,
    executor: Executor,
    sources: Sequence[str],
    dtypes: Sequence[str],
    selected: Sequence[str],
    suites: Mapping[str, Suite],
    seed: int,
) -> Iterator[Row]:
    cases = [case for case in CASES if case.op in selected]
    yield from run_ops(bundle, executor, cases, sources=sources, dtypes=dtypes, seed=seed)
    for name, suite in suites.items():
        if name in selected:
            yield from suite(bundle, executor, sources=sources, dtypes=dtypes, seed=seed)
