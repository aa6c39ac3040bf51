"""The operations of `cute` that `cute-desugar` writes with simpler ones: whole tensors, fragments, leaves, printing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import StringAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..layout import Layout, coalesce, size
from .atom_types import CopyAtomType, MmaAtomType
from .forms import Kinds, TypedOp, parse_operand, print_operand
from .tensors import DTYPES, MemRefType, TiledCopyType, TiledMmaType
from .types import CoordType, CuteType, IntTupleType, LayoutType, ShapeType, StrideType, TileType

Tiled = type[TiledMmaType | TiledCopyType]


class SugarOp(TypedOp):
    """`cute-desugar` writes it with simpler operations. `field`: the one of an atom that it is about."""

    field = opt_prop_def(StringAttr)
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, args: Sequence[SSAValue], results: Sequence[Attribute] = (), field: str = "") -> None:
        super().__init__(args, results, {"field": StringAttr(field)} if field else {})


@irdl_op_definition
class FillOp(SugarOp):
    """Writes a value to every element."""

    name = "cute.fill"
    KINDS: ClassVar[Kinds] = (MemRefType, None)
    OPERANDS: ClassVar[str] = "memref, value"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        self.known_shape(kinds[0])
        if kinds[1] != (wanted := DTYPES[kinds[0].data.pointer.dtype]):
            raise VerifyException(f"{self.name} writes a {wanted}, not {kinds[1]}")
        self.gives(made, [])


@irdl_op_definition
class ClearOp(SugarOp):
    """Writes zero to every element."""

    name = "cute.clear"
    KINDS: ClassVar[Kinds] = (MemRefType,)
    OPERANDS: ClassVar[str] = "memref"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        self.known_shape(kinds[0])
        self.gives(made, [])


@irdl_op_definition
class AxpbyOp(SugarOp):
    """y = alpha x + beta y, element by element. If beta is a constant 0, y is not read."""

    name = "cute.axpby"
    KINDS: ClassVar[Kinds] = (None, MemRefType, None, MemRefType)
    OPERANDS: ClassVar[str] = "alpha, x, beta, y"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        x, y = self.known_shape(kinds[1]), self.known_shape(kinds[3])
        if size(x) != size(y):
            raise VerifyException(f"{self.name}: {x} and {y} have different numbers of elements")
        wanted = DTYPES[kinds[3].data.pointer.dtype]
        if [kinds[0], DTYPES[kinds[1].data.pointer.dtype], kinds[2]] != [wanted] * 3:
            raise VerifyException(f"{self.name}: all are {wanted}, as y is; not {', '.join(map(str, kinds[:3]))}")
        self.gives(made, [])


@irdl_op_definition
class GemvOp(SugarOp):
    """d = A b + c of one thread: A (M, K), b (K), c and d (M), of one dtype."""

    name = "cute.gemv"
    KINDS: ClassVar[Kinds] = (MemRefType,) * 4
    OPERANDS: ClassVar[str] = "d, A, b, c"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        d, a, b, c = (self.known_shape(kind) for kind in kinds)
        if len(a) != 2 or [size(a[0]), size(a[1])] != [size(d), size(b)] or size(c) != size(d):
            raise VerifyException(f"{self.name}: A (M, K), b (K), c and d (M); they are {a}, {b}, {c} and {d}")
        if len({kind.data.pointer.dtype for kind in kinds}) != 1:
            raise VerifyException(f"{self.name}: the four tensors have different dtypes")
        self.gives(made, [])


class VectorOp(SugarOp):
    """Moves all elements of a tensor at once."""

    def vector(self, kind: Any) -> VectorType[Any]:
        """Of a tensor's elements. Raises VerifyException if others lie between them."""
        layout = self.known_shape(kind)
        if kind.data.pointer.swizzle is not None or str(coalesce(layout)) != f"{size(layout)}:1":
            raise VerifyException(
                f"{self.name}: a vector's elements lie side by side, and {kind} has others between them"
            )
        return VectorType(DTYPES[kind.data.pointer.dtype], [size(layout)])


@irdl_op_definition
class LoadVecOp(VectorOp):
    """All elements of a tensor, which lie side by side, as a vector."""

    name = "cute.memref.load_vec"
    KINDS: ClassVar[Kinds] = (MemRefType,)
    OPERANDS: ClassVar[str] = "memref -> vector"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        self.gives(made, [self.vector(kinds[0])])


@irdl_op_definition
class StoreVecOp(VectorOp):
    """Writes a vector to a tensor whose elements lie side by side."""

    name = "cute.memref.store_vec"
    KINDS: ClassVar[Kinds] = (VectorType, MemRefType)
    OPERANDS: ClassVar[str] = "vector, memref"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        if kinds[0] != (wanted := self.vector(kinds[1])):
            raise VerifyException(f"{self.name} writes a {wanted}, not {kinds[0]}")
        self.gives(made, [])


class FragmentOp(SugarOp):
    """Makes a tensor in registers after another tensor."""

    def registers_like(self, kind: Any, made: list[Any]) -> None:
        """Raises VerifyException unless the result is a tensor in registers with as many elements of the dtype."""
        layout = self.known_shape(kind)
        one: Any = made[0] if len(made) == 1 else None
        if not isinstance(one, MemRefType) or one.data.pointer.space != "rmem":
            raise VerifyException(f"{self.name} makes one memref in rmem")
        if (one.data.pointer.dtype, size(one.data.layout)) != (kind.data.pointer.dtype, size(layout)):
            raise VerifyException(f"{self.name}: {one} does not hold the {size(layout)} elements of {kind}")


@irdl_op_definition
class MakeFragmentLikeOp(FragmentOp):
    """A tensor in registers for the elements of another."""

    name = "cute.make_fragment_like"
    KINDS: ClassVar[Kinds] = (MemRefType,)
    OPERANDS: ClassVar[str] = "memref -> memref in rmem"

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        self.registers_like(kinds[0], made)


class MmaFragmentOp(FragmentOp):
    """What the product takes for an operand of which a thread has a part: registers for it, or the part itself where
    the instruction reads it in shared memory."""

    WHICH: ClassVar[str]
    KINDS: ClassVar[Kinds] = (TiledMmaType, MemRefType)
    OPERANDS: ClassVar[str] = "tiled_mma, memref -> memref"

    def in_registers(self) -> bool:
        """False if the atom reads the operand in shared memory."""
        kind: Any = self.args[0].type
        atom = kind.data.atom
        return {"a": atom.a_layout, "b": atom.b_layout, "c": atom.c_layout}[self.WHICH] is not None

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        if self.in_registers():
            self.registers_like(kinds[1], made)
            return
        if kinds[1].data.pointer.space != "smem":
            raise VerifyException(f"{self.name}: {kinds[0].data.atom.name} reads it in smem, not {kinds[1]}")
        self.gives(made, [kinds[1]])


@irdl_op_definition
class MmaFragmentAOp(MmaFragmentOp):
    """What the product takes for A: registers, or a part of shared memory where the instruction reads it there."""

    name = "cute.mma.make_fragment_A"
    WHICH: ClassVar[str] = "a"


@irdl_op_definition
class MmaFragmentBOp(MmaFragmentOp):
    """What the product takes for B: registers, or a part of shared memory where the instruction reads it there."""

    name = "cute.mma.make_fragment_B"
    WHICH: ClassVar[str] = "b"


@irdl_op_definition
class MmaFragmentCOp(MmaFragmentOp):
    """What the product takes for C: registers, or a part of shared memory where the instruction reads it there."""

    name = "cute.mma.make_fragment_C"
    WHICH: ClassVar[str] = "c"


class MakeTiledOp(SugarOp):
    """Puts an atom to work with many threads. `TILED`: the kind of its result."""

    TILED: ClassVar[Tiled]

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        if len(made) != 1 or not isinstance(made[0], self.TILED) or made[0].data.atom != kinds[0].data:
            raise VerifyException(f"{self.name} gives a {self.TILED.name.partition('.')[2]} of {kinds[0].data.name}")


@irdl_op_definition
class MakeTiledMmaOp(MakeTiledOp):
    """An atom over groups of threads; the result's type says which."""

    name = "cute.make_tiled_mma"
    KINDS: ClassVar[Kinds] = (MmaAtomType,)
    OPERANDS: ClassVar[str] = "mma_atom -> tiled_mma"
    TILED: ClassVar[Tiled] = TiledMmaType


@irdl_op_definition
class MakeTiledCopyOp(MakeTiledOp):
    """An atom over threads and values; the result's type says which."""

    name = "cute.make_tiled_copy"
    KINDS: ClassVar[Kinds] = (CopyAtomType,)
    OPERANDS: ClassVar[str] = "copy_atom -> tiled_copy"
    TILED: ClassVar[Tiled] = TiledCopyType


class LeavesOp(IRDLOperation):
    """Takes a value apart: `%a, %b = cute.NAME(%x) : type`, whose result types follow from the operand's. `KNOWN`: the
    kind of the operand, if the text leaves it out."""

    KNOWN: ClassVar[type[CuteType] | None] = None
    OPERANDS: ClassVar[str] = "value -> a value for each leaf"
    arg = operand_def(CuteType)
    res = var_result_def()

    def __init__(self, arg: SSAValue) -> None:
        super().__init__(operands=[arg], result_types=[[kind for _, kind in self.leaves(arg.type)]])

    @classmethod
    def leaves(cls, kind: Any) -> list[tuple[tuple[int, ...], CuteType]]:
        """Where each leaf is, from the outside in, and its type."""
        raise NotImplementedError

    def verify_(self) -> None:
        wanted = [kind for _, kind in self.leaves(self.arg.type)]
        if [result.type for result in self.res] != wanted:
            raise VerifyException(f"{self.name} gives {', '.join(map(str, wanted))}")

    @classmethod
    def parse(cls, parser: Parser) -> LeavesOp:
        place = parser.pos
        arg = parse_operand(parser, cls.KNOWN)
        try:
            return cls(arg)
        except VerifyException as error:
            parser.raise_error(str(error), place, parser.pos)

    def print(self, printer: Printer) -> None:
        print_operand(printer, self.arg, short=self.KNOWN is not None)


def _walk(value: Any, at: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], Any]]:
    if not isinstance(value, tuple):
        return [(at, value)]
    return [leaf for number, part in enumerate(value) for leaf in _walk(part, (*at, number))]


@irdl_op_definition
class GetLeavesOp(LeavesOp):
    """The leaves of a tuple or of a tile, from left to right, each a value of the same kind; those of a tile that are
    layouts, as layouts."""

    name = "cute.get_leaves"

    @classmethod
    def leaves(cls, kind: Any) -> list[tuple[tuple[int, ...], CuteType]]:
        if not isinstance(kind, IntTupleType | ShapeType | StrideType | CoordType | TileType):
            raise VerifyException(f"{cls.name} takes a tuple or a tile, not {kind}")
        leaves = _walk(kind.data)
        return [(at, LayoutType(leaf) if isinstance(leaf, Layout) else type(kind)(leaf)) for at, leaf in leaves]


@irdl_op_definition
class GetLayoutsFromTileOp(LeavesOp):
    """The layouts of a tile, from left to right; `_` has none."""

    name = "cute.get_layouts_from_tile"
    KNOWN: ClassVar[type[CuteType] | None] = TileType
    OPERANDS: ClassVar[str] = "tile -> its layouts"

    @classmethod
    def leaves(cls, kind: Any) -> list[tuple[tuple[int, ...], CuteType]]:
        if not isinstance(kind, TileType):
            raise VerifyException(f"{cls.name} takes a tile, not {kind}")
        layouts = [(at, leaf) for at, leaf in _walk(kind.data) if leaf is not None]
        if not layouts:
            raise VerifyException(f"{cls.name}: {kind} has no layout")
        return [(at, LayoutType(leaf)) for at, leaf in layouts]


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Prints a value at run time, each thread for itself: `cute.print(%s) : !cute.shape<"(?,4)">`."""

    name = "cute.print"
    OPERANDS: ClassVar[str] = "value"
    arg = operand_def(CuteType)
    assembly_format = "`(` $arg `)` attr-dict `:` type($arg)"

    def __init__(self, arg: SSAValue) -> None:
        super().__init__(operands=[arg])


SUGAR: list[type[Operation]] = [
    FillOp, ClearOp, AxpbyOp, GemvOp, LoadVecOp, StoreVecOp, MakeFragmentLikeOp, MmaFragmentAOp, MmaFragmentBOp,
    MmaFragmentCOp, MakeTiledMmaOp, MakeTiledCopyOp, GetLeavesOp, GetLayoutsFromTileOp, PrintOp,
]  # fmt: skip
