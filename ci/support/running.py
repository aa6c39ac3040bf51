"""The run half, on a GPU: load, launch and check the entries of each bundle that the compile half wrote.

It needs what a GPU machine has: numpy and cuda-bindings.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from conformance.cases import CASES
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.run import Expected, attempt, check_op, references, upload
from conformance.ops.smallest import cost
from conformance.results.cell import Cell
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.errors import DeviceError, LaunchError, UsageError
from toolchain.runtime import Executor, Launcher, open_executor
from toolchain.runtime.smi import name_of, query

from .short import short
from .table import KERNELS, RunRow, Settings, Table

SEED = 1


@functools.cache
def inputs_of(number: int, dtype: str) -> Inputs:
    """The inputs of a case, by its number in CASES."""
    return make_inputs(CASES[number], dtype, SEED)


@functools.cache
def expected_of(number: int, dtype: str) -> Expected:
    return references(CASES[number], dtype, inputs_of(number, dtype))


def fitting(bundle: Bundle, entry: BundleEntry, executor: Executor, count: int) -> Iterator[int]:
    """The numbers of the cheapest cases for which a launch takes this entry, at most `count`."""
    spec, launcher = entry.spec, Launcher(bundle, entry.spec.source, executor)
    own = [n for n, case in enumerate(CASES) if case.op == spec.op and spec.dtype in case.dtypes()]
    for number in sorted(own, key=lambda n: cost(CASES[n])):
        case, inputs = CASES[number], inputs_of(number, spec.dtype)
        try:
            chosen = launcher.select(spec.op, spec.dtype, **upload(case, inputs, executor), **inputs.scalars)
        except LaunchError:  # the case is for entries that the table leaves out
            continue
        if chosen is entry:
            yield number
            count -= 1
        if not count:
            return


def loads(bundle: Bundle, entry: BundleEntry, executor: Executor, number: int) -> str:
    """Why an executor does not load the entry; empty if it does."""
    buffers = upload(CASES[number], inputs_of(number, entry.spec.dtype), executor)
    try:
        executor.prepare(bundle, entry, [buffers[p.name] for p in entry.spec.params if p.dims], (1, 1, 1))
    except DeviceError as error:
        return short(error)
    return ""


def check(bundle: Bundle, entry: BundleEntry, executor: Executor, cases: int) -> tuple[bool, bool, bool, int, str]:
    """Whether an entry loaded, ran and was right; the number of cases; and what was wrong."""
    spec = entry.spec
    chosen = list(fitting(bundle, entry, executor, cases))
    if not chosen:
        raise UsageError(f"no case fits {spec.symbol}", hint="take another entry in ci/support/support.toml")
    if why := loads(bundle, entry, executor, chosen[0]):
        return False, False, False, 0, why
    cell = Cell.on(spec.op, spec.source, spec.dtype, executor)
    rows = [
        attempt(
            cell, CASES[number].shape, check_op, CASES[number], spec.dtype, inputs_of(number, spec.dtype),
            functools.partial(expected_of, number, spec.dtype), Launcher(bundle, spec.source, executor), executor,
        )
        for number in chosen
    ]  # fmt: skip
    bad = next((row.detail.splitlines()[0] for row in rows if row.status != "passed"), "")
    ran = all(row.status in ("passed", "failed") for row in rows)
    return True, ran, all(row.status == "passed" for row in rows), len(rows), bad


def run_bundle(folder: Path, settings: Settings, which: str = "cuda") -> list[RunRow]:
    """A row for each source of one bundle. Each bundle has an executor of its own."""
    bundle = Bundle.load(folder)
    version, _, bytecode = folder.name.rpartition("-")
    rows: list[RunRow] = []
    executor = open_executor(which)
    gpu = executor.name.partition(" ")[2].rpartition(" ")[0]
    version_of_driver = driver() if gpu else ""
    try:
        for source in bundle.sources:
            found = [check(bundle, e, executor, settings.cases) for e in bundle.entries if e.spec.source == source]
            loaded, ran, right = (sum(bool(result[part]) for result in found) for part in range(3))
            why = "; ".join(dict.fromkeys(result[4] for result in found if result[4]))
            fits = sum(result[3] for result in found)
            rows.append(
                RunRow(
                    gpu, version_of_driver, executor.target or "", version, bytecode, source,
                    len(found), loaded, ran, right, fits, why,
                )
            )  # fmt: skip
    finally:
        executor.close()
    return rows


def driver() -> str:
    """The driver's version, such as 580.159.04; `unknown` without nvidia-smi."""
    return (query(["driver_version"], name_of(0)) or ["unknown"])[0]


def run_all(folder: Path, settings: Settings) -> Table:
    """The rows of all bundles in a folder. Raises UsageError if there are none."""
    bundles = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    if not bundles:
        raise UsageError(f"no bundles in {folder}", hint="python -m ci.support compile writes them")
    rows: Sequence[RunRow] = [row for path in bundles for row in run_bundle(path, settings)]
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    kernels = (folder / KERNELS).read_text().strip()
    return Table(kernels, {row.gpu: today for row in rows}, {}, [], rows)
