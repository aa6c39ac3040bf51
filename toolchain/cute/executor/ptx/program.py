"""A kernel in PTX as a list of steps of the executor, the same that runs the IR (executor/program.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....errors import UsageError
from ...nvvm.dialect import REGISTERS
from ..instructions.table import ROWS, performed
from ..program.program import Program
from ..program.steps import jump, leave, nothing, special_register
from ..state.access import LOCAL_BASE
from ..state.block import Step
from ..state.call import Call
from ..state.findings import NoSemantics
from ..state.memory import SHARED_BASE
from . import control, registers
from .forms import Form, Unknown, form_of
from .memory import loads, stores
from .registers import Run, moved
from .scalar import DTYPES, scalar
from .text import BITS, Entry, Instruction, Operand, PtxModule, Variable
from .types import types_of

SPECIAL = {name.replace("cluster.", "cluster_"): name for name in REGISTERS}
WGMMA = "wgmma.mma_async"


@dataclass(frozen=True)
class PtxStep(Step):
    """A step of an instruction: its opcode, and its line."""

    opcode: str = ""
    at: str = ""

    @property
    def name(self) -> str:
        return self.opcode

    @property
    def location(self) -> str:
        return self.at


def program_of(module: PtxModule, name: str = "") -> Program:
    """The kernel of a module. Raises UsageError, and NoSemantics with the line of what the executor does not know."""
    chosen = [entry for entry in module.entries.values() if not name or entry.name == name]
    if len(chosen) != 1:
        names = ", ".join(module.entries)
        raise UsageError(f"no one kernel {name!r}: the text has {names or 'none'}", hint="name one of them")
    return _Builder(module, chosen[0]).whole()


@dataclass
class _Builder:
    module: PtxModule
    entry: Entry
    made: Program = field(init=False)
    slots: dict[str, int] = field(default_factory=dict[str, int])
    symbols: dict[str, int] = field(default_factory=dict[str, int])  # addresses of variables
    parameters: dict[str, int] = field(default_factory=dict[str, int])
    numbers: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    branches: list[tuple[int, Instruction, int]] = field(default_factory=list[tuple[int, Instruction, int]])
    now: Instruction = field(init=False)

    def __post_init__(self) -> None:
        entry = self.entry
        self.made = Program(entry.name, types_of(entry.parameters), dims=entry.dims, cluster=entry.cluster)
        for each in entry.registers:
            self.slots[each] = self.new(None)
        for parameter in entry.parameters:
            self.parameters[parameter.name] = self.new(None)
        self.made.parameters = list(self.parameters.values())

    def new(self, value: Any) -> int:
        """A register that holds a value at the beginning."""
        self.made.constants.append(value)
        return len(self.made.constants) - 1

    def fail(self, each: Instruction, message: str) -> NoSemantics:
        return NoSemantics(f"{self.module.file}:{each.line}: {message}")

    def whole(self) -> Program:
        for variable in sorted((*self.module.variables, *self.entry.variables), key=lambda one: one.size == 0):
            self.place(variable)
        self.fragile()
        blocks, labels = control.blocks_of(self.entry.body, self.module.file)
        joins = control.post_dominators(blocks)
        parting = {at for at, block in enumerate(blocks) if block.code and block.code[-1].guard is not None
                   and (control.is_branch(block.code[-1]) or control.is_leave(block.code[-1]))}  # fmt: skip
        meeting = {joins[at] for at in parting}
        unwritten = control.read_unwritten(blocks, registers.read_and_written)
        for name in unwritten:
            slot, type_ = self.slots[name], self.entry.registers[name]
            self.made.constants[slot] = np.zeros(1, DTYPES[type_])
            self.made.undefined.append(slot)
        firsts = dict[int, int]()
        end = Instruction(self.entry.body[-1].line if self.entry.body else self.entry.line, "ret")
        for at in range(len(blocks) + 1):
            firsts[at] = len(self.made.steps)
            if at in meeting:
                code = blocks[at].code if at < len(blocks) else []
                self.step(code[0] if code else end, control.join(len(self.made.steps)))
            for each in blocks[at].code if at < len(blocks) else ():
                self.now = each
                self.instruction(each, at)
        self.step(end, leave)
        for number, each, at in self.branches:
            target = labels[each.operands[0].name] if control.is_branch(each) else len(blocks)
            self.jump(number, each, firsts[target], firsts[joins[at]])
        return self.made

    def place(self, variable: Variable) -> None:
        """Gives a variable its address."""
        if variable.space == "local":
            start = -(-self.made.local_bytes // variable.align) * variable.align
            self.symbols[variable.name] = LOCAL_BASE + start
            self.made.local_bytes = start + variable.size
        elif variable.space == "shared":
            start = -(-self.made.shared_bytes // variable.align) * variable.align
            self.symbols[variable.name] = SHARED_BASE + start
            self.made.shared_bytes = start + variable.size
            self.made.uses_dynamic |= variable.size == 0
        else:
            raise NoSemantics(f"{self.module.file}: {variable.name}: the executor has no .{variable.space} variables")

    def fragile(self) -> None:
        """Notes the registers that wgmma reads and writes on its own: what writes them needs a fence behind it."""
        for each in self.entry.body:
            if each.opcode.startswith(WGMMA):
                parts = [part for operand in each.operands[:2] if operand.kind == "vector" for part in operand.parts]
                self.made.fragile |= {self.slots[part.name] for part in parts if part.kind == "register"}

    def step(self, each: Instruction, run: Run, uses: Sequence[int] = ()) -> int:
        """Adds a step. Returns its number."""
        number = len(self.made.steps)
        at = f"{self.module.file}:{each.line}"
        self.made.steps.append(PtxStep(number, None, run, frozenset(uses), opcode=each.opcode, at=at))
        return number

    def jump(self, number: int, each: Instruction, target: int, join: int) -> None:
        """The step of a branch whose target is known by now."""
        old = self.made.steps[number]
        assert isinstance(old, PtxStep)
        if each.guard is None:
            run = jump(target)
        else:
            run = control.branch(target, join, self.slots[each.guard.name], negated=each.negated)
        self.made.steps[number] = PtxStep(number, None, run, old.uses, opcode=old.opcode, at=old.at)

    # The registers of operands, for forms.py.

    def slot(self, operand: Operand) -> int:
        match operand.kind:
            case "register":
                return self.slots[operand.name]
            case "number":
                return self.number(operand, "b32")
            case "symbol" if operand.name in self.parameters:
                return self.parameters[operand.name]
            case "_":
                return self.fresh()
            case _:
                raise Unknown(f"an operand {operand.name or operand.kind}")

    def number(self, operand: Operand, type_: str) -> int:
        key = (operand.value, f"{type_} {operand.is_float}")
        if key not in self.numbers:
            self.numbers[key] = self.new(registers.constant(operand, type_))
        return self.numbers[key]

    def fresh(self) -> int:
        return self.new(None)

    def address(self, operand: Operand) -> int:
        if operand.kind != "memory":
            raise Unknown("an operand that is no address")
        if operand.parts[0].kind == "register" and not operand.offset:
            return self.slots[operand.parts[0].name]
        made, at = self.fresh(), self.place_of(operand)

        def run(warp: Any) -> None:
            warp.env[made] = at(warp)

        self.step(self.now, run, self.registers_in(operand))
        return made

    def place_of(self, operand: Operand) -> Callable[[Any], Any]:
        """The address of `[register + offset]` or `[variable + offset]`."""
        base, offset = operand.parts[0], operand.offset
        if base.kind == "symbol" and base.name in self.symbols:
            known = np.array([self.symbols[base.name] + offset])
            return lambda _: known
        if base.kind != "register":
            raise Unknown(f"an address {base.name or base.value}")
        slot = self.slots[base.name]

        def made(warp: Any) -> Any:
            value = warp.env[slot].astype(np.int64)
            return value + offset if offset else value

        return made

    def registers_in(self, *operands: Operand) -> list[int]:
        return [self.slots[name] for operand in operands for name in registers.names_in(operand)]

    def reader(self, operand: Operand, type_: str) -> registers.Read:
        if operand.kind == "register":
            return registers.reader(self.slots[operand.name], self.entry.registers[operand.name], type_)
        if operand.kind == "number":
            value = registers.constant(operand, type_)
            return lambda _: value
        if operand.kind == "symbol" and operand.name in self.symbols:
            address = np.array([self.symbols[operand.name]], DTYPES[type_])
            return lambda _: address
        if operand.kind == "symbol" and operand.name in self.parameters:
            slot = self.parameters[operand.name]
            return lambda warp: warp.env[slot]
        raise Unknown(f"an operand {operand.name or operand.kind}")

    def writer(self, operand: Operand, type_: str) -> registers.Write:
        if operand.kind == "_":
            return lambda _, __: None
        if operand.kind != "register":
            raise Unknown("a result that is no register")
        slot = self.slots[operand.name]
        return registers.writer(slot, self.entry.registers[operand.name], type_, fragile=slot in self.made.fragile)

    # Instructions.

    def instruction(self, each: Instruction, at: int) -> None:
        if control.is_branch(each) or control.is_leave(each):
            uses = self.registers_in(each.guard) if each.guard is not None else []
            self.branches.append((self.step(each, nothing, uses), each, at))
            return
        try:
            run, uses = self.meaning(each)
        except (Unknown, IndexError, KeyError) as error:
            said = f": {error}" if isinstance(error, Unknown) else ""
            raise self.fail(each, f"the executor does not know this form of {each.opcode}{said}") from error
        reads, _ = registers.read_and_written(each)
        touched = {self.slots[name] for name in reads} & self.made.fragile
        if touched and not each.opcode.startswith(WGMMA):
            run = registers.noted(run, touched)
        if each.guard is not None:
            guard = self.slots[each.guard.name]
            run, uses = registers.guarded(run, guard, negated=each.negated), [*uses, guard]
        self.step(each, run, uses)

    def meaning(self, each: Instruction) -> tuple[Run, list[int]]:
        """What a warp does at an instruction, and the registers that must have their values."""
        words, given = each.words, each.operands
        if words[0] == "mov" or words[:2] == ["ld", "param"] or words[0] == "cvta":
            return self.move(each), self.registers_in(*given[1:])
        if words[0] == "ld":
            return loads(words, given, self), self.registers_in(given[1])
        if words[0] == "st":
            return stores(words, given, self), self.registers_in(*given)
        if (form := form_of(each.opcode, given, self)) is not None:
            return self.performed(form)
        if (found := scalar(each.opcode)) is not None and len(given) == 1 + len(found.takes):
            reads = [self.reader(operand, type_) for operand, type_ in zip(given[1:], found.takes, strict=True)]
            run = registers.computed(found.function, reads, self.writer(given[0], found.gives), divides=found.divides)
            return run, self.registers_in(*given[1:])
        raise self.fail(each, f"the executor does not know the instruction {each.opcode}")

    def move(self, each: Instruction) -> Run:
        """`mov`, `ld.param` and `cvta`: a value goes from one register to another, or to the parts of a vector."""
        words, (to, source) = each.words, each.operands
        type_ = words[-1]
        if words[0] == "cvta" and (words[1:-1] not in (["param"], ["to", "global"], ["to", "shared"], ["local"],
                                                        ["global"], ["to", "local"], ["shared"])):  # fmt: skip
            raise Unknown("an address space")
        if words[:2] == ["ld", "param"]:
            if source.offset or source.parts[0].name not in self.parameters or to.kind != "register":
                raise Unknown("a part of a parameter")
            source = source.parts[0]
        if source.kind == "special":
            if source.name not in SPECIAL:
                raise Unknown(f"a register %{source.name}")
            return registers.merged(special_register(SPECIAL[source.name], self.slot(to)), [self.slot(to)])
        if to.kind == "vector" or source.kind == "vector":
            return self.vector_move(to, source, type_)
        if source.kind == "register" and BITS[self.entry.registers[source.name]] == BITS[type_]:
            slot = self.slots[source.name]  # as it stands: it may be the address of a tensor map
            return moved(lambda warp: warp.env[slot], self.writer(to, type_))
        return moved(self.reader(source, type_), self.writer(to, type_))

    def vector_move(self, to: Operand, source: Operand, type_: str) -> Run:
        many = to if to.kind == "vector" else source
        part = f"b{BITS[type_] // len(many.parts)}"
        if to.kind == "vector":
            return registers.taken_apart(self.reader(source, type_), [self.writer(one, part) for one in to.parts], part)
        return registers.put_together([self.reader(one, part) for one in source.parts], self.writer(to, type_), type_)

    def performed(self, form: Form) -> tuple[Run, list[int]]:
        """What a warp does at an instruction that the executor has as an operation."""
        name = form.name if form.name.startswith("nvvm.") else f"cute_nvgpu.arch.{form.name}"
        run, uses = performed(ROWS[name], Call(None, form.ins, form.outs, form.number, form.atom))
        if form.floats:
            run = registers.as_floats(run, form.ins)
        if form.outs and not form.name.startswith("mma.wgmma"):
            fragile = [out for out in form.outs if out in self.made.fragile]
            run = registers.merged(run, form.outs, fragile)
        if form.as_predicate is not None:
            if self.now.guard is not None:
                raise Unknown("with a predicate of its own")
            self.step(self.now, run, uses)
            run, uses = registers.as_predicate(form.outs[0], form.as_predicate, form.lane), []
        return run, [each for each in uses if each < len(self.made.constants)]
