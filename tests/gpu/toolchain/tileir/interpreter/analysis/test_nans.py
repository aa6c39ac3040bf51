"""The bits of NaNs are the same on both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs("gpu", "toolchain", "interpreter")
Differing = Callable[..., list[tuple[str, str]]]
Samples = Callable[[str], np.ndarray[Any, np.dtype[Any]]]
FLOATS = ["f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN"]
ARITHMETIC = {
    "addf": "%y = addf %x, %x : tile<T>", "subf": "%y = subf %x, %x : tile<T>", "mulf": "%y = mulf %x, %x : tile<T>",
    "divf": "%y = divf %x, %x : tile<T>", "fma": "%y = fma %x, %x, %x : tile<T>", "sqrt": "%y = sqrt %x : tile<T>",
    "negf": "%y = negf %x : tile<T>", "absf": "%y = absf %x : tile<T>", "ceil": "%y = ceil %x : tile<T>",
    "floor": "%y = floor %x : tile<T>",
    "maxf": "%one = constant <ELEMENT: 1.5> : tile<T>\n%y = maxf %x, %one : tile<T>",
    "minf": "%one = constant <ELEMENT: 1.5> : tile<T>\n%y = minf %x, %one propagate_nan : tile<T>",
}  # fmt: skip


@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_arithmetic(differing: Differing, samples: Samples, element: str) -> None:
    operations = {name: body.replace("ELEMENT", element) for name, body in ARITHMETIC.items()}
    assert differing(element, element, samples(element), operations) == []


@pytest.mark.parametrize("element", FLOATS)
def test_moves(differing: Differing, samples: Samples, element: str) -> None:
    moves = {
        "copy": "%y = broadcast %x : tile<T> -> tile<T>",
        "reshape": f"%z = reshape %x : tile<T> -> tile<4x4x{element}>\n"
        f"%p = permute %z [1, 0] : tile<4x4x{element}> -> tile<4x4x{element}>\n"
        f"%y = reshape %p : tile<4x4x{element}> -> tile<T>",
        "cat": f"%zero = constant <i32: 0> : tile<i32>\n%one = constant <i32: 1> : tile<i32>\n"
        f"%a = extract %x[%zero] : tile<T> -> tile<8x{element}>\n"
        f"%b = extract %x[%one] : tile<T> -> tile<8x{element}>\n"
        f"%y = cat %b, %a dim = 0 : tile<8x{element}>, tile<8x{element}> -> tile<T>",
    }
    assert differing(element, element, samples(element), moves) == []


@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("source", FLOATS)
def test_conversions_of_floats(differing: Differing, samples: Samples, source: str, target: str) -> None:
    if source != target:
        assert differing(source, target, samples(source), {"ftof": "%y = ftof %x : tile<T> -> tile<R>"}) == []
