"""The programs in examples/cute compute what they say, on the CPU executor. tests/compile has them in ptxas."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from toolchain.cute.executor import TensorMap, run
from toolchain.knobs import ROOT

FOLDER = ROOT / "examples/cute"
RANDOM = np.random.default_rng(0)


def bf16(rows: int, columns: int) -> NDArray[Any]:
    return RANDOM.standard_normal((rows, columns)).astype(ml_dtypes.bfloat16)


def check_product(out: NDArray[np.float32], a: NDArray[Any], b: NDArray[Any]) -> None:
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    # sums of K products in f32, in another order
    assert np.abs(out - wanted).max() <= a.shape[1] * np.finfo(np.float32).eps * np.abs(wanted).max()


def test_a_warpgroup_multiplies() -> None:
    a, b, out = bf16(64, 64), bf16(64, 64), np.full((64, 64), np.nan, np.float32)
    run((FOLDER / "warpgroup_mma.mlir").read_text(), [a, b, out])
    check_product(out, a, b)


def test_boxes_go_through_the_pipeline() -> None:
    x = bf16(64, 64 * 3)
    y = np.zeros_like(x)
    run((FOLDER / "tma_pipeline.mlir").read_text(), [TensorMap(x, (64, 64)), TensorMap(y, (64, 64)), 3])
    assert (x == y).all()


def test_the_gemm_fills_its_ring_more_than_once() -> None:
    a, b, out = bf16(64, 320), bf16(128, 320), np.full((64, 128), np.nan, np.float32)
    maps = [TensorMap(a, (64, 64), swizzle=128), TensorMap(b, (128, 64), swizzle=128)]
    run((FOLDER / "hopper_gemm.mlir").read_text(), [*maps, out, 64, 128, 320])
    check_product(out, a, b)
