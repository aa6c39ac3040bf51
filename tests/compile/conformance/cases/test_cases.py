"""Compares cases and entries: on a CPU the matrix runs every entry."""

from __future__ import annotations

from pathlib import Path

from conformance.cases import CASES
from conformance.ops.smallest import layouts
from kernels_mlir import SOURCE
from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entries import tuned_symbols
from toolchain.runtime import Launcher, open_executor


def test_every_entry_is_run_by_a_case() -> None:
    """Of the sources' own entries, which both have alike; those tuned for a target may want sizes that are too large
    here."""
    tuned = tuned_symbols(SOURCE.name)
    own = [spec for spec in SOURCE.entries() if spec.symbol not in tuned]
    nothing = FileRef(Path(), "")
    entries = Bundle(Path(), tuple(BundleEntry(spec, nothing, tile_ir(b"", "13.3").form, {}) for spec in own), {})
    executor = open_executor("cpu")
    launcher = Launcher(entries, "mlir", executor)
    made = {(spec.op, spec.dtype) for spec in own}  # an op may be made in fewer dtypes than a case has
    chosen: set[str] = set()
    for case in CASES:
        for dtype in [] if case.gpu_only else [d for d in case.dtypes() if (case.op, d) in made]:
            chosen.add(launcher.select(case.op, dtype, **layouts(case, dtype, executor)).spec.symbol)
    assert [spec.symbol for spec in own if spec.symbol not in chosen] == []
