"""The operations of `cute` on memory: tensors from pointers, elements, copies and products."""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects import llvm
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from ..layout import Layout, size
from . import ops
from .forms import Kinds, TypedOp
from .sugar import SUGAR
from .tensors import DTYPES, TENSOR_TYPES, CoordTensorType, MemRefType, PtrType, TiledCopyType, TiledMmaType
from .types import ATTRIBUTES, TYPES, CoordType, CuteType, ShapeType


class MemoryOp(TypedOp):
    """An operation on memory."""


@irdl_op_definition
class MakePtrOp(MemoryOp):
    """A pointer of a kernel as one of `cute`, which knows its dtype and alignment."""

    name = "cute.make_ptr"
    KINDS: ClassVar[Kinds] = (llvm.LLVMPointerType,)


@irdl_op_definition
class ToAddressOp(MemoryOp):
    """The pointer to a tensor's first element, for an instruction that takes one."""

    name = "cute.to_address"
    KINDS: ClassVar[Kinds] = (MemRefType,)


@irdl_op_definition
class AllocaOp(MemoryOp):
    """A tensor in registers."""

    name = "cute.memref.alloca"

    def check(self, kinds: list[Any], made: list[Any]) -> None:  # noqa: ARG002
        one: Any = made[0] if len(made) == 1 else None
        if not isinstance(one, MemRefType) or one.data.pointer.space != "rmem":
            raise VerifyException(f"{self.name} makes one memref in rmem")
        self.known_shape(one)


@irdl_op_definition
class LoadOp(MemoryOp):
    """The element at a coordinate."""

    name = "cute.memref.load"
    KINDS: ClassVar[Kinds] = (MemRefType, CoordType)

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        self.gives(made, [DTYPES[kinds[0].data.pointer.dtype]])


@irdl_op_definition
class StoreOp(MemoryOp):
    """Writes the element at a coordinate."""

    name = "cute.memref.store"
    KINDS: ClassVar[Kinds] = (MemRefType, CoordType, None)

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        if kinds[2] != (wanted := DTYPES[kinds[0].data.pointer.dtype]):
            raise VerifyException(f"{self.name} stores a {wanted}, not {kinds[2]}")
        self.gives(made, [])


@irdl_op_definition
class InBoundsOp(MemoryOp):
    """True if the coordinate of a tensor's first element is below a shape in every mode."""

    name = "cute.in_bounds"
    KINDS: ClassVar[Kinds] = (CoordTensorType, ShapeType)


class CopyLike(MemoryOp):
    KINDS: ClassVar[Kinds] = (TiledCopyType, MemRefType, MemRefType, CoordTensorType, ShapeType)
    OPTIONAL: ClassVar[int] = 2


@irdl_op_definition
class CopyOp(CopyLike):
    """Copies what a thread holds of one tensor to another. The first mode is what the atom moves at once; the others
    are repeated. With coordinates and a shape, elements outside of the shape are not read or written; where the atom
    fills its destination anyway, they become zero."""

    name = "cute.copy"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        layouts = [self.known_shape(kind) for kind in kinds[1:4]]
        if len({size(layout) for layout in layouts[:2]}) != 1:
            raise VerifyException(f"{self.name}: {layouts[0]} and {layouts[1]} have different numbers of elements")
        if kinds[1].data.pointer.dtype != kinds[2].data.pointer.dtype:
            raise VerifyException(f"{self.name}: the two tensors have different dtypes")
        self.gives(made, [])


@irdl_op_definition
class CopyAtomCallOp(CopyLike):
    """One instruction of a copy."""

    name = "cute.copy_atom_call"


class ProductOp(MemoryOp):
    """A product of tensors: tiled MMA, D, A, B, then C, or none, and for an atom with a sparse A its metadata E."""

    KINDS: ClassVar[Kinds] = (TiledMmaType, *[MemRefType] * 5)
    OPTIONAL: ClassVar[int] = 2

    @property
    def sparse(self) -> bool:
        kind: Any = self.args[0].type
        return kind.data.atom.sparse

    @property
    def sides(self) -> tuple[list[SSAValue], list[SSAValue], list[SSAValue]]:
        """D, A and B; C or nothing; E or nothing."""
        _, *three = self.args[:4]
        rest = list(self.args[4:])
        metadata = [rest.pop()] if self.sparse and rest else []
        return three, rest, metadata

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        if len(self.args) > 5 + self.sparse:
            raise VerifyException(f"{self.name}: {kinds[0].data.atom.name} takes no metadata")
        if self.sparse and (not self.sides[2] or kinds[-1].data.pointer.dtype != "i32"):
            raise VerifyException(f"{self.name}: {kinds[0].data.atom.name} takes metadata, of i32, as its last operand")
        self.gives(made, [])


@irdl_op_definition
class GemmOp(ProductOp):
    """D = A x B + C: tiled MMA, D (V, M, N), A (V, M, K), B (V, N, K), C like D. Without C, D = A x B. If A is sparse,
    its metadata E (1, M, K) is last."""

    name = "cute.gemm"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        super().check(kinds, made)
        layouts = [self.known_shape(kind) for kind in kinds[1:]]
        d, a, b = layouts[:3]
        added, metadata = layouts[3 : len(layouts) - self.sparse], layouts[len(layouts) - self.sparse :]
        c = added[0] if added else d
        if [len(d), len(c)] != [3, 3] or len(a) not in (2, 3) or len(a) != len(b):
            raise VerifyException(
                f"{self.name}: D and C have the modes V, M, N; A and B have V, M or N, and K if it is not 1"
            )
        (m, n), (ma, k), (nb, kb) = (operand_counts(layout) for layout in (d, a, b))
        if (m, n, k) != (ma, nb, kb):
            raise VerifyException(f"{self.name}: D is {m} x {n} atoms, A {ma} x {k}, and B {nb} x {kb}")
        for layout in metadata:
            if len(layout) not in (2, 3) or operand_counts(layout) != (m, k):
                raise VerifyException(f"{self.name}: A is {m} x {k} atoms; its metadata {layout} is not")


def operand_counts(layout: Layout) -> tuple[int, int]:
    """The atoms along the second and the third mode, which may be left out."""
    return size(layout[1]), size(layout[2]) if len(layout) == 3 else 1


@irdl_op_definition
class MmaAtomCallOp(ProductOp):
    """One instruction of a product."""

    name = "cute.mma_atom_call"


MEMORY: list[type[Operation]] = [
    MakePtrOp, ToAddressOp, AllocaOp, LoadOp, StoreOp, InBoundsOp, CopyOp, CopyAtomCallOp, GemmOp, MmaAtomCallOp,
]  # fmt: skip
MEMORY_TYPES: tuple[type[CuteType], ...] = (PtrType, MemRefType, CoordTensorType)
CUTE = Dialect("cute", [*ops.OPERATIONS.values(), *MEMORY, *SUGAR], [*TYPES, *TENSOR_TYPES, *ATTRIBUTES])
