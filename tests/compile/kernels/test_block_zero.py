"""Kernels whose accumulators start at the block index in y, in both sources, and the grids of all entries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.compile.conftest import Exported
from tilestack.cli.common.options import SOURCES
from toolchain.compiling.pipeline import export
from toolchain.contract.entry import EntrySpec
from toolchain.contract.sources import load_source
from toolchain.contract.targets import BYTECODE
from toolchain.errors import SourceError

TILE_IR = [SOURCES[name] for name in ("mlir", "py")]  # the sources whose exports are checked for it


def _one_of_each(package: str) -> dict[str, EntrySpec]:
    return {spec.kernel or spec.op: spec for spec in reversed(load_source(package).entries())}


@pytest.mark.parametrize("package", TILE_IR)
@pytest.mark.parametrize(
    "kernel", ["linear_split_n", "linear_gelu_split_n", "linear_residual_split_n", "logits_split_n"]
)
def test_a_split_product_in_a_grid_of_two_rows_is_refused(package: str, kernel: str) -> None:
    spec = _one_of_each(package)[kernel]
    export(package, spec, BYTECODE)
    with pytest.raises(SourceError, match=rf"{spec.symbol}: the accumulator .* block index in y.*grid has '2'"):
        export(package, replace(spec, grid=(spec.grid[0], "2", "1")), BYTECODE)


@pytest.mark.parametrize("package", TILE_IR)
def test_no_kernel_that_multiplies_in_a_grid_of_many_rows_is_refused(package: str, exported: Exported) -> None:
    chosen = [spec for spec in _one_of_each(package).values() if spec.grid[1:] != ("1", "1")]
    assert len(chosen) > 10
    for spec in chosen:
        exported(spec)
