"""The operations of `cute` on memory: tensors from pointers, elements, copies and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects import llvm
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, var_operand_def, var_result_def
from xdsl.utils.exceptions import VerifyException

from ..layout import Layout, size
from ..layout.leaves import is_static
from . import ops
from .sugar import SUGAR
from .tensors import DTYPES, TENSOR_TYPES, CoordTensorType, MemRefType, PtrType, TiledCopyType, TiledMmaType
from .types import TYPES, CoordType, CuteType, ShapeType

Kinds = tuple[type[Attribute] | None, ...]


class MemoryOp(IRDLOperation):
    """`cute.copy(%copy, %from, %to) : (...) -> ()`. `KINDS`: the kinds of its operands; the last may be left out from
    `NEEDED` on."""

    KINDS: ClassVar[Kinds]
    NEEDED: ClassVar[int]
    args = var_operand_def()
    res = var_result_def()
    assembly_format = "`(` $args `)` attr-dict `:` functional-type($args, $res)"

    def __init__(self, args: Sequence[SSAValue], results: Sequence[Attribute] = ()) -> None:
        super().__init__(operands=[args], result_types=[results])

    def verify_(self) -> None:
        if not self.NEEDED <= len(self.args) <= len(self.KINDS):
            raise VerifyException(
                f"{self.name} takes {self.NEEDED} to {len(self.KINDS)} operands, not {len(self.args)}"
            )
        for number, (arg, kind) in enumerate(zip(self.args, self.KINDS, strict=False)):
            if kind is not None and not isinstance(arg.type, kind):
                raise VerifyException(f"{self.name}: operand {number} is a {kind.name}, not {arg.type}")
        self.check([arg.type for arg in self.args])

    def check(self, kinds: list[Any]) -> None:
        """More that must hold. Raises VerifyException."""


def _tensor(kind: Any) -> Layout:
    return kind.data.layout


def _static(name: str, *layouts: Layout) -> None:
    for layout in layouts:
        if not is_static(*ops.nested.flatten(layout.shape)):
            raise VerifyException(f"{name}: the shape of {layout} is not known; it is unrolled, so it must be")


@irdl_op_definition
class MakePtrOp(MemoryOp):
    """A pointer of a kernel as one of `cute`, which knows its dtype and alignment."""

    name = "cute.make_ptr"
    KINDS: ClassVar[Kinds] = (llvm.LLVMPointerType,)
    NEEDED: ClassVar[int] = 1


@irdl_op_definition
class ToAddressOp(MemoryOp):
    """The pointer to a tensor's first element, for an instruction that takes one."""

    name = "cute.to_address"
    KINDS: ClassVar[Kinds] = (MemRefType,)
    NEEDED: ClassVar[int] = 1


@irdl_op_definition
class AllocaOp(MemoryOp):
    """A tensor in registers."""

    name = "cute.memref.alloca"
    KINDS: ClassVar[Kinds] = ()
    NEEDED: ClassVar[int] = 0

    def check(self, kinds: list[Any]) -> None:  # noqa: ARG002
        made: Any = self.res[0].type if len(self.res) == 1 else None
        if not isinstance(made, MemRefType) or made.data.pointer.space != "rmem":
            raise VerifyException(f"{self.name} makes one memref in rmem")
        _static(self.name, made.data.layout)


@irdl_op_definition
class LoadOp(MemoryOp):
    """The element at a coordinate."""

    name = "cute.memref.load"
    KINDS: ClassVar[Kinds] = (MemRefType, CoordType)
    NEEDED: ClassVar[int] = 2

    def check(self, kinds: list[Any]) -> None:
        if [r.type for r in self.res] != [wanted := DTYPES[kinds[0].data.pointer.dtype]]:
            raise VerifyException(f"{self.name} gives a {wanted}")


@irdl_op_definition
class StoreOp(MemoryOp):
    """Writes the element at a coordinate."""

    name = "cute.memref.store"
    KINDS: ClassVar[Kinds] = (MemRefType, CoordType, None)
    NEEDED: ClassVar[int] = 3

    def check(self, kinds: list[Any]) -> None:
        if kinds[2] != (wanted := DTYPES[kinds[0].data.pointer.dtype]):
            raise VerifyException(f"{self.name} stores a {wanted}, not {kinds[2]}")


@irdl_op_definition
class InBoundsOp(MemoryOp):
    """True if the coordinate of a tensor's first element is below a shape in every mode."""

    name = "cute.in_bounds"
    KINDS: ClassVar[Kinds] = (CoordTensorType, ShapeType)
    NEEDED: ClassVar[int] = 2


class CopyLike(MemoryOp):
    KINDS: ClassVar[Kinds] = (TiledCopyType, MemRefType, MemRefType, CoordTensorType, ShapeType)
    NEEDED: ClassVar[int] = 3


@irdl_op_definition
class CopyOp(CopyLike):
    """Copies what a thread holds of one tensor to another. The first mode is what the atom moves at once; the others
    are repeated. With coordinates and a shape, elements outside of the shape are not read or written; where the atom
    fills its destination anyway, they become zero."""

    name = "cute.copy"

    def check(self, kinds: list[Any]) -> None:
        layouts = [_tensor(kind) for kind in kinds[1:4]]
        _static(self.name, *layouts)
        if len({size(layout) for layout in layouts[:2]}) != 1:
            raise VerifyException(f"{self.name}: {layouts[0]} and {layouts[1]} have different numbers of elements")
        if kinds[1].data.pointer.dtype != kinds[2].data.pointer.dtype:
            raise VerifyException(f"{self.name}: the two tensors have different dtypes")


@irdl_op_definition
class CopyAtomCallOp(CopyLike):
    """One instruction of a copy."""

    name = "cute.copy_atom_call"


@irdl_op_definition
class GemmOp(MemoryOp):
    """D = A x B + C: tiled MMA, D (V, M, N), A (V, M, K), B (V, N, K), C like D. Without C, D = A x B."""

    name = "cute.gemm"
    KINDS: ClassVar[Kinds] = (TiledMmaType, MemRefType, MemRefType, MemRefType, MemRefType)
    NEEDED: ClassVar[int] = 4

    def check(self, kinds: list[Any]) -> None:
        d, a, b = (_tensor(kind) for kind in kinds[1:4])
        c = _tensor(kinds[4]) if len(kinds) == 5 else d
        _static(self.name, d, a, b, c)
        if [len(d), len(c)] != [3, 3] or len(a) not in (2, 3) or len(a) != len(b):
            raise VerifyException(
                f"{self.name}: D and C have the modes V, M, N; A and B have V, M or N, and K if it is not 1"
            )
        (m, n), (ma, k), (nb, kb) = (operand_counts(layout) for layout in (d, a, b))
        if (m, n, k) != (ma, nb, kb):
            raise VerifyException(f"{self.name}: D is {m} x {n} atoms, A {ma} x {k}, and B {nb} x {kb}")


def operand_counts(layout: Layout) -> tuple[int, int]:
    """The atoms along the second and the third mode, which may be left out."""
    return size(layout[1]), size(layout[2]) if len(layout) == 3 else 1


@irdl_op_definition
class MmaAtomCallOp(MemoryOp):
    """One instruction of a product."""

    name = "cute.mma_atom_call"
    KINDS: ClassVar[Kinds] = (TiledMmaType, MemRefType, MemRefType, MemRefType, MemRefType)
    NEEDED: ClassVar[int] = 4


MEMORY: list[type[Operation]] = [
    MakePtrOp, ToAddressOp, AllocaOp, LoadOp, StoreOp, InBoundsOp, CopyOp, CopyAtomCallOp, GemmOp, MmaAtomCallOp,
]  # fmt: skip
MEMORY_TYPES: tuple[type[CuteType], ...] = (PtrType, MemRefType, CoordTensorType)
CUTE = Dialect("cute", [*ops.OPERATIONS.values(), *MEMORY, *SUGAR], [*TYPES, *TENSOR_TYPES])
