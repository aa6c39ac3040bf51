"""What of a winner was not measured: its row gives entries for other sizes, other dtypes and the other source too, and
what the compiler makes of those may be worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.cache import Cache
from toolchain.cubin import Usage, inspect_all
from toolchain.entries import TunedRow
from toolchain.pipeline import Progress, compile_entries, silent
from toolchain.targets import Target


@dataclass(frozen=True)
class Faults:
    """Compiles rows for one target. `modules`: a source's package by the source's name."""

    modules: Mapping[str, str]
    target: Target
    cache: Cache
    jobs: int
    progress: Progress = silent

    def __call__(self, row: Mapping[str, Any]) -> str:
        """Why one of the entries that a row of entries/<target>.toml gives is slower than it says, or nothing: it does
        not compile, spills registers, or its products wait for one another. Raises ToolchainError without a compiler.
        """
        entries = [
            (self.modules[source], spec)
            for source in row["sources"]
            for spec in TunedRow(Path("new"), 1, self.target.name, row).entries(source)
        ]
        outcome = compile_entries(entries, [self.target], self.cache, jobs=self.jobs, progress=self.progress)
        if outcome.failures:
            return f"{outcome.failures[0].cell} does not compile: {outcome.failures[0].error}"
        cubins = [made.cubins[self.target.name] for made in outcome.compiled]
        for made, usages in zip(outcome.compiled, inspect_all(cubins, self.cache, self.jobs), strict=True):
            for usage in usages:
                if why := _fault(usage):
                    return f"{made.spec.source}/{usage.symbol} {why}"
        return ""


def _fault(usage: Usage) -> str:
    if usage.serialised:
        return "is serialised: its products wait for one another"
    return f"spills {usage.spills} times to memory" if usage.spills else ""
