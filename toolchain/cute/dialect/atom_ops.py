"""The operations of `cute_nvgpu` on atoms as values, and a copy of a box by TMA.

An atom keeps operands that its instruction takes besides the tensors: they are set one after the other, each time
giving a new atom.
"""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntAttr, i1, i32
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from .atom_types import CopyAtomType, MmaAtomType, TmaAtomType
from .forms import Kinds
from .sugar import SugarOp
from .tensors import CoordTensorType, MemRefType

TMA_ALIGN = 128  # bytes, of a box in shared memory
SHARED = llvm.LLVMPointerType(IntAttr(3))


def fields(kind: Attribute) -> dict[str, Attribute]:
    """The operands that an atom keeps, with their types."""
    if isinstance(kind, MmaAtomType):
        return {"accumulate": i1}
    if isinstance(kind, TmaAtomType) and kind.data.startswith("load"):
        return {"mbarrier": SHARED, **({"mask": i32} if kind.data == "load_multicast" else {})}
    return {}


def field_type(op: SugarOp, kind: Attribute) -> Attribute:
    """The type of the field that an operation names. Raises VerifyException if the atom has none of it."""
    known, name = fields(kind), op.field.data if op.field else ""
    if name not in known:
        have = f"its fields are {', '.join(known)}" if known else "it has none"
        raise VerifyException(f"{op.name}: {kind} has no field {name!r}; {have}")
    return known[name]


@irdl_op_definition
class MakeMmaAtomOp(SugarOp):
    """An instruction of a product. Its field `accumulate`, an i1, is true at first: if it is false, the product
    overwrites D."""

    name = "cute_nvgpu.make_mma_atom"
    OPERANDS: ClassVar[str] = "-> mma_atom"

    def check(self, kinds: list[Any], made: list[Any]) -> None:  # noqa: ARG002
        if len(made) != 1 or not isinstance(made[0], MmaAtomType):
            raise VerifyException(f"{self.name} gives a mma_atom")


@irdl_op_definition
class MakeCopyAtomOp(SugarOp):
    """An instruction of a copy; one by TMA takes its tensor map. A load has the field `mbarrier`, one with
    multicast `mask` too."""

    name = "cute_nvgpu.make_copy_atom"
    OPERANDS: ClassVar[str] = "[tensor map] -> copy_atom or tma_atom"

    def verify_(self) -> None:
        made: Any = self.res[0].type if len(self.res) == 1 else None
        if not isinstance(made, CopyAtomType | TmaAtomType):
            raise VerifyException(f"{self.name} gives a copy_atom or a tma_atom")
        wanted = 1 if isinstance(made, TmaAtomType) else 0
        if len(self.args) != wanted or any(not isinstance(arg.type, llvm.LLVMPointerType) for arg in self.args):
            raise VerifyException(
                f"{self.name}: {made} takes {'its tensor map, an !llvm.ptr' if wanted else 'nothing'}"
            )


@irdl_op_definition
class AtomSetValueOp(SugarOp):
    """The atom with another value of a field."""

    name = "cute_nvgpu.atom_set_value"
    KINDS: ClassVar[Kinds] = (None, None)
    OPERANDS: ClassVar[str] = "atom, value -> atom"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        if kinds[1] != (wanted := field_type(self, kinds[0])):
            raise VerifyException(f"{self.name}: the field is {wanted}, not {kinds[1]}")
        self.gives(made, [kinds[0]])


@irdl_op_definition
class AtomGetValueOp(SugarOp):
    """The value of a field that was set."""

    name = "cute_nvgpu.atom_get_value"
    KINDS: ClassVar[Kinds] = (None,)
    OPERANDS: ClassVar[str] = "atom -> value"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        self.gives(made, [field_type(self, kinds[0])])


@irdl_op_definition
class TmaCopyOp(SugarOp):
    """Copies a box by TMA, between a tensor in shared memory and the box at the coordinate of a coord_tensor, whose
    numbers are in the order of the tensor map: the one side by side first."""

    name = "cute_nvgpu.tma_copy"
    KINDS: ClassVar[Kinds] = (TmaAtomType, MemRefType, CoordTensorType)
    OPERANDS: ClassVar[str] = "tma_atom, memref in smem, coord_tensor"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        pointer = kinds[1].data.pointer
        if pointer.space != "smem" or pointer.align % TMA_ALIGN:
            raise VerifyException(f"{self.name}: the box is in smem, aligned to {TMA_ALIGN} bytes, not {kinds[1]}")
        rank = len(kinds[2].data.offset) if isinstance(kinds[2].data.offset, tuple) else 1
        if not 1 <= rank <= 5:
            raise VerifyException(f"{self.name}: {kinds[2]} has {rank} coordinates; a tensor map has 1 to 5 dimensions")
        self.gives(made, [])


ATOM_OPS: list[type[Operation]] = [MakeMmaAtomOp, MakeCopyAtomOp, AtomSetValueOp, AtomGetValueOp, TmaCopyOp]
