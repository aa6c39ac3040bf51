"""Epilogues: every schedule takes every one, and its instructions follow from the steps."""

from __future__ import annotations

import re

import pytest

from kernels_cute.products import linear, linear_sm90
from kernels_cute.products.epilogues import EPILOGUES, parameters
from toolchain.contract.op import ops
from toolchain.cute.dsl import Kernel

ARCHES = ("sm_80", "sm_90a")
SUMS = 64 * 64 // 128  # of a thread
ROWS = {"sm_80": 4, "sm_90a": 2}  # of a thread


def kernel_of(op: str, arch: str) -> Kernel:
    if arch == "sm_80":
        return linear.linear("bf16", linear.Tiles(64, 64, 32, 2), op, EPILOGUES[op])
    return linear_sm90.linear("bf16", linear_sm90.Tiles(64, 64, 64, 2), op, EPILOGUES[op])


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("op", EPILOGUES)
def test_the_instructions_follow_from_the_steps(op: str, arch: str) -> None:
    ptx = kernel_of(op, arch).ptx(arch)
    assert f".entry {op}(" in ptx
    assert ".local" not in ptx  # every value is in a register
    assert len(re.findall(r"tanh\.approx\.f32", ptx)) == (SUMS if op == "linear_gelu" else 0)
    # Two elements of the bias at once, the same for all rows of a thread, and two of the residual, which sm_90a has in
    # shared memory.
    bias, residual = SUMS // 2 // ROWS[arch], SUMS // 2 if arch == "sm_80" else 0
    brought = len(re.findall(r"ldmatrix\.sync\.aligned\.m8n8\.x4\.shared", ptx)) if arch == "sm_90a" else 0
    assert brought == (SUMS // 8 if op == "linear_residual" and arch == "sm_90a" else 0)
    reads = len(re.findall(r"ld\.global\.b32", ptx))
    assert reads == {"linear_residual": bias + residual, "logits": 0}.get(op, bias)


@pytest.mark.parametrize("op", EPILOGUES)
def test_a_kernel_takes_its_ops_parameters_in_order(op: str) -> None:
    wanted = [param.storage("f16") for param in ops()[op].params]
    assert [made.dtype for made in EPILOGUES[op].parameters("f16")] == wanted  # pyright: ignore[reportAttributeAccessIssue]
    assert list(EPILOGUES[op].operands([*wanted, "map"])) == [param.name for param in ops()[op].params]


def test_a_scalar_is_a_parameter_too() -> None:
    assert [type(made).__name__ for made in parameters("layernorm", "f32")] == ["Array"] * 4 + ["Float32"]
