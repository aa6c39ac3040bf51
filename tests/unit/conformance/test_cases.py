"""The cases cover every op."""

from __future__ import annotations

from conformance.cases import CASES
from toolchain.contract.entry import ops


def test_every_op_has_a_case_the_cpu_runs() -> None:
    assert {case.op for case in CASES if not case.gpu_only} == set(ops())
