"""Conversions between floats and integers give the same bits on both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs("gpu", "toolchain", "interpreter")
Differing = Callable[..., list[tuple[str, str]]]
Samples = Callable[[str], np.ndarray[Any, np.dtype[Any]]]
FLOATS = ["f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN"]


@pytest.mark.parametrize("target", ["i1", "i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_integers(differing: Differing, samples: Samples, source: str, target: str) -> None:
    """What is undefined too: it is what the instructions give. There is no -0 of 8 bits, which a GPU counts as true."""
    operations = {sign: f"%y = ftoi %x {sign} : tile<T> -> tile<R>" for sign in ("signed", "unsigned")}
    assert differing(source, target, samples(source), operations) == []


@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f8E4M3FN", "f8E5M2"])
def test_integers_to_floats(differing: Differing, target: str) -> None:
    values = np.array([0, 1, -1, 448, 449, 500, 57344, 61440, 65504, 65520, 70000, -70000, 2**24 + 1, 2**31 - 1,
                       -(2**31), 33], np.int32).view(np.uint32)  # fmt: skip
    operations = {sign: f"%y = itof %x {sign} : tile<T> -> tile<R>" for sign in ("signed", "unsigned")}
    assert differing("i32", target, values, operations) == []
