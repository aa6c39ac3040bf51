"""Rows that have no numbers in 8 bits: what the kernels make of them says so."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.runtime import Launcher
from toolchain.runtime.cpu import CpuExecutor


@pytest.mark.parametrize("source", ["mlir", "py"])
@pytest.mark.parametrize(("op", "kind"), [("quantize_rows", "f8E4M3FN"), ("quantize_rows_i8", "i8")])
def test_a_row_with_nan_or_infinity_has_a_scale_that_is_not_finite(
    op: str, kind: str, source: str, bundle: Bundle
) -> None:
    x = np.ones((4, 48), ml_dtypes.bfloat16)
    x[1, 3], x[2, 5], x[3] = np.nan, np.inf, 0
    with CpuExecutor(sanitize=True) as executor:
        out, scales = executor.empty((4, 48), kind), executor.empty((4,), "f32")
        launch = Launcher(bundle, source, executor)
        launch(op, "bf16", x=executor.from_numpy(x), out=out, scales=scales)
        found, made = scales.numpy(), out.numpy().astype(np.float32)
    assert np.isfinite(found).tolist() == [True, False, False, True]
    assert np.isnan(found[1]) and np.isinf(found[2]) and found[3] == np.finfo(np.float32).smallest_normal
    assert (made[0] == made[0, 0]).all() and made[0, 0] * found[0] == pytest.approx(1) and not made[3].any()
