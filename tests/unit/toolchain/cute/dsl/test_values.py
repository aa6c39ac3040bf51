"""What a kernel's parameters may be, and Python that asks what only the kernel knows."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import run
from toolchain.errors import UsageError


@pytest.mark.parametrize("ask", [bool, partial(operator.lt, 5), partial(operator.ge, 5), range])
def test_python_cannot_decide_by_a_number_of_the_kernel(ask: Callable[[Any], Any]) -> None:
    def body(target: Any) -> None:
        if ask(arch.thread_idx()[0]):
            target[0] = 1.0

    with pytest.raises((UsageError, TypeError), match=r"cannot decide by a number|interpreted as an integer"):
        cute.kernel(cute.Array("f32", rank=1), threads=32)(body)


@pytest.mark.parametrize("wrong", [{"dtype": "f99"}, {"rank": 0}, {"multiple": 0}, {"align": -1}])
def test_an_array_is_checked_where_it_is_made(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"dtype": "f32", **wrong}
    with pytest.raises(UsageError, match="no dtype 'f99'" if "dtype" in wrong else "are at least 1"):
        cute.Array(**given)


@pytest.mark.parametrize("grid", [0, -1, 1.5, (1, 0)])
def test_a_grid_is_of_whole_numbers_from_1_on(grid: Any) -> None:
    @cute.kernel(cute.Array("f32", rank=1), threads=32)
    def kernel(target: Any) -> None:
        target[arch.thread_idx()[0]] = 1.0

    with pytest.raises(UsageError, match=r"kernel: a grid of \(.*\) blocks\n  next: one to three numbers"):
        run(kernel, (np.zeros(32, np.float32),), grid=grid)
