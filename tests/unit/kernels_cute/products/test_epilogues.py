"""Epilogues on the executor: the results of each product, aligned or not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.reference import float64
from kernels_cute.products.epilogues import EPILOGUES
from kernels_cute.products.linear import Tiles, linear
from toolchain.contract.op import ops
from toolchain.cute.executor import run

BF16: Any = ml_dtypes.bfloat16
TILES = Tiles(32, 64, 32, 2, (1, 2))


@pytest.mark.parametrize("op", EPILOGUES)
@pytest.mark.parametrize(("aligned", "m", "n", "k"), [(True, 40, 72, 40), (False, 33, 65, 35)])
def test_it_agrees_with_float64(op: str, aligned: bool, m: int, n: int, k: int) -> None:
    tiles = Tiles(TILES.m, TILES.n, TILES.k, TILES.stages, TILES.warps, aligned=aligned)
    params = ops()[op].params
    sizes = dict(zip((*params[0].dims, params[-1].dims[1]), (m, k, n), strict=True))
    rng = np.random.default_rng(0)
    given = {p.name: rng.standard_normal([sizes[d] for d in p.dims]).astype(BF16) for p in params if p.role == "input"}
    out = np.full((m, n), np.nan, BF16)
    run(linear("bf16", tiles, op, EPILOGUES[op]), [*given.values(), out], -(-m // tiles.m) * -(-n // tiles.n))
    exact = getattr(float64, op)(**given)
    assert np.abs(out.astype(np.float64) - exact).max() <= 2.0**-8 * np.abs(exact).max()


def test_the_output_may_be_the_residual() -> None:
    rng = np.random.default_rng(1)
    x, weight, bias, residual = (
        rng.standard_normal(shape).astype(BF16) for shape in ((32, 32), (32, 64), (64,), (32, 64))
    )
    exact = float64.linear_residual(x, weight, bias, residual)
    run(linear("bf16", TILES, "k", EPILOGUES["linear_residual"]), [x, weight, bias, residual, residual])
    assert np.abs(residual.astype(np.float64) - exact).max() <= 2.0**-8 * np.abs(exact).max()
