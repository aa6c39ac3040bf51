"""Compiles what a study launches to a bundle. It needs the compiler and no GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gpt.launches import DryExecutor
from toolchain import knobs
from toolchain.bundles import bundle
from toolchain.bundles.bundle import Compiled
from toolchain.caching.cache import Cache
from toolchain.compiling.pipeline import compile_entries, tools_used
from toolchain.contract.entry import EntrySpec
from toolchain.contract.sources import load_source, packages
from toolchain.contract.targets import select
from toolchain.errors import ToolchainError

SOURCE, TARGET, SMS = "mlir", "sm_90", 132


def entries() -> list[EntrySpec]:
    """All entries that the target has, in order of preference."""
    return [spec for spec in load_source(packages()[SOURCE]).entries() if spec.runs_on(TARGET)]


def launched_by(use: Callable[[Sequence[EntrySpec], DryExecutor], object]) -> list[EntrySpec]:
    """The entries that `use` launches on a device that runs nothing."""
    specs, executor = entries(), DryExecutor(TARGET, SMS)
    use(specs, executor)
    return [spec for spec in specs if (spec.source, spec.symbol) in executor.launched]


def write(
    folder: Path, specs: Sequence[EntrySpec], change: Callable[[Compiled], Compiled] = lambda compiled: compiled
) -> None:  # fmt: skip
    """A bundle of these entries. `change`: is applied to each one before it is written. Raises ToolchainError."""
    package, targets = packages()[SOURCE], select([TARGET])
    outcome = compile_entries([(package, spec) for spec in specs], targets, Cache.configured(), jobs=knobs.jobs())
    if outcome.failures:
        first = outcome.failures[0]
        raise ToolchainError(f"{folder}: {len(outcome.failures)} cells did not compile; {first.cell}: {first.error}")
    bundle.write(folder, [change(one) for one in outcome.compiled], tools_used(targets, ["tile-ir"]))
    print(
        f"{folder}: {len(outcome.compiled)} entries, {outcome.made} made, {outcome.cached} from the cache", flush=True
    )
