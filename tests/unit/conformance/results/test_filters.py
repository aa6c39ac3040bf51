from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from conformance.results.filters import EVERYTHING, Shape, failed_rows, parse
from conformance.results.result import CellResult, Results
from toolchain.errors import UsageError

CELL = "linear-py-bf16-cpu"


@pytest.mark.parametrize(
    ("terms", "shape", "found"),
    [
        ("M=7", "M=7 N=65", True), ("M=7", "M=70", False), ("M<=64 N>64", "M=64 N=65", True),
        ("M<64", "M=64", False), ("M!=7", "M=8", True), ("M >= 8", "M=8", True), ("K=1", "M=7", False),
        ("misaligned", "M=7 misaligned", True), ("misaligned", "M=7", False), ("M=7 key", "M=8 towering key", False),
        ("sm_90", "M=7 sm_90", True), ("nano T>64", "nano B=1 T=100", True), ("mean 3", "M=1 mean 3", True),
    ],
)  # fmt: skip
def test_shapes(terms: str, shape: str, found: bool) -> None:
    chosen = parse("", [terms])
    assert chosen.takes(CELL, shape) is found
    if found:  # no job that has such a row is left out
        for end in range(len(shape.split()) + 1):
            assert chosen.may_take(CELL, " ".join(shape.split()[:end]))


def test_one_of_several_shapes_is_enough() -> None:
    chosen = parse("py", ["M=1", "M=2"])
    assert (
        chosen.takes(CELL, "M=2") and not chosen.takes(CELL, "M=3") and not chosen.takes("linear-mlir-f32-cpu", "M=1")
    )
    assert not chosen.may_take(CELL, "M=3") and chosen.words == "py; M=1; M=2"
    assert pickle.loads(pickle.dumps(chosen)) == chosen


def test_everything_is_taken_without_a_filter() -> None:
    assert EVERYTHING.takes(CELL, "M=1") and EVERYTHING.may_take(CELL, "") and EVERYTHING.words == ""


def test_an_empty_shape_is_refused() -> None:
    with pytest.raises(UsageError, match="--shape is empty"):
        Shape(" ")


def test_rows_that_failed() -> None:
    row = CellResult(CELL, "py", "linear", "bf16", "cpu", "cpu interpreter", "M=7 N=65 sm_90", "failed")
    rows = [row, replace(row, shape="M=8", status="passed"), replace(row, shape="M=9", status="error")]
    failed = failed_rows(Results({}, rows))
    assert failed == {(CELL, "M=7 N=65 sm_90"), (CELL, "M=9")}
    chosen = replace(EVERYTHING, only=failed)
    assert chosen.takes(CELL, "M=9") and not chosen.takes(CELL, "M=8") and not chosen.takes("gelu-py-f32-cpu", "M=9")
    assert chosen.may_take(CELL, "M=7 N=65") and not chosen.may_take(CELL, "M=7 N=6") and chosen.takes_cell(CELL)
