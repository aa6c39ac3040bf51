"""The operations `cute_nvgpu.arch.*`: one instruction each, on pointers and registers.

A row says what PTX text an operation becomes. Shared memory is addressed by pointers of address space 3; the text takes
them as 32-bit addresses. Source: PTX ISA 9.0, the instruction of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from ...errors import UsageError
from ..atoms import find, find_copy

Asm = tuple[str, str]  # PTX text and constraints of llvm.inline_asm: results first


class ArchOp(IRDLOperation):
    """An instruction. `atom`: which one of a family; `n`: a number that the instruction has written in it."""

    ROW: ClassVar[Row]
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
        assert self.n is not None
        return self.n.value.data

    @property
    def atom_name(self) -> str:
        return self.atom.data if self.atom else ""

    @property
    def asm(self) -> Asm:
        return self.ROW.asm(self)

    def verify_(self) -> None:
        if self.ROW.numbered and self.n is None:
            raise VerifyException(f"{self.name} needs its number: {{n = 1 : i32}}")
        try:
            constraints = self.asm[1]
        except UsageError as error:
            raise VerifyException(f"{self.name}: {error}") from error
        wanted = len([part for part in constraints.split(",") if part and not part.startswith("~")])
        tied = sum(part.isdigit() for part in constraints.split(","))
        if wanted != len(self.args) + len(self.res):
            raise VerifyException(
                f"{self.name} {self.atom_name}: {len(self.args)} operands and {len(self.res)} results, "
                f"and the instruction has {wanted} ({tied} of them both)"
            )


@dataclass(frozen=True)
class Row:
    """`asm`: the PTX of an operation. `arch`: the lowest architecture that has it. `numbered`: it needs `n`. `memory`:
    no other access to memory may move across it."""

    asm: Callable[[ArchOp], Asm]
    arch: int = 80
    numbered: bool = False
    memory: bool = True


def _fixed(text: str, constraints: str = "") -> Callable[[ArchOp], Asm]:
    return lambda _: (text, constraints)


def _cp_async(op: ArchOp) -> Asm:
    """With a third operand, the bytes to read: the rest of the destination becomes zero."""
    cache = "cg" if op.number == 16 else "ca"
    partial = len(op.args) == 3
    text = f"cp.async.{cache}.shared.global [$0], [$1], {op.number}{', $2' * partial};"
    return text, "r,l" + ",r" * partial


def _wgmma(op: ArchOp) -> Asm:
    """C += A x B of a warpgroup. Operands: C's registers, descriptors of A and B, and 0 to overwrite C."""
    name, _, majors = op.atom_name.rpartition(".")
    if majors not in ("kk", "km", "mk", "mm"):
        raise UsageError(f"{op.atom_name}: the atom is followed by what is side by side in A and in B, such as .km")
    atom = find(name)
    if atom.ab not in ("f16", "bf16") and majors != "kk":
        raise UsageError(f"{atom.name} takes operands with K side by side only, and these are {majors}")
    count = atom.registers("c")
    regs = ", ".join(f"${i}" for i in range(count))
    a, b, keep = (f"${2 * count + i}" for i in range(3))
    transposed = f", {int(majors[0] == 'm')}, {int(majors[1] == 'm')}" if atom.ab in ("f16", "bf16") else ""
    name = f"wgmma.mma_async.sync.aligned.m64n{atom.n}k{atom.k}.f32.{atom.ab}.{atom.ab}"
    text = f"{{\n.reg .pred p;\nsetp.ne.b32 p, {keep}, 0;\n{name} {{{regs}}}, {a}, {b}, p, 1, 1{transposed};\n}}"
    return text, ",".join([*["=f"] * count, *map(str, range(count)), "l", "l", "r"])


def _wait(_: ArchOp) -> Asm:
    text = "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n@!done bra again;\n}"
    return text.replace("again", "again_${:uid}"), "r,r"


def _tma(op: ArchOp, *, load: bool) -> Asm:
    """Loads: destination, tensor map, mbarrier, coordinates. Stores: source, tensor map, coordinates."""
    first = 3 if load else 2
    rank = len(op.args) - first
    where = ", ".join(f"${first + i}" for i in range(rank))
    if load:
        name = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        return f"{name} [$0], [$1, {{{where}}}], [$2];", "r,l,r" + ",r" * rank
    return (
        f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [$1, {{{where}}}], [$0];",
        "r,l" + ",r" * rank,
    )


def _set_registers(op: ArchOp) -> Asm:
    return f"setmaxnreg.{op.atom_name or 'inc'}.sync.aligned.u32 {op.number};", ""


ROWS: dict[str, Row] = {
    "copy.ldmatrix": Row(lambda op: find_copy(op.atom_name).inline_asm, memory=True),
    "copy.stmatrix": Row(lambda op: find_copy(op.atom_name).inline_asm, 90),
    "copy.cp_async": Row(_cp_async, numbered=True),
    "mma.sync": Row(lambda op: find(op.atom_name).inline_asm, memory=False),
    "mma.wgmma": Row(_wgmma, 90),
    "wgmma.fence": Row(_fixed("wgmma.fence.sync.aligned;"), 90),
    "wgmma.commit_group": Row(_fixed("wgmma.commit_group.sync.aligned;"), 90),
    "wgmma.wait_group": Row(lambda op: (f"wgmma.wait_group.sync.aligned {op.number};", ""), 90, numbered=True),
    "mbarrier.init": Row(lambda op: (f"mbarrier.init.shared::cta.b64 [$0], {op.number};", "r"), 90, numbered=True),
    "mbarrier.init_fence": Row(_fixed("fence.mbarrier_init.release.cluster;"), 90),
    "mbarrier.arrive": Row(_fixed("mbarrier.arrive.release.cta.shared::cta.b64 _, [$0];", "r"), 90),
    "mbarrier.arrive_expect_tx": Row(
        lambda op: (f"mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [$0], {op.number};", "r"),
        90, numbered=True,
    ),
    "mbarrier.wait": Row(_wait, 90),
    "copy.tma_load": Row(lambda op: _tma(op, load=True), 90),
    "copy.tma_store": Row(lambda op: _tma(op, load=False), 90),
    "copy.bulk_commit_group": Row(_fixed("cp.async.bulk.commit_group;"), 90),
    "copy.bulk_wait_group": Row(lambda op: (f"cp.async.bulk.wait_group.read {op.number};", ""), 90, numbered=True),
    "fence.proxy_async": Row(_fixed("fence.proxy.async.shared::cta;"), 90),
    "set_registers": Row(_set_registers, 90, numbered=True),
    "grid_wait": Row(_fixed("griddepcontrol.wait;"), 90),
    "tanh": Row(_fixed("tanh.approx.f32 $0, $1;", "=f,f"), memory=False),
    "barrier": Row(lambda op: (f"bar.sync $0, {op.number};", "r"), numbered=True),
}  # fmt: skip


def _define(name: str, row: Row) -> type[Operation]:
    label = "".join(part.capitalize() for part in name.replace(".", "_").split("_")) + "Op"
    said: dict[str, Any] = {
        "name": f"cute_nvgpu.arch.{name}", "__module__": __name__, "__annotations__": {"ROW": ClassVar[Any]},
        "ROW": row,
        "irdl_options": (ParsePropInAttrDict(),),
    }  # fmt: skip
    return irdl_op_definition(type(label, (ArchOp,), said))


ARCH: dict[str, Any] = {name: _define(name, row) for name, row in ROWS.items()}
CUTE_NVGPU = Dialect("cute_nvgpu", list(ARCH.values()), [])
