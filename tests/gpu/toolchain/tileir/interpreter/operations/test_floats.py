"""Functions that give the same bits on both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytestmark = pytest.mark.needs("gpu", "toolchain", "interpreter")
Differing = Callable[..., list[tuple[str, str]]]


def test_powers_of_two(differing: Differing) -> None:
    """Those that are normal: a GPU rounds subnormal ones in its own way."""
    whole = np.arange(-126, 130).astype(np.float32)
    assert differing("f32", "f32", whole.view(np.uint32), {"exp2": "%y = exp2 %x : tile<T>"}) == []
