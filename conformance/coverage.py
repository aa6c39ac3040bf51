"""What a bundle lacks of the matrix.

A bundle can be compiled of some ops or dtypes alone: its other cells are not run, and that is said once. If it has the
op and the dtype, but not together or not from one source, the cell is an error as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from toolchain.bundles.bundle import Bundle
from toolchain.contract.op import ops
from toolchain.errors import BundleError, UsageError
from toolchain.runtime import Executor

from .cases import CASES
from .cells import borrows_from
from .jobs.jobs import Job
from .results.cell import Cell
from .results.result import CellResult


@dataclass(frozen=True)
class Suite:
    """Jobs of more than one op, such as a model's forward pass. The caller brings them: conformance knows no model.
    `needs`: ops that each of the jobs launches."""

    jobs: Callable[[Sequence[str], str], Sequence[Job]]  # of some dtypes, on a kind of executor
    needs: Sequence[str] = ()


NO_SUITES: Mapping[str, Suite] = MappingProxyType({})


@dataclass(frozen=True)
class Lacking:
    """Cells that the bundle has no entries for: why, by op (or suite) and dtype. `words`: all of them in one line;
    empty if there are none."""

    cells: Mapping[tuple[str, str], str]
    words: str

    def rows(self, executor: Executor, sources: Sequence[str]) -> Iterator[CellResult]:
        for (op, dtype), why in self.cells.items():
            for source in sources:
                if borrows_from(source):  # it may never have had it
                    continue
                yield Cell.on(op, source, dtype, executor).row("every shape", status="not run", detail=why)


def lacking(bundle: Bundle, names: Sequence[str], dtypes: Sequence[str], suites: Mapping[str, Suite]) -> Lacking:
    """What the bundle lacks of the cells of these ops and suites in these dtypes."""
    have_ops = {entry.spec.op for entry in bundle.entries}
    have_dtypes = {entry.spec.dtype for entry in bundle.entries if ops()[entry.spec.op].typed}
    wanted = dict.fromkeys((case.op, dtype) for case in CASES for dtype in case.dtypes() if case.op in names)
    wanted |= dict.fromkeys((name, dtype) for name in suites if name in names for dtype in dtypes)
    cells: dict[tuple[str, str], str] = {}
    for op, dtype in wanted:
        needed = suites[op].needs if op in suites else (op,)
        if dtype not in dtypes:
            continue
        if missing := [each for each in needed if each not in have_ops]:
            cells[op, dtype] = f"the bundle has no entry of {', '.join(missing)}"
        elif dtype not in have_dtypes and (op in suites or ops()[op].typed):
            cells[op, dtype] = f"the bundle has no entry in {dtype}"
    no_ops = [name for name in dict.fromkeys(op for op, _ in cells) if name in ops() and name not in have_ops]
    no_dtypes = [dtype for dtype in dtypes if dtype not in have_dtypes]
    parts = [f"of {', '.join(no_ops)}"] * bool(no_ops) + [f"in {', '.join(no_dtypes)}"] * bool(no_dtypes)
    return Lacking(cells, f"the bundle has no entries {', and none '.join(parts)}" if cells and parts else "")


def check_selected(bundle: Bundle, selected: Sequence[str], dtypes: Sequence[str], suites: Mapping[str, Suite]) -> None:
    """Raises UsageError for an op without cases, and BundleError for a selected op, suite or dtype that the bundle has
    no entries of."""
    if without := [name for name in selected if name in ops() and all(case.op != name for case in CASES)]:
        raise UsageError(
            f"{', '.join(without)}: no cases, so nothing checks it",
            hint="add cases to its family in conformance/cases",
        )
    have_ops = {entry.spec.op for entry in bundle.entries}
    have_dtypes = {entry.spec.dtype for entry in bundle.entries}
    needed = [op for name in selected for op in (suites[name].needs if name in suites else (name,))]
    if missing := [op for op in dict.fromkeys(needed) if op not in have_ops]:
        raise BundleError(
            f"{bundle.root} has no entry of {', '.join(missing)}; it has {', '.join(sorted(have_ops)) or 'none'}",
            hint="compile a bundle with it, or select another --op",
        )
    if missing := [dtype for dtype in dtypes if dtype not in have_dtypes]:
        raise BundleError(
            f"{bundle.root} has no entry in {', '.join(missing)}; it has {', '.join(sorted(have_dtypes)) or 'none'}",
            hint="compile a bundle with it, or select another --dtype",
        )
