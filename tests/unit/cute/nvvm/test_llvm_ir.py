from __future__ import annotations

import pytest

from toolchain.cute.nvvm import parse, to_llvm_ir
from toolchain.errors import SourceError


def lowered(body: str, arguments: str = "%p: !llvm.ptr<1>, %i: i32, %x: f32", head: str = "") -> list[str]:
    """The instructions of a kernel with this body, without blanks before them."""
    text = f"gpu.module @m {{ {head} llvm.func @k({arguments}) attributes {{nvvm.kernel}} {{ {body}\nllvm.return }} }}"
    return [line.strip() for line in to_llvm_ir(parse(text)).splitlines()]


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


def test_a_loop_carries_its_values_in_phis() -> None:
    body = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %sum = scf.for %j = %zero to %i step %one iter_args(%a = %x) -> (f32) : i32 {
      %b = arith.addf %a, %a : f32
      scf.yield %b : f32
    }
    llvm.store %sum, %p : f32, !llvm.ptr<1>"""
    phis = [line for line in lowered(body) if "phi" in line]
    assert len(phis) == 2  # the counter and the sum
    assert "[ 0, %b0 ]" in phis[0]
    assert "phi float [ %v2, %b0 ]" in phis[1]


def test_the_value_of_a_branch_comes_from_the_block_that_it_ends_in() -> None:
    body = """
    %in = arith.cmpi slt, %i, %i : i32
    %r = scf.if %in -> (f32) {
      scf.if %in {
        llvm.store %x, %p : f32, !llvm.ptr<1>
      }
      scf.yield %x : f32
    } else {
      %y = arith.addf %x, %x : f32
      scf.yield %y : f32
    }
    llvm.store %r, %p : f32, !llvm.ptr<1>"""
    lines = lowered(body)
    labels = [line[:-1] for line in lines if line.endswith(":")]
    phi = next(line for line in lines if "phi" in line)
    assert phi.count("[ ") == 2
    branches = [(lines[i - 1], label) for label in labels for i, line in enumerate(lines) if line == f"{label}:"]
    joined = next(label for i, label in enumerate(labels) if phi == lines[lines.index(f"{label}:") + 1])
    ends = [line for line, _ in branches if line == f"br label %{joined}"]
    assert len(ends) == 2  # one from each side, and the inner if does not lead there
    assert "[ %v2, %b1 ]" not in phi  # b1 is where the outer branch begins; it ends behind the inner one


def test_a_while_loop_tests_before_each_turn() -> None:
    body = """
    %r = scf.while (%a = %i) : (i32) -> i32 {
      %go = arith.cmpi slt, %a, %i : i32
      scf.condition(%go) %a : i32
    } do {
    ^bb0(%b: i32):
      %c = arith.addi %b, %b : i32
      scf.yield %c : i32
    }
    %q = arith.sitofp %r : i32 to f32
    llvm.store %q, %p : f32, !llvm.ptr<1>"""
    lines = lowered(body)
    phi = next(line for line in lines if "phi" in line)
    name = phi.split(" = ")[0]
    assert phi.startswith(f"{name} = phi i32 [ %v1, %b0 ], [ ")
    assert any(line.endswith(f"add i32 {name}, {name}") for line in lines)
    assert any(line.endswith(f"sitofp i32 {name} to float") for line in lines)


def test_what_a_launch_promises_is_written_as_attributes_of_the_function() -> None:
    text = """gpu.module @m {
      llvm.mlir.global external @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
      llvm.func @k(%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64, nvvm.grid_constant})
          attributes {nvvm.kernel, nvvm.maxntid = array<i32: 384>, nvvm.minctasm = 1 : i32} { llvm.return }
    }"""
    made = to_llvm_ir(parse(text))
    assert 'define ptx_kernel void @k(ptr byval([128 x i8]) align 64 "nvvm.grid_constant" %v0)' in made
    assert '"nvvm.maxntid"="384" "nvvm.minctasm"="1" {' in made
    assert "@tile = external addrspace(3) global [0 x i8], align 128" in made


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
