"""Branches and structured operations in LLVM IR: where values come from."""

from __future__ import annotations

from .lowered import lowered


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
