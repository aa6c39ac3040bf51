"""Results as the matrix and the benchmarks write them, of several machines."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci.report import Run, load
from conformance.results.origin import Origin
from conformance.results.result import CellResult, Results
from toolchain.contract.op import cell_name
from toolchain.runtime.executor import Loaded

MakeRow = Callable[..., CellResult]
SHA = "ab" * 32


def make_row(status: str = "passed", **more: Any) -> CellResult:
    """gelu in bf16 on an H200, unless it says otherwise; the cell's name follows from its parts."""
    row = CellResult("", "mlir", "gelu", "bf16", "sm_90", "cuda:0 NVIDIA H200 sm_90", "M=7 N=65", "passed")
    row = dataclasses.replace(row, status=status, **more)  # type: ignore[arg-type]
    return dataclasses.replace(row, cell=cell_name(row.op, row.source, row.dtype, row.target))


def make_origin(**more: Any) -> Origin:
    origin = Origin(
        commit="c0ffee" * 6, changes="", command=("tilestack", "matrix", "run"), date="2026-11-24T04:00:00Z",
        bundle={"sha256": SHA, "commit": "", "changes": "", "cells": {"gelu-mlir-bf16": {"sm_90": 3, "sm_100": 2}}},
        tools={"tileiras": {"version": "13.5", "sha256": SHA}},
        host={"python": "3.12", "machine": "Linux", "packages": {"numpy": "2"}},
        devices=[{"executor": "cuda:0 NVIDIA H200 sm_90", "kind": "cuda", "gpu": "NVIDIA H200", "address": "0",
                  "target": "sm_90", "sms": 132, "driver": "580.1", "before": {}, "after": {}}],
        kernels=[Loaded("mlir", "gelu_bf16", "sm_90", SHA)],
    )  # fmt: skip
    return dataclasses.replace(origin, **more)


def bench_row(**more: Any) -> dict[str, Any]:
    return {
        "group": "ops", "case": "gelu M=8 N=64 bf16", "source": "mlir", "dtype": "bf16", "status": "ok", "detail": "",
        "entry": "gelu_bf16", "ours_ms": 0.5, "ours_low": 0.4, "ours_high": 0.6, "floor_ms": 0.25, "bound": "memory",
        "nbytes": 1000, "flops": 4000, "peer": "F.gelu", "peer_kind": "graph", "ratio": 1.5, "ratio_low": 1.4,
        "ratio_high": 1.6, "best": True, **more,
    }  # fmt: skip


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of results of the matrix from its rows."""

    def write(name: str, *rows: CellResult, origin: Origin | None = None) -> Path:
        path = tmp_path / name
        path.write_text(Results({"seed": "1"}, rows, origin).to_json())
        return path

    return write


@pytest.fixture
def save_times(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of results of the benchmarks from its rows."""

    def write(name: str, *rows: dict[str, Any], gpu: str = "NVIDIA H200", date: str = "2026-11-23 15:28 UTC") -> Path:
        path = tmp_path / name
        environment = {"gpu": gpu, "target": "sm_90", "date": date}
        document = {"format": 1, "environment": environment, "ceilings": {"bytes_per_s": 1e12}, "rows": rows}
        path.write_text(json.dumps(document))
        return path

    return write


def two_machines(save: Callable[..., Path]) -> list[Run]:
    """All passed on an H200, one failed on an H100; softmax is not run."""
    h200 = save("h200.json", make_row(error=0.01, bound=0.04, time_us=12.5, entries=("gelu_bf16",)),
                make_row("not run", op="softmax", detail="too slow"), origin=make_origin())  # fmt: skip
    on = {"executor": "cuda:1 NVIDIA H100 sm_90"}
    failed = make_row("failed", detail="gelu bf16: off by <3>", **on)
    h100 = save("h100.json", failed, make_row("error", source="py", detail="LaunchError: x", **on))
    return load([h200, h100])
