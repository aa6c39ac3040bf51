"""The exit code of a run."""

from __future__ import annotations

import pytest

from benchmarks.harness.status import MACHINE, TRY_AGAIN, exit_code
from benchmarks.report.result import BenchmarkRow, Results, Status


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([], 0),
        ([("error", "CompileError: no")], 1),
        ([("ok", ""), ("error", f"{MACHINE}lost: DeviceError: x"), ("error", "y")], TRY_AGAIN),
        ([("error", f"{MACHINE}lost: DeviceError: x"), ("wrong", "2 is not 1")], 9),
    ],
)
def test_a_wrong_output_is_never_tried_again(rows: list[tuple[Status, str]], code: int) -> None:
    made = [BenchmarkRow("ops", "gelu", "mlir", "bf16", "", {}, status, detail) for status, detail in rows]
    assert exit_code(Results({}, {}, made), []) == code
