"""Every predicted entry runs on the interpreter, and is right: the conformance matrix has no sizes for many of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.bundles.bundle import BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entries import TunedRow, committed
from toolchain.contract.targets import BYTECODE
from toolchain.runtime import open_executor
from toolchain.runtime.launch import EntryLauncher
from tune.check import Reference, inputs_for, poison, results, upload

from ..conftest import Exported, LazyBundle

# Several tiles in every direction, and a remainder; an entry takes any sizes, so those of its class would show no more.
SIZES: Mapping[str, Mapping[str, int]] = {
    "logits": {"M": 300, "C": 320, "V": 320},
    "attention": {"B": 1, "T": 200, "H": 2, "D": 64, "S": 200},
}
PRODUCT = {"M": 300, "K": 320, "N": 320}
CODE = ("op", "kernel", "constants", "grid")  # what the interpreter sees of a row: the compiler alone reads hints
PREDICTED = {str([row.table.get(key) for key in CODE]): row for row in committed().tuned if row.predicted}


@pytest.mark.parametrize("source", ["mlir", "py"])
@pytest.mark.parametrize("row", PREDICTED.values(), ids=lambda row: f"{row.target}-{row.op}-{row.shape_class}")
def test_a_predicted_entry_is_right(row: TunedRow, source: str, exported: Exported) -> None:
    spec = replace(row.entries(source)[-1], where=())
    entry = BundleEntry(spec, FileRef(Path("code"), ""), tile_ir(b"", BYTECODE).form, {})
    bundle = LazyBundle(Path("nowhere"), (entry,), {}, {}, make={Path("code"): lambda: exported(spec)})
    executor = open_executor("cpu")
    case, inputs = inputs_for(spec.op, spec.dtype, SIZES.get(spec.op, PRODUCT), 1)
    arguments = upload(case, inputs, executor)
    poison(case, inputs, arguments)
    EntryLauncher(executor)(bundle, entry, arguments)
    assert Reference(case, spec.dtype, inputs).check(results(inputs, arguments)) <= 1
