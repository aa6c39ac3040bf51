"""Attention with a fixed maximum, on scores that the conformance cases do not draw."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.ops.compare import compare
from conformance.reference import eager, float64
from toolchain.bundles.bundle import Compiled, write
from toolchain.runtime import Launcher, open_executor

BF16 = ml_dtypes.bfloat16
Attention = Callable[[NDArray, NDArray, NDArray], NDArray]


@pytest.fixture(params=["kernels_mlir", "kernels_py"])
def attention(request: pytest.FixtureRequest, tmp_path: Path) -> Attention:
    """The kernel on arrays (1, T, 1, 64), the scale 1."""
    source = importlib.import_module(request.param).SOURCE
    entries = [e for e in source.entries() if e.symbol == "attention_D64_fixed_max_bf16"]
    made = write(tmp_path / "bundle", [Compiled(e, source.artifact(e), {}) for e in entries], {})
    executor = open_executor("cpu")

    def run(q: NDArray, k: NDArray, v: NDArray) -> NDArray:
        out = executor.empty(q.shape, "bf16")
        buffers = {name: executor.from_numpy(array) for name, array in {"q": q, "k": k, "v": v}.items()}
        Launcher(made, source.name, executor)("attention", "bf16", **buffers, out=out, scale=1.0)
        return out.numpy()

    return run


def drawn(score: float, values: float) -> tuple[NDArray, NDArray, NDArray]:
    """320 queries. Key 5 has about this `score` for all of them, the other keys about 0. `values`: their magnitude."""
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal((1, 320, 1, 64)) / 8 for _ in range(3))
    q[..., 0] = 1.0
    k[..., 0] = 0.0
    k[:, 5, :, 0] = score
    return q.astype(BF16), k.astype(BF16), (v * values).astype(BF16)


@pytest.mark.parametrize(
    ("score", "values"),
    [
        (0.0, 1.0),
        (-300.0, 1.0),
        (20.0, 1.0),  # weights of up to e^20 fit
        (80.0, 1.0),
        (85.0, 1.0),  # past the limit, and before anything overflows
        (300.0, 1.0),  # no weight fits
        (80.0, 1e10),  # the weights fit, what they make of the values does not
        (40.0, 1e30),
    ],
)
def test_no_score_overflows(attention: Attention, score: float, values: float) -> None:
    q, k, v = drawn(score, values)
    exact, rounded = float64.attention(q, k, v, scale=1.0), eager.attention(q, k, v, 1.0, dtype="bf16")
    compare("attention", "bf16", attention(q, k, v), exact, rounded)
