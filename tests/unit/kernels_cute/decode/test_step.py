"""A decode step in one kernel on the executor: its results, its words, and what is missing if a barrier is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.cute.decode_case import Case, make, reference
from kernels_cute.decode.plan import Step
from kernels_cute.decode.step import decode_step
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute.executor import MissingWait, Race, run
from toolchain.errors import UsageError

SMALL = Step(layers=2, width=128, positions=96, vocabulary=200, clusters=3, units=(16, 32), slots=5, flying=2)
TINY = Step(layers=1, width=64, positions=32, vocabulary=64, clusters=2, units=(16, 16), slots=3, flying=0)
BOUND = 1e-5  # sums of 512 terms in f32, against the greatest logit


def _step(step: Step, case: Case, kernel: Any = None) -> dict[str, Any]:
    """Runs it on flat copies of the arrays, and returns these."""
    flat = {name: np.ascontiguousarray(array).reshape(-1).copy() for name, array in case.arrays.items()}
    made = decode_step(step) if kernel is None else kernel
    run(made, list(flat.values()), grid=step.blocks, resident=True)
    return flat


def _check(flat: dict[str, Any], case: Case, position: int) -> None:
    wanted = reference(case)
    assert np.abs(flat["logits"] - wanted["logits"]).max() <= BOUND * np.abs(wanted["logits"]).max()
    assert not flat["errors"].any()
    for name in ("keys", "values"):
        cache = flat[name].reshape(case.arrays[name].shape)
        new = cache[:, :, position].astype(np.float64)
        assert np.abs(new - wanted[name]).max() <= 2**-8 * np.abs(wanted[name]).max()
        rest = np.arange(case.positions) != position
        assert (cache[:, :, rest] == case.arrays[name][:, :, rest]).all()


def test_it_computes_a_step() -> None:
    case = make(SMALL, token=3, position=77)
    flat = _step(SMALL, case)
    _check(flat, case, 77)
    assert (flat["launches"] == 1).all()


def test_the_next_launch_finds_its_sums_cleared() -> None:
    """Also with one cluster alone, whose blocks add for themselves, at the first position."""
    step = Step(layers=1, width=64, positions=32, vocabulary=64, clusters=1, units=(32, 8), slots=3, shared_sum=False)
    case = make(step, token=5, position=0)
    first = _step(step, case)
    _check(first, case, 0)
    again = _step(step, Case(case.layers, case.width, case.positions, case.vocabulary, first))
    assert (again["logits"] == first["logits"]).all() and (again["launches"] == 2).all()


@pytest.mark.parametrize(
    ("name", "which", "found"),
    [
        ("barrier", 1, Race),  # between a block's sums of rows and their reads
        ("mbarrier.wait", 3, (MissingWait, Race)),  # for a slot that is free
        ("mbarrier.wait", -4, MissingWait),  # for a slot that is full
        ("cluster.wait", 2, Race),  # before the first words
    ],
)
def test_a_barrier_or_a_wait_less_is_found(name: str, which: int, found: Any) -> None:
    case = make(TINY, token=3, position=20)
    with pytest.raises(found):
        _step(TINY, case, without(decode_step(TINY), f"cute_nvgpu.arch.{name}", which))


def test_units_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(UsageError, match="4096 hidden units of 3072"):
        Step(clusters=16)
    with pytest.raises(UsageError):
        Step(positions=1001)
