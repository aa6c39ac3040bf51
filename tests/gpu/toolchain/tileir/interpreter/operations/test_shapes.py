"""Scans give the same bits on both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytestmark = pytest.mark.needs("gpu", "toolchain", "interpreter")
Differing = Callable[..., list[tuple[str, str]]]


def test_scans_that_do_not_commute(differing: Differing) -> None:
    x = np.array([0, 5, 0, 0, 7, 0, 9, 0] * 2, np.uint32)

    def scan(first: str, second: str, reverse: str) -> str:
        return f"""%y = scan %x dim=0 reverse={reverse} identities=[0 : i32] : tile<T> -> tile<R>
    (%before: tile<i32>, %current: tile<i32>) {{
      %zero = constant <i32: 0> : tile<i32>
      %has = cmpi not_equal %{first}, %zero, signed : tile<i32> -> tile<i1>
      %s = select %has, %{first}, %{second} : tile<i1>, tile<i32>
      yield %s : tile<i32>
    }}"""

    orders = ("before", "current"), ("current", "before")
    operations = {
        f"{first} first, reverse {reverse}": scan(first, second, reverse)
        for first, second in orders
        for reverse in ("false", "true")
    }
    assert differing("i32", "i32", x, operations) == []
