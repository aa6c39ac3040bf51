"""The first phase, on a machine with the compiler: compiles every variant, leaves out those that cannot be good, and
writes the others to a bundle. Needs no GPU.

It also checks a winner's row (`Faults`). The row gives entries for other sizes, other dtypes and the other source too.
These were not measured, and the compiler may have made worse code for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.bundles import bundle
from toolchain.bundles.bundle import Compiled
from toolchain.caching.cache import Cache
from toolchain.compiling.cubin import Usage, inspect_all
from toolchain.compiling.pipeline import Outcome, Progress, compile_entries, silent, tools_used
from toolchain.contract.entries import TunedRow, tuned_symbols
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.contract.sources import load_source
from toolchain.contract.targets import Target
from toolchain.errors import TilestackError, ToolchainError

from .catalogue import FILE, OWN, VARIANTS, Candidate, Catalogue, Contest, merged
from .spaces import Space
from .variants import Variant, variants
from .worker import told

COMPILER = "tileiras"  # tools whose change makes a tuned row stale
_HALF = ("f16", "bf16")


@dataclass
class Compiler:
    """Compiles for one target. `modules`: a source's package by the source's name."""

    modules: Mapping[str, str]
    target: Target
    cache: Cache
    jobs: int
    progress: Progress = silent

    def run(self, spaces: Sequence[Space], folder: Path) -> Catalogue:
        """Compile all variants of the spaces. Writes `variants.json` and two bundles to `folder`: one of the variants,
        one of the sources' own entries of the same ops. Raises ToolchainError if no variant is left."""
        for name in (VARIANTS, OWN):
            bundle.check_replaceable(folder / name)
        own = self._own(spaces)
        found = {source: [v for s in spaces for v in variants(s, source, self.target.name)] for source in self.modules}
        needing = {space.name: space.tensor_cores for space in spaces}
        made: list[Compiled] = []
        candidates: list[Candidate] = []
        for source, tried in found.items():
            failures: dict[str, str] = {}
            compiled = self._attempt(source, [variant.spec for variant in tried], failures)
            usages = self._inspect(compiled)
            made += compiled
            for variant in tried:
                symbol = variant.spec.symbol
                needs = needing[variant.space]
                candidates.append(_candidate(variant, usages.get(symbol), failures.get(symbol, ""), needs=needs))
        used = tools_used([self.target])
        catalogue = Catalogue(
            self.target.name,
            {COMPILER: used[COMPILER]["sha256"]},
            merged([contest for space in spaces for contest in _contests(space)]),
            tuple(candidates),
        )
        good = {(c.spec.source, c.spec.symbol) for c in candidates if c.status == "compiled"}
        (folder / FILE).unlink(missing_ok=True)  # written last: a folder that has this file is complete
        bundle.write(folder / VARIANTS, [c for c in made if (c.spec.source, c.spec.symbol) in good], used)
        bundle.write(folder / OWN, own, used)
        catalogue.save(folder)
        if not good:
            raise ToolchainError(
                f"no variant is left to measure: {catalogue.counts()}; the first: {candidates[0].why}",
                hint=f"see {folder}/variants.json",
            )
        return catalogue

    def _attempt(self, source: str, specs: Sequence[EntrySpec], failures: dict[str, str]) -> Sequence[Compiled]:
        """Compile entries. For those that fail, `failures` gets the reason by symbol."""
        try:
            outcome = self._pipeline([(self.modules[source], spec) for spec in specs])
        except TilestackError:  # a missing toolchain or a full disk, which is not the fault of the variants
            raise
        except Exception as error:  # noqa: BLE001 - of the exporter itself, for sizes that nobody tried before
            failures |= self._raising(source, specs) or {spec.symbol: told(error) for spec in specs}
            good = [(self.modules[source], spec) for spec in specs if spec.symbol not in failures]
            outcome = self._pipeline(good)
        for failure in outcome.failures:
            failures[failure.cell.rpartition("(")[2].rstrip(")")] = str(failure.error)
        return outcome.compiled

    def _pipeline(self, entries: Sequence[tuple[str, EntrySpec]]) -> Outcome:
        return compile_entries(entries, [self.target], self.cache, jobs=self.jobs, progress=self.progress)

    def _raising(self, source: str, specs: Sequence[EntrySpec]) -> dict[str, str]:
        """The entries whose export raises an exception that is not a TilestackError, each with the exception."""
        found: dict[str, str] = {}
        for spec in specs:
            try:
                load_source(self.modules[source]).artifact(spec)
            except TilestackError:
                continue  # the pipeline reports these
            except Exception as error:  # noqa: BLE001 - as above
                found[spec.symbol] = told(error)
        return found

    def _inspect(self, compiled: Sequence[Compiled]) -> dict[str, Usage]:
        """The usage of each variant by its symbol."""
        cubins = [made.cubins[self.target.name] for made in compiled]
        return {row.symbol: row for rows in inspect_all(cubins, self.cache, self.jobs) for row in rows}

    def _own(self, spaces: Sequence[Space]) -> Sequence[Compiled]:
        """The sources' own entries of the spaces' ops and dtypes, without the tuned ones. Raises ToolchainError if one
        does not compile, because variants are compared with it."""
        wanted = {(space.op, dtype) for space in spaces for dtype in space.dtypes}
        entries: list[tuple[str, EntrySpec]] = []
        for source, module in self.modules.items():
            tuned = tuned_symbols(source)
            own = (spec for spec in load_source(module).entries() if spec.symbol not in tuned)
            entries += [(module, spec) for spec in own if (spec.op, spec.dtype) in wanted]
        outcome = self._pipeline(entries)
        if outcome.failures:
            failure = outcome.failures[0]
            raise ToolchainError(
                f"{failure.cell} does not compile, but variants are compared with it: {failure.error}",
                hint="fix the source's own entries first: tilestack compile shows them all",
            )
        return outcome.compiled


def _candidate(variant: Variant, usage: Usage | None, failure: str, *, needs: bool) -> Candidate:
    """`needs`: see Space.tensor_cores."""
    spec = variant.spec
    if usage is None:
        return Candidate(variant.space, variant.classes, spec, "failed", failure)
    numbers = {"registers": usage.registers, "shared": usage.shared, "spills": usage.spills}
    why = _useless(spec, usage, needs=needs)
    return Candidate(variant.space, variant.classes, spec, "pruned" if why else "compiled", why, numbers)


def _useless(spec: EntrySpec, usage: Usage, *, needs: bool) -> str:
    """Why a kernel with this usage is not worth a measurement; "" if it is."""
    if usage.spills:
        return f"{usage.spills} spills to memory"
    if needs and ops()[spec.op].products and spec.dtype in _HALF and not usage.tensor_core:
        return "no tensor-core instruction"
    return ""


def _contests(space: Space) -> list[Contest]:
    return [
        Contest(space.op, dtype, c.name, c.where, c.shapes, c.cold) for dtype in space.dtypes for c in space.classes
    ]


def usages(
    modules: Mapping[str, str], target: Target, cache: Cache, jobs: int, entries: Sequence[EntrySpec]
) -> list[Usage | None]:
    """What each entry uses of the target's GPU; None for one that does not compile. `modules`: a source's package by
    its name. Raises ToolchainError without a compiler."""
    outcome = compile_entries([(modules[spec.source], spec) for spec in entries], [target], cache, jobs=jobs)
    cubins = [made.cubins[target.name] for made in outcome.compiled]
    found = {
        (made.spec.source, made.spec.symbol): next(row for row in rows if row.symbol == made.spec.symbol)
        for made, rows in zip(outcome.compiled, inspect_all(cubins, cache, jobs), strict=True)
    }
    return [found.get((spec.source, spec.symbol)) for spec in entries]


@dataclass(frozen=True)
class Faults:
    """Compiles rows for one target. `modules`: a source's package by the source's name."""

    modules: Mapping[str, str]
    target: Target
    cache: Cache
    jobs: int
    progress: Progress = silent

    def __call__(self, row: Mapping[str, Any]) -> str:
        """Say what is wrong with the entries that a row of entries/<target>.toml gives: one does not compile, spills
        registers, or its products wait for one another. "" if nothing is. Raises ToolchainError without a compiler."""
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
