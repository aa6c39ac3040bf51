"""Rows and results as a run makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.report.result import BenchmarkRow, Results
from tests.unit.cute_runtime.conftest import gpu

__all__ = ["gpu"]  # a fixture

MakeRow = Callable[..., BenchmarkRow]


@pytest.fixture
def row() -> MakeRow:
    """A right row; keyword arguments change it."""

    def make(**changes: Any) -> BenchmarkRow:
        fields: dict[str, Any] = {
            "group": "ops", "case": "linear M=8", "source": "mlir", "dtype": "bf16", "shape": "M=8", "dims": {"M": 8},
            "status": "ok", "entry": "linear_bf16", "ours_ms": 1.0, "ours_low": 0.9, "ours_high": 1.1,
            "peer": "F.linear", "peer_kind": "graph", "peer_ms": 1.5, "peer_low": 1.4, "peer_high": 1.6,
            "ratio": 1.5, "ratio_low": 1.4, "ratio_high": 1.6, "best": True, "floor_ms": 0.5, "bound": "memory",
            "nbytes": 1000, "flops": 4000, "samples": 30,
        }  # fmt: skip
        return BenchmarkRow(**{**fields, **changes})

    return make


@pytest.fixture
def results(row: MakeRow) -> Results:
    """Results with every kind of case, from two sources."""
    rows = [
        row(source=source, group=group, case=f"{group} {size}", dims={"B": 1, "T": size}, axis=axis,
            model_bytes=10**8, ours_peak_bytes=2 * 10**8 + size, peer_peak_bytes=3 * 10**8 + size,
            ours_ms=size / 100, ours_low=size / 101, ours_high=size / 99, peer_ms=1.5 * size / 100)
        for source in ("mlir", "py")
        for group, axis, sizes in (("forward", "", (64, 1024)), ("ops", "", (8,)), ("scaling", "T", (64, 128, 256)))
        for size in sizes
    ]  # fmt: skip
    environment = {"gpu": "NVIDIA H200", "driver": "580.159", "commit": "abc", "changes": "", "bundle": "ab",
                   "date": "2026-01-01"}  # fmt: skip
    ceilings = {"bytes_per_s": 4e12, "flops_per_s": 8e14}
    return Results({**environment, "packages": {"torch": "2.11.0"}}, ceilings, rows)
