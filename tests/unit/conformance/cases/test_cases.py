"""The cases cover every op."""

from __future__ import annotations

import pytest

from conformance.cases import CASES
from toolchain.contract.entries import entries_of
from toolchain.contract.op import ops


def test_every_op_has_a_case_the_cpu_runs() -> None:
    """But for some that do several ops' work at once, of which tests/unit/kernels_cute/decode has smaller ones."""
    whole = {name for name, op in ops().items() if op.whole}
    assert {case.op for case in CASES if not case.gpu_only} | whole == ops().keys()
    assert whole <= {case.op for case in CASES}


@pytest.mark.parametrize("source", ["mlir", "py"])
def test_every_case_has_an_entry_in_each_of_its_dtypes(source: str) -> None:
    """A case without one is an error in the matrix of every bundle that has the op in another dtype."""
    made = {(spec.op, spec.dtype) for spec in entries_of(source)}
    wanted = [case for case in CASES if not ops()[case.op].whole]
    assert {(case.op, dtype) for case in wanted for dtype in case.dtypes()} - made == set()
