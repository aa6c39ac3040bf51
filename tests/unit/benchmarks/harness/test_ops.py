"""How many inputs an op is timed over."""

from __future__ import annotations

import pytest

from benchmarks.cases.cases import OpCase

pytestmark = pytest.mark.needs("torch")


def test_sets_and_calls_fill_a_sample_with_inputs_that_are_not_cached() -> None:
    from benchmarks.harness.ops import sets_and_calls

    case = OpCase("gelu", {"M": 1024, "N": 1024})  # 4 MiB in and out
    sets, calls = sets_and_calls(case, floor_ms=0.001, l2_bytes=50 * 2**20)
    assert sets == 25
    assert (calls, calls % sets) == (200, 0)
    assert sets_and_calls(case, floor_ms=10, l2_bytes=2**20) == (1, 1)
