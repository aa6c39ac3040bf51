"""Predicted times: what they must grow and shrink with, and how they compare with what was measured on an H200."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from toolchain.contract.entries import TunedRow, committed
from toolchain.contract.entry import EntrySpec
from tune import roofline
from tune.devices import device_of
from tune.predict import Predictor
from tune.spaces import parse_shape

A100, H200, RTX = device_of("sm_80"), device_of("sm_90"), device_of("sm_120")
TILE = {"BM": 128, "BN": 128, "BK": 64}
ALONE = {"num_worker_warps": 4, "occupancy": 1}
OPS = ("linear", "linear_gelu", "linear_residual", "logits", "attention")


def product(device: Any = A100, rows: int = 1024, columns: int = 2304, depth: int = 768, **changed: int) -> float:
    hints = ALONE | {key: value for key, value in changed.items() if key in ALONE}
    constants = TILE | {key: value for key, value in changed.items() if key not in ALONE}
    return roofline.product_us(device, constants, hints, {"M": rows, "K": depth, "N": columns}, 1)


def attention(device: Any = A100, batch: int = 8, length: int = 1024, queries: int = 64, blocks: int = 1) -> float:
    dims = {"B": batch, "H": 12, "D": 64, "T": length, "S": length}
    hints = {"num_worker_warps": 4, "occupancy": blocks}
    return roofline.attention_us(device, {"BT": queries, "BS": 64, "D": 64}, hints, dims)


def test_tiles_are_computed_in_rounds() -> None:
    one, full = product(rows=128, columns=128), product(rows=128 * 9, columns=128 * 12)
    assert one == pytest.approx(full), "108 tiles for 108 multiprocessors"
    assert product(rows=128 * 9, columns=128 * 12 + 1) > 1.5 * (full - roofline.LAUNCH_US), "and one more"


def test_the_tensor_cores_bound_a_large_product() -> None:
    size = 8192
    seconds = product(rows=size, columns=size, depth=size, BN=256, num_worker_warps=8) / 1e6
    assert 0.7 < 2 * size**3 / 1e12 / A100.tflops / seconds < 1


def test_device_memory_bounds_one_row() -> None:
    us = product(rows=1, columns=50304, BM=16, BN=64, num_worker_warps=4, occupancy=3)
    assert us == pytest.approx(roofline.LAUNCH_US + 50304 * 768 * 2 / A100.gbytes / 1e3, rel=0.01)


def test_small_tiles_wait_for_shared_memory_where_each_warp_reads_its_own_operands() -> None:
    large = {"rows": 8192, "columns": 8192, "depth": 8192}
    ratio = product(A100, **large, BM=64, BN=64) / product(A100, **large)
    assert ratio > 1.2
    assert product(replace(A100, operands="block"), **large) <= product(A100, **large)


def test_blocks_that_share_a_multiprocessor_hide_waits() -> None:
    assert product(rows=8192, occupancy=2) < product(rows=8192)
    assert attention(blocks=2) < attention()
    assert attention(blocks=3) >= attention(blocks=2) * 0.5


def test_attention_grows_with_the_square_of_the_length() -> None:
    assert 3 < attention(length=4096) / attention(length=2048) < 4.2
    assert attention(RTX, length=4096) > attention(H200, length=4096)


def test_readers_share_a_tile_with_the_fewest_reads() -> None:
    assert roofline._split(4, 128, 128) == (2, 2)
    assert roofline._split(4, 256, 32) == (4, 1)
    assert roofline._split(1, 64, 64) == (1, 1)


def measured() -> list[tuple[str, float, float]]:
    """Of the products and attention tuned in bf16, without pairs of blocks, of which the model knows nothing: a name,
    what was measured on an H200, and what is predicted."""
    rows = [row for row in committed().tuned if row.target == "sm_90" and row.op in OPS and not row.predicted]
    return [each for row in rows for each in _compared(row)]


def _compared(row: TunedRow) -> list[tuple[str, float, float]]:
    table = row.table["measured"]
    if table["dtype"] != "bf16" or row.table["hints"].get("num_ctas", 1) > 1:
        return []
    spec: EntrySpec = replace(row.measured_entry("py"), sizes={})
    predictor = Predictor("sm_90", H200, {}, lambda _: [])
    found = predictor.times_of(spec, [parse_shape(shape) for shape in table["us"]])
    return [(f"{row.name} {shape}", us, found[shape]) for shape, us in table["us"].items()]


def test_what_was_measured_on_an_h200_is_predicted_within_a_factor() -> None:
    """No constant of the model was fitted to these. docs/tuning.md says the same numbers."""
    ratios = {name: predicted / us for name, us, predicted in measured()}
    assert len(ratios) >= 30
    assert {name: ratio for name, ratio in ratios.items() if not 0.6 < ratio < 1.6} == {}
    mean = math.exp(math.fsum(map(math.log, ratios.values())) / len(ratios))
    assert mean == pytest.approx(0.96, abs=0.05)
