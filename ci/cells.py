"""Cells by name, and the commands that run one again: `tilestack reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from conformance.cases import CASES
from conformance.results.cell import CPU, Cell
from conformance.results.result import Results
from gpt.conformance.models import SUITES
from toolchain.contract.op import DTYPES
from toolchain.contract.sources import packages
from toolchain.contract.targets import targets
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

BUNDLE, REPORT = Path("build/reproduce/bundle"), Path("build/reproduce/report")


def parse(name: str) -> Cell:
    """The cell of that name. Raises UsageError that names the part that does not exist, and the nearest one that
    does."""
    parts = name.split("-")
    if len(parts) != 4:
        raise UsageError(f"{name!r} is not a cell", hint="a cell is OP-SOURCE-DTYPE-TARGET: gelu-mlir-bf16-sm_90")
    ops = list(dict.fromkeys([*(case.op for case in CASES), *SUITES]))
    known = {"op": ops, "source": list(packages()), "dtype": list(DTYPES), "target": [*targets(), CPU]}
    for (what, names), part in zip(known.items(), parts, strict=True):
        if part not in names:
            near = get_close_matches(part, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(names)}"
            raise UsageError(f"{name}: no {what} {part!r}", hint=hint)
    return Cell(*parts)


@dataclass(frozen=True)
class RerunOptions:
    """How to run cells again. `seed`: of the inputs. `full`: every case on the interpreter. `executor`: as
    `tilestack matrix run` takes it; None for the cell's own kind. `bundle`: one that is there; None compiles one."""

    seed: int = 1
    full: bool = False
    executor: str | None = None
    bundle: Path | None = None
    container: bool = False

    def commands(self, cells: Sequence[Cell]) -> list[list[str]]:
        """The commands, in order, that compile and run some cells of one source, dtype and target."""
        cell, ops = cells[0], [word for cell in cells for word in ("--op", cell.op)]
        only = ["--source", cell.source, "--dtype", cell.dtype]
        made = self.bundle or BUNDLE
        python = _python()
        commands: list[list[str]] = []
        if self.bundle is None:
            target = ["--no-targets"] if cell.target == CPU else ["--target", cell.target]
            words = [*target, *only, *ops, "--force", "--output", str(made)]
            commands.append([python, "-m", "tilestack", "compile", *words])
        module = ["toolchain.native.gpu"] if self.container else ["tilestack", "matrix", "run"]
        executor = self.executor or (CPU if cell.target == CPU else "cuda")
        options = [] if self.container else ["--executor", executor]
        full = ["--full"] if self.full and cell.target == CPU else []
        run = [python, "-m", *module, "--bundle", str(made), "--report", str(REPORT), *options, *only]
        return [*commands, [*run, *ops, "--seed", str(self.seed), *full]]


def failed(path: Path) -> tuple[list[Cell], RerunOptions]:
    """The cells of a results.json that failed, each once, and how to run them again. Raises UsageError for a file that
    is not one, and for a run in which nothing failed."""
    results = Results.load(path)
    names = dict.fromkeys(row.cell for row in results.rows if row.status in ("failed", "error"))
    if not names:
        raise UsageError(f"{path}: nothing failed in it: {results.summary()}", hint="name a cell instead")
    full = results.origin is not None and "--full" in results.origin.command
    return [parse(name) for name in names], RerunOptions(int(results.environment.get("seed", "1")), full)


def _python() -> str:
    """This Python, as short as it can be typed from the checkout."""
    here = Path(sys.executable)
    return str(here.relative_to(ROOT)) if here.is_relative_to(ROOT) else "python3"


def grouped(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells of one source, dtype and target together, in the order in which they first come."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.source, cell.dtype, cell.target), []).append(cell)
    return list(groups.values())
