"""What an operation of `cute_nvgpu.arch` is: one instruction on pointers and registers, and its PTX text.

A row says everything of an instruction: its text, its operands, and which GPUs have it. Shared memory is addressed by
pointers of address space 3, which the text takes as 32-bit addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, f64, i32, i64
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    opt_prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from ...errors import UsageError

Asm = tuple[str, str]  # PTX text and constraints of llvm.inline_asm: results first
# What a register of a constraint may hold: 32 bits or an address of shared memory, 64 bits or an address, floats.
KINDS = {"r": "i32 or !llvm.ptr<3>", "l": "i64 or !llvm.ptr", "f": "f32", "d": "f64"}


class ArchOp(IRDLOperation):
    """An instruction. `atom`: which one of a family; `n`: a number that the instruction has written in it."""

    ROW: ClassVar[PtxForm]
    args = var_operand_def()
    res = var_result_def()
    atom = opt_prop_def(StringAttr)
    n = opt_prop_def(IntegerAttr)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "`(` $args `)` attr-dict `:` functional-type($args, $res)"

    def __init__(
        self, args: Sequence[SSAValue], results: Sequence[Attribute] = (), atom: str = "", n: int | None = None
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "atom": StringAttr(atom) if atom else None,
            "n": IntegerAttr(n, i32) if n is not None else None,
        }
        super().__init__(operands=[args], properties=properties, result_types=[results])

    @property
    def number(self) -> int:
        if self.n is None:
            raise UsageError("the instruction needs its number: {n = 1 : i32}")
        return self.n.value.data

    @property
    def atom_name(self) -> str:
        return self.atom.data if self.atom else ""

    @property
    def asm(self) -> Asm:
        return self.ROW.asm(self)

    def verify_(self) -> None:
        row = self.ROW
        if row.numbers is not None and (self.n is None or self.number not in row.numbers):
            given = "has none" if self.n is None else f"has {self.number}"
            raise VerifyException(f"{self.name} needs its number, {{n = N : i32}}, {said(row.numbers)}, and {given}")
        if row.atoms and self.atom_name not in row.atoms:
            raise VerifyException(
                f'{self.name} has no form {self.atom_name!r}: {{atom = "..."}} is one of {", ".join(row.atoms)}'
            )
        try:
            constraints = self.asm[1]
        except UsageError as error:
            hint = f"; {error.hint}" if error.hint else ""
            raise VerifyException(f"{self.name}: {error}{hint}") from error
        self._check_registers([part for part in constraints.split(",") if part and not part.startswith("~")])

    def _check_registers(self, wanted: list[str]) -> None:
        """Each value has a register of its kind."""
        if len(wanted) != len(self.args) + len(self.res):
            tied = sum(part.isdigit() for part in wanted)
            raise VerifyException(
                f"{self.name} {self.atom_name}: {len(self.args)} operands and {len(self.res)} results, "
                f"and the instruction has {len(wanted)} ({tied} of them both); operands: {self.ROW.operands or 'none'}"
            )
        for number, (value, part) in enumerate(zip([*self.res, *self.args], wanted, strict=True)):
            kind = wanted[int(part)][-1] if part.isdigit() else part[-1]
            if not _fits(value.type, kind):
                count = len(self.res)
                which = f"result {number}" if number < count else f"operand {number - count}"
                raise VerifyException(f"{self.name}: {which} is {value.type}, and the instruction takes {KINDS[kind]}")


def _fits(kind: Attribute, register: str) -> bool:
    if register in "fd":
        return kind == (f32 if register == "f" else f64)
    if isinstance(kind, LLVMPointerType):
        return (register == "r") == is_shared(kind)
    return kind == (i32 if register == "r" else i64)


def is_shared(kind: Attribute) -> bool:
    """True for a pointer to shared memory."""
    return isinstance(kind, LLVMPointerType) and str(kind) == "!llvm.ptr<3>"


def said(numbers: Container[int]) -> str:
    """The numbers that an instruction takes, in words."""
    if isinstance(numbers, range):
        steps = f" in steps of {numbers.step}" if numbers.step > 1 else ""
        return f"{numbers[0]} to {numbers[-1]}{steps}"
    assert isinstance(numbers, tuple)
    return "one of " + ", ".join(map(str, numbers))


@dataclass(frozen=True)
class PtxForm:
    """`asm`: the PTX of an operation. `does`, `operands`: for the reference and for errors; brackets stand for what may
    be left out. `targets`: of the first GPU that has it, and `family`: only these targets, which end in `a`, have it.
    `numbers`: those that `n` may be. `atoms`: the forms of the instruction, if it has few. `memory`: no other access to
    memory may move across it."""

    asm: Callable[[ArchOp], Asm]
    does: str
    operands: str = ""
    since: int = 80
    family: tuple[str, ...] = ()
    numbers: range | tuple[int, ...] | None = None
    atoms: tuple[str, ...] = ()
    memory: bool = True

    def runs_on(self, target: str) -> bool:
        """True if a target such as `sm_90a` has the instruction."""
        if self.family:
            return target in self.family
        number = re.fullmatch(r"sm_(\d+)[af]?", target)
        return number is not None and int(number[1]) >= self.since

    @property
    def where(self) -> str:
        """The targets that have it, in words."""
        return ", ".join(self.family) if self.family else f"sm_{self.since} and newer"


def fixed(text: str, constraints: str = "") -> Callable[[ArchOp], Asm]:
    """An instruction whose text is always the same; `{n}` and `{atom}` stand for the operation's own."""
    return lambda op: (
        text.replace("{n}", str(op.number) if op.n is not None else "").replace("{atom}", op.atom_name),
        constraints,
    )


def braces(first: int, count: int) -> str:
    """A vector of registers in PTX: `{$0, $1}`."""
    return "{" + ", ".join(f"${first + i}" for i in range(count)) + "}"
