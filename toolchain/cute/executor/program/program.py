"""A kernel as a list of steps: the operations after `cute-lower`, with branches and loops as jumps.

The same module is compiled to PTX. Only the last pass, which writes instructions as text, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import arith, llvm, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue, Use
from xdsl.ir import Block as IrBlock

from ....errors import UsageError
from ...nvgpu.descriptor_ops import InstructionDescriptorOp, SmemDescriptorOp
from ...nvvm.dialect import ReadRegister
from ..instructions.table import find
from ..state.access import LOCAL_BASE, SMEM
from ..state.block import Step, Wait, Warp
from ..state.call import WGMMA
from ..state.findings import NoSemantics
from ..state.memory import SHARED_BASE
from .elementwise import function_of, select
from .steps import (
    computed,
    descriptor,
    enter_loop,
    gep,
    jump,
    leave,
    leave_branch,
    load_step,
    move,
    nothing,
    special_register,
    store_step,
)
from .undefined import check_of
from .values import constant, kind_of, size_of, space_of

LOCAL_GAP = 16  # bytes between the registers of two tensors
FLAGS = "arch.flag."  # the beginning of those that order blocks
GRID_WAITS = ("arch.grid_wait", "griddepcontrol.wait")  # in the IR, in PTX


@dataclass
class Program:
    """`types`: of the parameters. `dims`: the threads of a block; `cluster`: the blocks of a cluster, if known.
    `constants`: the registers at the beginning. `parameters`: those of the kernel's arguments. `undefined`:
    those without a value. `fragile`: those that products of a warpgroup read and write on their own, where the text
    names them. `gaps`: the bytes of local memory that belong to no tensor. `shared_bytes`: of static shared memory."""

    name: str
    types: Sequence[Attribute]
    dims: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    steps: list[Step] = field(default_factory=list[Step])
    constants: list[Any] = field(default_factory=list[Any])
    parameters: list[int] = field(default_factory=list[int])
    undefined: list[int] = field(default_factory=list[int])
    fragile: set[int] = field(default_factory=set[int])
    local_bytes: int = 0
    gaps: list[int] = field(default_factory=list[int])
    shared_bytes: int = 0
    uses_dynamic: bool = False

    @property
    def waits(self) -> bool:
        """True if it waits for the launch before, and so may begin ahead of its end."""
        return any(step.name.endswith(GRID_WAITS) for step in self.steps)

    @property
    def flags(self) -> bool:
        """True if blocks of different clusters may order what they do, by flags."""
        return any(FLAGS in step.name for step in self.steps)


def _three(function: llvm.FuncOp, *keys: str) -> tuple[int, int, int] | None:
    for key in keys:
        if isinstance(said := function.attributes.get(key), DenseArrayBase):
            x, y, z = [*(int(n) for n in said.iter_values()), 1, 1][:3]
            return x, y, z
    return None


def program(module: ModuleOp, name: str = "") -> Program:
    """The kernel of a module after `cute-lower`. Raises UsageError or NoSemantics."""
    functions = [op for op in module.walk() if isinstance(op, llvm.FuncOp) and "nvvm.kernel" in op.attributes]
    chosen = [op for op in functions if not name or op.sym_name.data == name]
    if len(chosen) != 1:
        names = ", ".join(op.sym_name.data for op in functions)
        raise UsageError(f"no one kernel {name!r}: the module has {names or 'none'}", hint="name one of them")
    dims, cluster = _three(chosen[0], "nvvm.reqntid", "nvvm.maxntid"), _three(chosen[0], "nvvm.cluster_dim")
    made = Program(chosen[0].sym_name.data, list(chosen[0].function_type.inputs), dims, cluster)
    return _Compiler(made, module, chosen[0]).whole()


class _Compiler:
    def __init__(self, made: Program, module: ModuleOp, function: llvm.FuncOp) -> None:
        self.made, self.function = made, function
        self.slots: dict[SSAValue, int] = {}
        self.texts: dict[str, str] = {}  # of formats to print
        self.symbols = self._globals(module)

    def _globals(self, module: ModuleOp) -> dict[str, int]:
        """The addresses of static shared memory; dynamic memory follows it."""
        found: dict[str, int] = {}
        dynamic: list[llvm.GlobalOp] = []
        for op in module.walk():
            if not isinstance(op, llvm.GlobalOp):
                continue
            if op.constant and isinstance(op.value, StringAttr):
                self.texts[op.sym_name.data] = op.value.data.rstrip("\0")
                continue
            if op.addr_space.value.data != SMEM:
                raise NoSemantics(f"@{op.sym_name.data}: the executor has globals in shared memory only")
            if size_of(op.global_type) == 0:
                dynamic.append(op)
                continue
            self.made.shared_bytes = _aligned(self.made.shared_bytes, op)
            found[op.sym_name.data] = SHARED_BASE + self.made.shared_bytes
            self.made.shared_bytes += size_of(op.global_type)
        for op in dynamic:
            self.made.uses_dynamic = True
            self.made.shared_bytes = _aligned(self.made.shared_bytes, op)
            found[op.sym_name.data] = SHARED_BASE + self.made.shared_bytes
        return found

    def whole(self) -> Program:
        blocks = self.function.body.blocks
        if len(blocks) != 1:
            raise NoSemantics(
                f"{self.made.name} has branches between blocks", hint="the executor runs scf.if, scf.for and scf.while"
            )
        self.made.parameters = [self.slot(arg) for arg in blocks[0].args]
        self.body(blocks[0])
        return self.made

    def slot(self, value: SSAValue) -> int:
        """The register of a value."""
        if value not in self.slots:
            self.slots[value] = len(self.made.constants)
            self.made.constants.append(None)
        return self.slots[value]

    def body(self, block: IrBlock) -> None:
        for op in block.ops:
            self.operation(op)

    def step(self, op: Operation, run: Callable[[Warp], Wait | None], *uses: int) -> int:
        """Adds a step. Returns its number."""
        self.made.steps.append(Step(len(self.made.steps), op, run, frozenset(uses)))
        return len(self.made.steps) - 1

    def fix(self, op: Operation, value: Any) -> None:
        """The result of an operation is known."""
        self.made.constants[self.slot(op.results[0])] = value

    def operation(self, op: Operation) -> None:
        ins, outs = [self.slot(value) for value in op.operands], [self.slot(value) for value in op.results]
        match op:
            case arith.ConstantOp() | llvm.ConstantOp():
                self.fix(op, constant(op.value, op.results[0].type))
            case llvm.ZeroOp() | llvm.UndefOp():
                kind = kind_of(op.results[0].type)
                self.fix(op, kind.filled([0] * max(kind.count, 1)))
                if isinstance(op, llvm.UndefOp) and not all(_may_be_undefined(use) for use in op.results[0].uses):
                    self.made.undefined.append(outs[0])
            case llvm.AddressOfOp():
                name = op.global_name.string_value()
                self.fix(op, self.texts[name] if name in self.texts else np.array([self.symbols[name]]))
            case InstructionDescriptorOp():
                self.fix(op, np.array([op.word], np.int32))
            case SmemDescriptorOp():
                self.step(op, computed(descriptor(op), ins, outs[0]), *ins)
            case llvm.AllocaOp():
                self.fix(op, self._alloca(op))
            case llvm.ReturnOp():
                self.step(op, leave)
            case llvm.GEPOp():
                self.step(op, gep(op, ins, outs[0]), *ins)
            case llvm.LoadOp():
                self.step(op, load_step(op, ins[0], outs[0]), ins[0])
            case llvm.StoreOp():
                local = space_of(op.ptr.type) == 0  # registers may be copied before they have their values
                self.step(op, store_step(op, *ins), *([ins[1]] if local else ins))
            case arith.SelectOp() | llvm.SelectOp():
                self.step(op, computed(select, ins, outs[0]), *ins)
            case scf.YieldOp():
                pass  # its values are moved by the operation around it
            case scf.IfOp():
                self.branch(op, ins[0], outs)
            case scf.ForOp():
                self.loop(op, ins, outs)
            case scf.WhileOp():
                self.while_loop(op, ins, outs)
            case ReadRegister():
                self.step(op, special_register(op.name.removeprefix("nvvm.read.ptx.sreg."), outs[0]))
            case _ if (function := function_of(op)) is not None:
                self.step(op, computed(function, ins, outs[0], check_of(op)), *ins)
            case _:
                run, uses = find(op, ins, outs)
                self.step(op, run, *uses)

    def _alloca(self, op: llvm.AllocaOp) -> Any:
        count = op.size.owner
        assert isinstance(count, arith.ConstantOp) and isinstance(count.value, IntegerAttr)
        start = self.made.local_bytes
        size = count.value.value.data * size_of(op.elem_type)
        self.made.local_bytes += -(-size // LOCAL_GAP) * LOCAL_GAP + LOCAL_GAP
        self.made.gaps += range(start + size, self.made.local_bytes)
        return np.array([LOCAL_BASE + start])

    def branch(self, op: scf.IfOp, condition: int, outs: list[int]) -> None:
        begin = self.step(op, nothing, condition)
        self.body(op.true_region.blocks[0])
        self.moves(op, op.true_region.blocks[0].last_op, outs)
        middle = self.step(op, nothing)
        if op.false_region.blocks:
            self.body(op.false_region.blocks[0])
            self.moves(op, op.false_region.blocks[0].last_op, outs)
        end = self.step(op, nothing)

        def enter(warp: Warp) -> None:
            chosen = warp.env[condition]
            warp.masks.append((warp.active, chosen))
            inside = warp.active & chosen
            if inside.any():
                warp.set_active(inside)
            else:
                warp.pc = middle - 1

        def otherwise(warp: Warp) -> None:
            before, chosen = warp.masks[-1]
            inside = before & ~chosen
            if inside.any():
                warp.set_active(inside)
            else:
                warp.pc = end - 1

        self.replace(begin, enter)
        self.replace(middle, otherwise)
        self.replace(end, leave_branch)

    def moves(self, op: Operation, last: Operation | None, outs: list[int]) -> None:
        """The values that a region yields become results."""
        if last is None or not last.operands or not outs:
            return
        sources = [self.slot(value) for value in last.operands]
        self.step(op, move(sources, outs))

    def replace(self, number: int, run: Callable[[Warp], Wait | None]) -> None:
        """A step whose jump is known by now."""
        old = self.made.steps[number]
        self.made.steps[number] = Step(number, old.op, run, old.uses)

    def loop(self, op: scf.ForOp, ins: list[int], outs: list[int]) -> None:
        lower, upper, step, *first = ins
        block = op.body.blocks[0]
        index, *carried = (self.slot(arg) for arg in block.args)

        def enter(warp: Warp) -> None:
            warp.masks.append((warp.active, None))
            warp.env[index] = warp.env[lower]

        self.step(op, enter, lower, upper, step)
        self.step(op, move(first, carried, fresh=True))
        head = self.step(op, nothing, upper)
        self.body(block)
        self.moves(op, block.last_op, carried)

        def again(warp: Warp) -> None:
            warp.env[index] = warp.env[index] + warp.env[step]
            warp.pc = head - 1

        self.step(op, again)
        end = self.step(op, leave_branch)
        self.step(op, move(carried, outs))

        def test(warp: Warp) -> None:
            inside = warp.active & (warp.env[index] < warp.env[upper])
            if inside.any():
                warp.set_active(inside)
            else:
                warp.pc = end - 1

        self.replace(head, test)

    def while_loop(self, op: scf.WhileOp, ins: list[int], outs: list[int]) -> None:
        before, after = op.before_region.blocks[0], op.after_region.blocks[0]
        carried, passed = [self.slot(a) for a in before.args], [self.slot(a) for a in after.args]
        self.step(op, enter_loop)
        head = self.step(op, move(ins, carried, fresh=True)) + 1
        for inner in list(before.ops)[:-1]:
            self.operation(inner)
        test = before.last_op
        assert isinstance(test, scf.ConditionOp)
        condition, *values = (self.slot(value) for value in test.operands)
        self.step(op, move(values, passed))
        self.step(op, move(values, outs))
        check = self.step(test, nothing, condition)
        self.body(after)
        self.moves(op, after.last_op, carried)
        self.step(op, jump(head))
        end = self.step(op, leave_branch)

        def decide(warp: Warp) -> None:
            inside = warp.active & warp.env[condition]
            if inside.any():
                warp.set_active(inside)
            else:
                warp.pc = end - 1

        self.replace(check, decide)


def _may_be_undefined(use: Use) -> bool:
    """True for the sums that a product of a warpgroup overwrites."""
    last = use.operation.operands[-1].owner
    return (
        use.operation.name in WGMMA and isinstance(last, arith.ConstantOp)
        and isinstance(last.value, IntegerAttr) and last.value.value.data == 0
    )  # fmt: skip


def _aligned(size: int, op: llvm.GlobalOp) -> int:
    align = op.alignment.value.data if op.alignment else 16
    return -(-size // align) * align
