"""What a bundle lacks of the cells that are wanted."""

from __future__ import annotations

from pathlib import Path

from conformance.coverage import lacking
from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.sources import load_source, packages


def test_ops_without_a_dtype_of_their_own_say_nothing_of_a_bundles_dtypes() -> None:
    """Their arrays are f32 and i32 in every model: with a bundle in bf16 they are there, and nothing else in f32."""
    specs = [
        s
        for s in load_source(packages()["mlir"]).entries()
        if (s.op, s.dtype) in {("gelu", "bf16"), ("next_token", "f32")}
    ]
    nothing = FileRef(Path(), "")
    bundle = Bundle(Path(), tuple(BundleEntry(s, nothing, tile_ir(b"", "13.3").form, {}) for s in specs), {})
    found = lacking(bundle, ["gelu", "next_token", "forward"], ["f32", "bf16"], {})
    assert found.cells == {("gelu", "f32"): "the bundle has no entry in f32"}
