from __future__ import annotations

import numpy as np
import pytest

from conformance.ops.normal import PERIOD, normal, normal_of


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_are_drawn_one_by_one(dtype: type[np.floating]) -> None:
    found = normal(np.random.default_rng(3), (5, 7), dtype)
    assert np.array_equal(found, np.random.default_rng(3).standard_normal((5, 7), dtype))


def test_many_repeat_so_that_no_two_rows_are_alike() -> None:
    assert all(PERIOD % n for n in range(2, 1001)), "a prime number"
    rows = normal(np.random.default_rng(3), (4096, 512))
    assert rows.shape == (4096, 512) and abs(rows.mean()) < 0.01 and abs(rows.std() - 1) < 0.01
    assert np.array_equal(rows.reshape(-1)[PERIOD:], rows.reshape(-1)[:-PERIOD])
    assert len({row.tobytes() for row in rows}) == len(rows)


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, PERIOD // 5)])
def test_numbers_of_a_dtype_are_those_converted(shape: tuple[int, ...]) -> None:
    found = normal_of(np.random.default_rng(3), shape, np.dtype(np.float16))
    assert found.tobytes() == normal(np.random.default_rng(3), shape).astype(np.float16).tobytes()
