"""What `compile` compiles where no target is named, and what it leaves out and why.

Everything is some thousands of compiler runs. Without a name the bundle holds what this machine can use or check: for
each GPU here its target's whole table, first; for the other default targets those portable entries that the shipped
model launches there; and the bytecode of every portable entry, which the interpreter runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.cells import borrows_from
from gpt.config import GPTConfig
from gpt.conformance.models import forward_cases
from gpt.launches import DryExecutor, continue_texts, forward_passes, launched
from gpt.model import GPT
from gpt.parallel import AnyGPT
from gpt.parameters.weights import Weights
from toolchain.contract.entries import committed
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import DTYPES, ops
from toolchain.contract.sources import best_of, load_source, packages
from toolchain.contract.targets import Target
from toolchain.errors import BundleError, LaunchError
from toolchain.runtime import Launcher

SMS = 132  # how many multiprocessors a target's GPU is assumed to have if there is none on this machine: an H200's
MORE = "--full compiles everything, --target SM everything for one target"
Entries = Sequence[tuple[str, EntrySpec]]


@dataclass(frozen=True)
class Selection:
    """What to compile: `entries`, and `cells`, the cubins of them by source, symbol and target (None: all that the
    entries name). `skipped`: in words, what was left out and how much of it."""

    entries: Entries
    cells: frozenset[tuple[str, str, str]] | None
    skipped: Mapping[str, int]

    def wants(self, spec: EntrySpec, target: Target) -> bool:
        return self.cells is None or (spec.source, spec.symbol, target.name) in self.cells


def everything(entries: Entries) -> Selection:
    """All entries, for all the targets that they name."""
    return Selection(entries, None, {})


def for_targets(entries: Entries, targets: Sequence[Target]) -> Selection:
    """The whole tables of some targets: entries for others alone are left out."""
    kept = [(package, spec) for package, spec in entries if any(spec.runs_on(target.name) for target in targets)]
    names = ", ".join(target.name for target in targets)
    return Selection(kept, None, _counted({f"entries for other targets than {names}": len(entries) - len(kept)}))


def by_default(entries: Entries, targets: Sequence[Target], own: Sequence[str]) -> Selection:
    """`own`: the targets of this machine's GPUs. The head of this module says what is compiled for these and others."""
    kept = [
        (package, spec)
        for package, spec in entries
        if not spec.targets or any(spec.runs_on(name) for name in own)
    ]  # fmt: skip
    portable = [spec for _, spec in kept if not spec.targets]
    shipped = shipped_launches(dict.fromkeys(package for package, _ in entries))
    cells: set[tuple[str, str, str]] = set()
    for target in targets:
        if target.name in own:
            cells |= {(s.source, s.symbol, target.name) for _, s in kept if s.runs_on(target.name)}
        else:
            cells |= {(source, symbol, target.name) for source, symbol in shipped}
    left_out: Counter[str] = Counter()
    for target in (target for target in targets if target.name not in own):
        cut = sum((spec.source, spec.symbol, target.name) not in cells for spec in portable)
        left_out[f"cubins for {target.name} of portable entries that the shipped model does not launch there"] += cut
    tables = sorted({name for _, spec in entries for name in spec.targets} - set(own))
    left_out[f"entries for {', '.join(tables)} alone, and no such GPU is here"] = len(entries) - len(kept)
    # Entries that --op, --dtype or --entries left out are compiled for no target, so their cells are dropped.
    known = {(spec.source, spec.symbol) for _, spec in kept}
    return Selection(kept, frozenset(cell for cell in cells if cell[:2] in known), _counted(left_out))


def shipped_launches(packages: Iterable[str]) -> set[tuple[str, str]]:
    """Source and symbol of the portable entries that the shipped model launches on a target whose own table is left
    out: the same on each."""
    (case,) = (case for case in forward_cases() if case.model == "shipped")
    found: set[tuple[str, str]] = set()
    for package in packages:
        # Not of `entries`: with some of them left out, a launch would take others.
        specs = [spec for spec in with_borrowed(package) if not spec.targets]
        for dtype in DTYPES:
            executor = DryExecutor(None, SMS)
            for use in (forward_passes(*case.sizes), continue_texts([len(case.prompt)], 60)):
                try:
                    launched(specs, case.config, case.weights(), dtype, executor, use)
                except (BundleError, LaunchError):  # a source without all of the model's ops: nothing to go by
                    found |= {(spec.source, spec.symbol) for spec in specs if spec.dtype == dtype}
            found |= executor.launched.keys()
    return found


def entries_used(
    source: str,
    target: str | None,
    sms: int,
    config: GPTConfig,
    tensors: Weights,
    dtype: str,
    uses: Iterable[Callable[[AnyGPT], object]],
    model: Callable[[GPTConfig, Weights, Launcher, str], AnyGPT] = GPT,
) -> list[EntrySpec]:
    """The entries of a source, and of those that it takes others from, that a model launches when it is used in these
    ways; see `gpt.launches`. `model`: makes it."""
    known = taken_by(source, target)
    portable = {(s.op, s.dtype) for s in known if not s.targets}
    # For the interpreter the portable ones, and those of ops that have no portable one: it needs no others.
    on_cpu = target is None
    unneeded = portable if on_cpu else set[tuple[str, str]]()
    specs = [s for s in known if s.runs_on(target) and (not s.targets or (s.op, s.dtype) not in unneeded)]
    uses = tuple(uses)
    while True:
        executor = DryExecutor(target, sms)
        for use in uses:
            launched(specs, config, tensors, dtype, executor, use, model, source)
        found = [spec for spec in specs if (spec.source, spec.symbol) in executor.launched]
        # A bundle has the policies of the tables that its entries come from: with fewer, a model plans otherwise.
        tables = {name for spec in found for name in spec.targets}
        left = [spec for spec in specs if not spec.targets or not tables.isdisjoint(spec.targets)]
        if left == specs:
            return found
        specs = left


def of_models(sources: Collection[str], dtypes: Collection[str]) -> Callable[[EntrySpec], bool]:
    """Whether models with the kernels of these sources, in these dtypes (none: in any), may launch an entry: one of the
    source, or of the source that it borrows from, in the dtype that the op has in such a model."""
    needed = {*sources, *(borrows_from(source) for source in sources)}
    launched = {(name, op.dtype_in(dtype)) for name, op in ops().items() for dtype in dtypes or DTYPES}
    return lambda spec: spec.source in needed and (spec.op, spec.dtype) in launched


def taken_by(source: str, target: str | None) -> list[EntrySpec]:
    """All entries that a model with the kernels of this source may launch on a target. Of a virtual source: those of
    the first that it chooses among, and of the others that were faster at something there."""
    among = best_of(source)
    if not among:
        return with_borrowed(packages()[source])
    picked = {pick.source for pick in committed().picks.get(target or "", ())}
    named = [each for each in among if each == among[0] or each in picked]
    return [spec for each in named for spec in load_source(packages()[each]).entries()]


def with_borrowed(package: str) -> list[EntrySpec]:
    """The entries of a source, and behind them those of the source that it borrows from."""
    source = load_source(package)
    other = borrows_from(source.name)
    return [*source.entries(), *(load_source(packages()[other]).entries() if other else ())]


def _counted(reasons: Mapping[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in reasons.items() if count}
