"""Values in registers, on a block that is lowered by hand."""

from __future__ import annotations

import pytest
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntAttr, bf16, f32, i32
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from toolchain.cute.nvvm.emit import Emitter
from toolchain.cute.passes.registers import Registers


class Lowered:
    """A block with one tensor of 8 f32 in registers. Its arguments are two f32, an i32 and a bf16."""

    def __init__(self) -> None:
        self.block = Block(arg_types=[f32, f32, i32, bf16])
        self.builder = Emitter(InsertPoint.at_end(self.block))
        self.registers = Registers(self.builder)
        slots = llvm.AllocaOp(self.builder.number(1), llvm.LLVMArrayType(IntAttr(8), f32), alignment=16)
        self.base: SSAValue = self.builder.insert(slots).res
        self.registers.add(self.base)

    @property
    def did(self) -> list[str]:
        return [op.name.removeprefix("llvm.") for op in self.block.ops if op.name in ("llvm.load", "llvm.store")]


@pytest.fixture
def lowered() -> Lowered:
    return Lowered()


def test_a_value_that_was_written_is_read_without_memory(lowered: Lowered) -> None:
    first, second, *_ = lowered.block.args
    lowered.registers.write(lowered.base, 4, first)
    lowered.registers.write(lowered.base, 4, second)
    assert lowered.registers.read(lowered.base, 4, f32) is second
    assert lowered.did == []


def test_a_slot_is_read_once_and_written_once_in_a_block(lowered: Lowered) -> None:
    once = lowered.registers.read(lowered.base, 0, f32)
    assert lowered.registers.read(lowered.base, 0, f32) is once
    for value in lowered.block.args[:2]:
        lowered.registers.write(lowered.base, 0, value)
    lowered.registers.flush_all()
    assert lowered.did == ["load", "store"]
    lowered.registers.read(lowered.base, 0, f32)  # nothing is known behind a block
    assert lowered.did == ["load", "store", "load"]


def test_values_of_other_extents_meet_in_memory(lowered: Lowered) -> None:
    _, _, word, half = lowered.block.args
    lowered.registers.write(lowered.base, 2, half)
    lowered.registers.read(lowered.base, 0, i32)
    assert lowered.did == ["store", "load"]
    lowered.registers.write(lowered.base, 0, word)
    lowered.registers.write(lowered.base, 2, half)  # one half of the word
    lowered.registers.flush_all()
    assert lowered.did == ["store", "load", "store", "store"]


def test_registers_whose_address_others_have_are_memory(lowered: Lowered) -> None:
    lowered.registers.write(lowered.base, 0, lowered.block.args[0])
    lowered.registers.share(lowered.base)
    lowered.registers.write(lowered.base, 0, lowered.block.args[1])
    lowered.registers.read(lowered.base, 0, f32)
    lowered.registers.read(lowered.base, 0, f32)
    assert lowered.did == ["store", "store", "load", "load"]


def test_nothing_reads_the_slots_behind_the_kernel(lowered: Lowered) -> None:
    lowered.registers.write(lowered.base, 0, lowered.block.args[0])
    lowered.registers.forget()
    lowered.registers.flush_all()
    assert lowered.did == []
