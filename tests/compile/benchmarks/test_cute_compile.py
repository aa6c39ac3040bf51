"""The benchmark of CuTe's compile: each stage has its time."""

from __future__ import annotations

from benchmarks.cute_compile import GEMMS, STAGES, compile_one, compositions


def test_each_stage_has_its_seconds() -> None:
    times = compile_one("GEMM for sm_80")
    assert set(times) == set(STAGES)
    stages = sum(times[stage] for stage in ("trace", "lower", "LLVM IR", "LLVM", "ptxas"))
    assert 0 < stages <= times["source to cubin"] < times["with imports"]
    assert {arch for _, _, arch, _ in GEMMS.values()} == {"sm_80", "sm_90a"}


def test_the_compositions_are_layouts() -> None:
    assert compositions() > 0
