"""The largest logits and the tokens are one copy to the host."""

from __future__ import annotations

import numpy as np

from gpt.passes.chosen import Chosen
from toolchain.runtime import CpuExecutor


def test_both_are_read_as_they_were_written() -> None:
    executor = CpuExecutor()
    chosen = Chosen.new(executor, 2, 3)
    largest, tokens = np.array([[1.5, -2, np.nan], [0, 4, 8]], np.float32), np.array([7, 50256], np.int32)
    chosen.largest.copy_from(largest)
    chosen.tokens.copy_from(tokens)
    found = chosen.read()
    assert np.array_equal(found[0], largest, equal_nan=True) and np.array_equal(found[1], tokens)
    apart = Chosen(chosen.tokens, chosen.largest, chosen.indices).read()
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, apart, strict=True))
