"""The small GEMM for sm_100a on the executor."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import kernels_cute.products.gemm_sm100 as module
from tests.unit.kernels_cute.heads import run_head


def test_the_head_of_the_module_runs_it() -> None:
    rng = np.random.default_rng(0)
    x, weight = (rng.integers(-4, 5, (128, 64)).astype(ml_dtypes.bfloat16) for _ in range(2))
    out = np.full((128, 128), np.nan, np.float32)
    run_head(module, x=x, weight=weight, out=out)
    assert (out == x.astype(np.float32) @ weight.astype(np.float32).T).all()
