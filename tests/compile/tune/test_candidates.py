"""The entries that a tuned row gives besides the measured one, as the compiler makes them."""

from __future__ import annotations

from typing import Any

import pytest

from toolchain.caching.cache import Cache
from toolchain.contract.targets import select
from toolchain.knobs import cache_dir
from tune.candidates import Faults

pytestmark = pytest.mark.needs("toolchain")
ROW: dict[str, Any] = {
    "op": "linear_gelu", "class": "m256", "dtypes": ["bf16"], "sources": ["py"],
    "variant": "sm_90_m256", "kernel": "linear_gelu_split_n",
    "constants": {"BM": 64, "BN": 64, "BR": 32, "BK": 64, "GROUP": 1},
    "hints": {"num_worker_warps": 4, "occupancy": 1},
    "aligned": ["x", "weight", "bias", "out"], "multiples": {"K": 64, "N": 64},
    "grid": ["SMS", "1", "1"],
}  # fmt: skip


@pytest.fixture
def faults() -> Faults:
    (target,) = select(["sm_90"])
    return Faults({"mlir": "kernels_mlir", "py": "kernels_py"}, target, Cache(cache_dir()), jobs=2)


@pytest.mark.parametrize("source", ["mlir", "py"])
def test_a_row_whose_entry_for_other_sizes_is_serialised_has_a_fault(faults: Faults, source: str) -> None:
    """The row's entry for its own sizes, the fastest on an H200, is not serialised."""
    found = faults({**ROW, "sources": [source], "sizes": {"N": 3072, "K": 768}})
    assert found == f"{source}/linear_gelu_sm_90_m256_bf16 is serialised: its products wait for one another"


def test_a_row_whose_entries_are_all_as_good_has_none(faults: Faults) -> None:
    wider = {"BM": 128, "BN": 64, "BR": 32, "BK": 64, "GROUP": 1}
    row = {**ROW, "sources": ["mlir"], "constants": wider, "sizes": {"N": 3072, "K": 768}}
    assert faults({**row, "dtypes": ["bf16", "f16"]}) == ""
    assert faults({**row, "sources": ["mlir", "py"], "only": "sized"}) == ""


def test_an_entry_that_does_not_compile_is_a_fault(faults: Faults) -> None:
    found = faults({**ROW, "constants": {**ROW["constants"], "BN": 96}})
    assert "linear_gelu_sm_90_m256_bf16" in found and "does not compile" in found


def test_spills_are_a_fault(faults: Faults) -> None:
    row = {**ROW, "op": "linear", "kernel": "linear", "constants": {"BM": 128, "BN": 256, "BK": 128, "GROUP": 8}}
    found = faults({**row, "hints": {"num_worker_warps": 8, "occupancy": 1}})
    assert found.startswith("py/linear_sm_90_m256_bf16 spills ")
