"""How results and exit codes tell an error of the machine from one of a kernel. Needs no PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.errors import ConformanceError

from ..report.result import BenchmarkRow, Results

MACHINE = "error of the machine: "  # how the detail of such a row begins; conformance/retries.toml declares them
TRY_AGAIN = 75  # the exit code after one: EX_TEMPFAIL of sysexits.h


def exit_code(results: Results, slower: Sequence[BenchmarkRow]) -> int:
    """Of a run: 9 if an output was wrong, else 75 after an error of the machine, else 1 if a row failed or is too slow.
    A wrong output is a result, so whoever tries again after 75 never hides one."""
    if any(row.status == "wrong" for row in results.rows):
        return ConformanceError.exit_code
    if any(row.status == "error" and row.detail.startswith(MACHINE) for row in results.rows):
        return TRY_AGAIN
    return int(bool(results.failures or slower))
