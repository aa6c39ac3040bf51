"""layernorm on the executor: its results, for rows that fit a warp's registers and for others."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernels_cute.layernorm as module
from conformance.reference import float64
from kernels_cute.layernorm import Rows, layernorm
from tests.unit.kernels_cute.heads import run_head
from toolchain.cute.executor import run

NUMPY: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
ROUNDING = {"f32": 2.0**-20, "f16": 2.0**-10, "bf16": 2.0**-7}


@pytest.mark.parametrize(
    ("dtype", "rows", "shape"),
    [
        ("bf16", Rows(2, 256), (3, 200)),  # the last vector of a row is no whole step, the last row no whole block
        ("f32", Rows(1, 256), (1, 256)),
        ("f16", Rows(2, 256, whole=False), (2, 520)),  # three tiles
        ("f32", Rows(2, 256, aligned=False, whole=False), (3, 259)),  # rows at any address
    ],
)
def test_it_agrees_with_float64(dtype: str, rows: Rows, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x = (3 + rng.standard_normal(shape)).astype(NUMPY[dtype])  # a mean that is not 0 shows what stands outside of a row
    weight, bias = (rng.standard_normal(shape[1]).astype(NUMPY[dtype]) for _ in range(2))
    out = np.full(shape, np.nan, NUMPY[dtype])
    run(layernorm(dtype, rows), [x, weight, bias, out, 1e-5], -(-shape[0] // rows.rows))
    exact = float64.layernorm(x, weight, bias, 1e-5)
    assert np.abs(out.astype(np.float64) - exact).max() <= ROUNDING[dtype] * np.abs(exact).max()


@pytest.mark.parametrize("whole", [True, False])
def test_its_ptx_computes_the_same(whole: bool) -> None:
    rng, kernel = np.random.default_rng(0), layernorm("bf16", Rows(2, 256, whole=whole))
    x, weight, bias = (rng.standard_normal(shape).astype(NUMPY["bf16"]) for shape in ((3, 200), (200,), (200,)))
    ir, ptx = (np.full_like(x, np.nan) for _ in range(2))
    run(kernel, [x, weight, bias, ir, 1e-5], 2)
    run(kernel, [x, weight, bias, ptx, 1e-5], 2, ptx=kernel.ptx("sm_80"))
    assert (ir.view(np.uint16) == ptx.view(np.uint16)).all()


def test_the_head_of_the_module_runs_it() -> None:
    rng = np.random.default_rng(0)
    x, weight, bias = (rng.standard_normal(shape).astype(NUMPY["bf16"]) for shape in ((4, 256), (256,), (256,)))
    out = np.full_like(x, np.nan)
    run_head(module, x=x, weight=weight, bias=bias, out=out)
    exact = float64.layernorm(x, weight, bias, 1e-5)
    assert np.abs(out.astype(np.float64) - exact).max() <= ROUNDING["bf16"] * np.abs(exact).max()
