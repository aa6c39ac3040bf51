"""One instruction as its semantics see it: operands, results, and values that are only passed on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue
from xdsl.utils.test_value import create_ssa_value

from toolchain.cute.executor import DivergentBarrier
from toolchain.cute.executor.state.banks import Counter
from toolchain.cute.executor.state.block import NEVER, Block, Step, Ticket, Warp
from toolchain.cute.executor.state.call import Call, moved, origin
from toolchain.cute.executor.state.memory import GlobalMemory, Region
from toolchain.cute.executor.state.shadow import Shadow
from toolchain.cute.nvgpu import ARCH

OP = arith.AddiOp(create_ssa_value(i32), create_ssa_value(i32))


def warp(*registers: Any, threads: int = 32) -> Warp:
    """A warp at the only step of a kernel."""
    shared = Region("shared memory", 1024, np.zeros(0, np.uint8), Shadow(0), ready=False)
    steps = [Step(0, OP, lambda _: None)]
    block = Block("k", steps, (0, 0, 0), (1, 1, 1), (threads, 1, 1), GlobalMemory(), shared, Counter())
    return Warp(block, 0, registers, 0)


def test_an_operand_has_a_row_for_each_thread() -> None:
    same, each = np.array([7]), np.arange(32)
    call = Call(OP, [1, 0], [])
    assert call.arg(warp(each, same), 0).tolist() == [7] * 32
    assert call.arg(warp(each, same), 1).tolist() == list(range(32))
    assert call.arg(warp(each, np.zeros((1, 4))), 0).shape == (32, 4)


def test_what_all_active_threads_must_have_the_same() -> None:
    made = warp(np.where(np.arange(32) < 4, 5, 6))
    call = Call(OP, [0], [])
    with pytest.raises(DivergentBarrier, match="operand 0 differs between the threads of a warp: 5, 6"):
        call.one(made, 0)
    made.set_active(np.arange(32) < 4)
    assert call.one(made, 0) == 5


def test_registers_of_all_types_as_bytes() -> None:
    made = warp(np.arange(32, dtype=np.int32), np.array([1.5], np.float32), np.array([9], np.int32))
    bytes_ = Call(OP, [2, 0, 1], []).registers(made, 1, 2)
    assert bytes_.shape == (32, 8)
    assert bytes_[:, :4].copy().view(np.int32)[:, 0].tolist() == list(range(32))
    assert (bytes_[:, 4:].copy().view(np.float32) == 1.5).all()


def test_results_have_their_values() -> None:
    made = warp(None, None)
    made.pending[1] = Ticket(NEVER)
    Call(OP, [], [0, 1]).give(made, [np.array([1]), np.array([2])])
    assert [int(value[0]) for value in made.env] == [1, 2] and not made.pending
    with pytest.raises(ValueError, match="shorter"):
        Call(OP, [], [0, 1]).give(made, [np.array([1])])


def held(*values: SSAValue) -> list[SSAValue]:
    op = ARCH["registers"].create(operands=values, result_types=[value.type for value in values])
    return list(op.results)


def test_registers_pass_values_on() -> None:
    new = arith.AddfOp(create_ssa_value(f32), create_ssa_value(f32)).result
    loaded = llvm.LoadOp(create_ssa_value(llvm.LLVMPointerType()), f32).results[0]
    first, second = held(*held(new, loaded))
    assert origin(first) is new and origin(second) is loaded
    assert not moved(first) and moved(second)
