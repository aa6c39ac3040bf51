"""Which cells need no measurement, because a GPU runs the same machine code for them in both bundles."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.cases.cases import Case, OpCase
from benchmarks.cases.programs import launched_ops
from benchmarks.harness.kernels import choose
from conformance.cells import borrows_from
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.compiling.machine_code import machine_code
from toolchain.contract.sources import best_of
from toolchain.errors import UsageError

from .measurement import Key

NAMES = ("symbol", "kernel", "hints")  # of an entry: names, and what only its compiler was told


def same_cells(bundle: Bundle, base: Bundle, cases: Sequence[Case], sources: Sequence[str]) -> list[Key]:
    """The cells whose possible launches are the same in both bundles, for every target: the entries that fit the case,
    in their order, with conditions, grids and machine code, and the policy that chooses among ops. For a virtual source
    these are the entries of all that it chooses among, and the rows by which it chooses. Raises UsageError as
    `choose` does, ToolchainError for a cubin that is none."""
    if not bundle.targets or bundle.targets != base.targets:
        return []
    if any(bundle.policy(target) != base.policy(target) for target in bundle.targets):
        return []
    shared = [kernels.source for kernels in choose(bundle, {"base": base}, sources) if kernels.against]
    described = {(id(each), *_name(entry), target): _described(each, entry, target)
                 for each in (bundle, base) for entry in each.entries for target in each.targets}  # fmt: skip

    def launches(each: Bundle, case: Case, source: str, target: str) -> list[str]:
        return [described[id(each), *_name(entry), target] for entry in possible(each, case, source, target)]

    def same(case: Case, source: str, target: str) -> bool:
        if best_of(source) and bundle.picks.get(target) != base.picks.get(target):
            return False
        found = launches(bundle, case, source, target)
        return bool(found) and found == launches(base, case, source, target)

    return [
        (case.name, source) for case in cases for source in shared if all(same(case, source, t) for t in bundle.targets)
    ]


def _name(entry: BundleEntry) -> tuple[str, str]:
    return entry.spec.source, entry.spec.symbol


def possible(bundle: Bundle, case: Case, source: str, target: str) -> Iterator[BundleEntry]:
    """The entries that a case may launch, in order of preference. Of an op those that fit its sizes, whatever the
    alignment of its arrays; of a model every entry of its dtype, since which it takes depends on the whole model."""
    sources = best_of(source) or (source,)
    if not isinstance(case, OpCase):
        for entry in bundle.entries:
            spec = entry.spec
            if spec.source in (*sources, borrows_from(source)) and spec.dtype in (case.dtype, "f32"):
                yield from [entry] * spec.runs_on(target)
        return
    for each, op in itertools.product(sources, launched_ops(case.op)):
        for entry in bundle.entries_of(each, op, case.dtype):
            if not entry.spec.runs_on(target):
                continue
            fits = _fits(entry, case.dims)
            if fits is not False:
                yield entry
            if fits and not entry.spec.aligned and not entry.spec.contiguous:
                break  # it takes all arrays of these sizes, so none behind it is ever launched


def _fits(entry: BundleEntry, dims: Mapping[str, int]) -> bool | None:
    """Whether an entry takes these sizes. None if a size that it asks for is not among them."""
    try:
        return entry.spec.unmet(dims) is None
    except (KeyError, UsageError):
        return None


def _described(bundle: Bundle, entry: BundleEntry, target: str) -> str:
    """All that a launch of an entry depends on, as text to compare."""
    spec: dict[str, Any] = {key: value for key, value in entry.spec.to_json().items() if key not in NAMES}
    form = {key: value for key, value in entry.form.to_json().items() if key != "version"}  # of the bytecode
    code = machine_code(bundle.read(entry.cubins[target])) if target in entry.cubins else None
    return json.dumps([spec, form, code], sort_keys=True)
