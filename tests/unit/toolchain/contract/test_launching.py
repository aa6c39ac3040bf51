"""Grids and numbers of a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.contract.launching import check_grid, number
from toolchain.errors import LaunchError


def test_grid_limits() -> None:
    check_grid("f", (2**31 - 1, 65535, 65535))
    for grid in ((2**31, 1, 1), (1, 65536, 1), (1, 1, 65536), (-1, 1, 1)):
        with pytest.raises(LaunchError, match=r"gelu_f32: its grid is .* blocks in [xyz]"):
            check_grid("gelu_f32", grid)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("f16", 65504), ("f16", float("inf")), ("bf16", 3e38), ("f8E4M3FN", 448.0), ("f8E4M3FN", float("nan")),
        ("f8E5M2", np.float32(57344)), ("f8E8M0FNU", 2.0), ("f32", True), ("i1", 1), ("i1", np.True_), ("i8", -128),
        ("i32", np.int64(7)), ("i64", 2**63 - 1),
    ],
)  # fmt: skip
def test_a_number_that_fits(dtype: str, value: Any) -> None:
    found = number(dtype, value, "n")
    assert found == value or found != found
    assert type(found) is (float if dtype[0] in "fb" else int)


@pytest.mark.parametrize(
    ("dtype", "value", "why"),
    [
        ("f16", 70000, "n is 70000, outside of f16"), ("f8E4M3FN", 500, "outside of f8E4M3FN"),
        ("f8E4M3FN", float("inf"), "n is inf, outside of f8E4M3FN"), ("f8E8M0FNU", -1, "outside of f8E8M0FNU"),
        ("f32", 1e39, "outside of f32"), ("f64", 10**400, "outside of f64"), ("f32", 1j, "takes a number, f32"),
        ("i1", 2, "n is 2, outside of i1"), ("i1", -1, "outside of i1"), ("i8", 128, "outside of i8"),
        ("i32", 2**31, "outside of i32"), ("i64", 0.5, "takes an integer, i64"),
    ],
)  # fmt: skip
def test_a_number_that_does_not(dtype: str, value: Any, why: str) -> None:
    with pytest.raises(LaunchError, match=why):
        number(dtype, value, "n")
