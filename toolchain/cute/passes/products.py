"""Lowers products of tiles to the base level: mma.sync and wgmma."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import StringAttr, f32, f64, i32, i64
from xdsl.ir import Operation, SSAValue

from ...errors import SourceError
from ..atoms.mma import BITS, REGISTER_BITS, WARP, MmaAtom
from ..dialect.tensor_ops import GemmOp, ProductOp
from ..dialect.tensors import Tensor
from ..layout import Layout, make_layout, size
from ..nvgpu import ARCH
from ..nvgpu.descriptor import SharedOperand, shared_operand
from .copies import packed
from .memory import Lowering, located, read, write
from .parts import products


def lower_product(op: ProductOp, to: Lowering) -> None:
    """Emits each part of a product. Raises SourceError for operands that the atom cannot take."""
    atom: MmaAtom = to.data(op.args[0]).atom
    (d, a, b), c, e = ([_tiles(op, to.data(arg)) for arg in side] for side in op.sides)
    warp = atom.threads == WARP
    left = _Registers(op, a, atom, "a", to) if atom.a_layout else _Shared(op, a, to)
    right = _Registers(op, b, atom, "b", to) if atom.b_layout else _Shared(op, b, to)
    sums, *added = (_Registers(op, tensor, atom, "c", to) for tensor in (d, *c))
    metadata = [_Registers(op, tensor, atom, "e", to) for tensor in e]
    instruction = ARCH[("mma.sync" if warp else "mma.wgmma") + "_sp" * atom.sparse]
    said = {"atom": StringAttr(atom.name if warp else f"{atom.name}.{left.major}{right.major}")}
    for m, n, k in products(d.layout, a.layout):
        before = [sums] if k else added  # the first step along K has made D
        held = before[0].take(m, n) if before else sums.none(llvm.ZeroOp if warp else llvm.UndefOp)
        args = [*left.take(m, k), *right.take(n, k)]
        words = [word for part in metadata for word in part.take(m, k)]
        # A warp's sums stand behind A and B; a warpgroup's before, and the last number says if they count.
        args = [*args, *held, *words] if warp else [*held, *args, *words, to.builder.number(len(before))]
        sums.give(to.builder.make(instruction, args, [sums.kind] * len(sums.offsets), said).results, m, n)


def _tiles(op: ProductOp, tensor: Tensor) -> Tensor:
    """The operand with modes of parts: one instruction has one."""
    if isinstance(op, GemmOp):
        return tensor
    return Tensor(tensor.pointer, make_layout(tensor.layout, *[Layout(1, 0)] * 2), tensor.place)


class _Registers:
    """An operand in registers."""

    major = "k"

    def __init__(self, op: Operation, tensor: Tensor, atom: MmaAtom, operand: str, to: Lowering) -> None:
        if tensor.pointer.space != "rmem":
            raise SourceError(f"{op.name}: {atom.name} takes operand {operand} in registers, not {tensor.pointer}")
        values, self.parts = _split(tensor.layout)
        count, registers = size(values), atom.registers(operand)
        dtype = atom.dtype(operand)
        if count % registers or count // registers * tensor.pointer.bytes * 8 != max(REGISTER_BITS, BITS[dtype]):
            raise SourceError(f"{op.name}: {atom.name} holds {operand} in {registers} registers; {tensor} does not fit")
        packed(op, values, count // registers)
        self.tensor, self.to = tensor, to
        self.kind = f64 if dtype == "f64" else f32 if operand == "c" and dtype == "f32" else i32
        self.offsets = [values(i * (count // registers)) for i in range(registers)]

    def take(self, *part: int) -> list[SSAValue]:
        """The registers of a part."""
        start = self.parts(part)
        return [read(self.tensor, start + offset, self.kind, self.to) for offset in self.offsets]

    def none(self, kind: type[Operation]) -> list[SSAValue]:
        """Zeros or no values for a part."""
        return [self.to.builder.once((kind, self.kind), kind, (), self.kind)] * len(self.offsets)

    def give(self, values: Sequence[SSAValue], *part: int) -> None:
        """Writes the registers of a part."""
        start = self.parts(part)
        for value, offset in zip(values, self.offsets, strict=True):
            write(self.tensor, start + offset, value, self.to)


class _Shared:
    """An operand of wgmma in shared memory: its descriptor."""

    def __init__(self, op: Operation, tensor: Tensor, to: Lowering) -> None:
        values, self.parts = _split(tensor.layout)
        self.tensor, self.to = tensor, to
        self.side: SharedOperand = shared_operand(op.name, Tensor(tensor.pointer, values))
        self.major = self.side.major

    def take(self, *part: int) -> list[SSAValue]:
        """The descriptor of a part. The kernel computes that of the address as far as this varies at run time; the rest
        is a constant distance, which is added to the descriptor itself in steps of 16 bytes."""
        base, count = located(self.tensor, self.parts(part), self.to)
        word, builder = self.side.word(base, self.to.builder), self.to.builder
        return [builder.binary(arith.AddiOp, word, builder.number(count >> 4, i64)) if count else word]


def _split(layout: Layout) -> tuple[Layout, Layout]:
    """The values of an atom, and the parts by M or N and K."""
    values, *rest = layout
    return values, make_layout(*rest, *[Layout(1, 0)] * (2 - len(rest)))
