"""The operations that become one instruction of LLVM IR, and those that have none."""

from __future__ import annotations

import pytest

from toolchain.errors import SourceError

from .lowered import lowered


@pytest.mark.parametrize(
    ("body", "instruction"),
    [
        ("%0 = arith.addi %i, %i : i32", "add i32 %v1, %v1"),
        ("%0 = arith.shrui %i, %i : i32", "lshr i32 %v1, %v1"),
        ("%0 = arith.cmpi ult, %i, %i : i32", "icmp ult i32 %v1, %v1"),
        ("%0 = arith.cmpf oge, %x, %x : f32", "fcmp oge float %v2, %v2"),
        ("%0 = arith.negf %x : f32", "fneg float %v2"),
        ("%0 = arith.truncf %x : f32 to bf16", "fptrunc float %v2 to bfloat"),
        ("%0 = arith.maximumf %x, %x : f32", "call float @llvm.maximum.f32(float %v2, float %v2)"),
        ("%c = arith.constant 1.5 : f32\n%0 = arith.addf %x, %c : f32", "fadd float %v2, 0x3FF8000000000000"),
        (
            "%c = arith.constant 1.5 : bf16\n%d = arith.extf %c : bf16 to f32",
            "fpext bfloat 0xR3FC0 to float",
        ),
        (
            "%0 = llvm.getelementptr %p[%i, 3] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<4 x f32>",
            "getelementptr [4 x float], ptr addrspace(1) %v0, i32 %v1, i32 3",
        ),
        (
            "%0 = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> f32",
            "load float, ptr addrspace(1) %v0, align 16",
        ),
        ("%0 = nvvm.read.ptx.sreg.tid.y : i32", "call i32 @llvm.nvvm.read.ptx.sreg.tid.y()"),
    ],
)
def test_each_operation_is_the_instruction_that_means_the_same(body: str, instruction: str) -> None:
    assert any(line.endswith(f"= {instruction}") for line in lowered(body)), lowered(body)


def test_calls_of_the_gpu_have_no_result() -> None:
    lines = lowered("nvvm.barrier0\nnvvm.cp.async.commit.group\nnvvm.cp.async.wait.group 1")
    assert [line for line in lines if line.startswith("call")] == [
        "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",
        "call void @llvm.nvvm.cp.async.commit.group()",
        "call void @llvm.nvvm.cp.async.wait.group(i32 1)",
    ]
    assert "declare void @llvm.nvvm.cp.async.wait.group(i32)" in lines


def test_inline_assembly_keeps_its_text_and_side_effects() -> None:
    body = (
        '%0 = "llvm.inline_asm"(%x) <{asm_string = "{ ex2.approx.ftz.f32 $0, $1; }", constraints = "=f,f", '
        "has_side_effects, tail_call_kind = #llvm.tailcallkind<none>}> : (f32) -> f32"
    )
    call = '= call float asm sideeffect "{ ex2.approx.ftz.f32 $0, $1; }", "=f,f"(float %v2)'
    assert lowered(body)[3].endswith(f"{call} convergent nounwind")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("%c = arith.constant dense<1.0> : vector<2x2xf32>\n%0 = arith.addf %c, %c : vector<2x2xf32>", "one dimension"),
        ("%0 = math.sin %x : f32", "k: math.sin: this operation has no form"),
    ],
)
def test_an_operation_without_a_form_is_named(body: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        lowered(body)
