"""Measures how long compiling takes: the default matrix with an empty and a full cache, and assembling each kernel."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from toolchain import knobs
from toolchain.bundles.bundle import Compiled
from toolchain.caching.cache import Cache
from toolchain.compiling import pipeline
from toolchain.compiling.stages import STAGES
from toolchain.contract import targets
from toolchain.contract.sources import load_source, packages
from toolchain.errors import ToolchainError

from . import stats
from .measurement import Measurement


def compile_times(names: Sequence[str], repeats: int) -> tuple[list[Measurement], Sequence[Compiled]]:
    """Times of cold and warm compiles of all sources for these targets (none means the default ones). Each cold
    compile has an empty temporary cache. Also returns the compiled entries. Raises ToolchainError if a cell does not
    compile."""
    wanted = targets.select(names)
    entries = [(module, spec) for module in packages().values() for spec in load_source(module).entries()]
    cold: list[float] = []
    warm: list[float] = []
    compiled: Sequence[Compiled] = ()
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
            for times in (cold, warm):
                start = time.perf_counter()
                outcome = pipeline.compile_entries(entries, wanted, Cache(Path(folder)), jobs=knobs.jobs())
                times.append(time.perf_counter() - start)
                if outcome.failures:
                    raise ToolchainError(f"{outcome.failures[0].cell} does not compile: {outcome.failures[0].error}")
                compiled = outcome.compiled
    what = f"{len(entries)} entries, {len(wanted)} targets, {knobs.jobs()} jobs"
    return [
        Measurement.of(f"compile, empty cache: {what}", "s", cold),
        Measurement.of(f"compile, full cache: {what}", "s", warm),
    ], compiled


def assemble_times(compiled: Sequence[Compiled], target: str, repeats: int) -> Iterator[Measurement]:
    """Milliseconds that tileiras takes for each kernel of this target, one at a time. The first rows are the median and
    the slowest of all."""
    each: list[Measurement] = []
    for entry in (one for one in compiled if one.spec.runs_on(target)):
        times: list[float] = []
        for _ in range(repeats):
            start = time.perf_counter()
            STAGES[entry.artifact.form.kind].run(entry.artifact.payload, target)
            times.append(1e3 * (time.perf_counter() - start))
        name = f"assemble {entry.spec.source}/{entry.spec.symbol} {target}"
        each.append(Measurement.of(name, "ms", times, detail=True))
    medians = [one.median for one in each]
    yield Measurement(f"assemble for {target}, median of {len(each)} kernels", "ms", *stats.median(medians), len(each))
    slowest = max(each, key=lambda one: one.median)
    yield replace(slowest, name=f"slowest: {slowest.name}", detail=False)
    yield from each
