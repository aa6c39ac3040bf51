from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from conformance.reference.widened import widened


@pytest.mark.parametrize("wide", [np.float32, np.float64])
@pytest.mark.parametrize("narrow", [ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, np.float16, np.int8])
def test_each_number_is_what_a_conversion_gives(narrow: type, wide: type[np.floating]) -> None:
    size = np.dtype(narrow).itemsize
    bits = np.arange(256**size, dtype=f"u{size}").view(narrow).reshape(16, -1).T  # not contiguous
    with np.errstate(invalid="ignore"):  # some are signalling NaNs
        found, wanted = widened(bits, wide), bits.astype(wide)
    assert found.dtype == wide
    assert np.array_equal(found, wanted, equal_nan=True)
