"""Lowers copies to the base level: loads and stores, cp.async, ldmatrix and stmatrix."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, llvm, scf
from xdsl.dialects.builtin import IntegerType, StringAttr, VectorType, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ...errors import SourceError
from ..dialect.tensor_ops import CopyAtomCallOp, CopyOp
from ..dialect.tensors import Tensor
from ..layout import Layout, size
from ..nvgpu import ARCH
from ..nvvm.emit import integer
from .memory import Lowering, address, in_bounds, is_slot, read, write
from .parts import atom_values, by_atom, repeats
from .registers import load, store


def lower_copy(op: CopyOp | CopyAtomCallOp, to: Lowering) -> None:
    """Emits each part of a copy. Raises SourceError for a layout that the atom cannot move."""
    tiled, source, target, *bounds = (to.data(arg) for arg in op.args)
    atom, tensors = tiled.atom, (source, target, *bounds[:1])
    if isinstance(op, CopyAtomCallOp):
        values, others = [tensor.layout for tensor in tensors], [Layout(1, 0)] * len(tensors)
    else:
        layouts = [by_atom(tensor.layout, atom) for tensor in tensors]
        values, others = [atom_values(layout) for layout in layouts], [repeats(layout) for layout in layouts]
    call = _Matrix(op, atom, to, values) if atom.matrix is not None else _Vector(op, atom, to, values)
    for starts in zip(*(rest.offsets() for rest in others), strict=True):
        parts = [tensor.moved(start, held) for tensor, start, held in zip(tensors, starts, values, strict=True)]
        inside = in_bounds(parts[2], bounds[1], to.builder) if bounds else None
        call.emit(parts[0], parts[1], inside)


class _Matrix:
    """ldmatrix and stmatrix."""

    def __init__(self, op: Operation, atom: Any, to: Lowering, values: list[Layout]) -> None:
        self.op, self.atom, self.to = op, atom.matrix, to
        shared, registers = values[:2] if self.atom.load else values[1::-1]
        _contiguous(op, shared, 8)
        packed(op, registers, 2)
        self.offsets = [registers(2 * i) for i in range(self.atom.count)]

    def emit(self, source: Tensor, target: Tensor, inside: SSAValue | None) -> None:
        op, atom, to = self.op, self.atom, self.to
        shared, registers = (source, target) if atom.load else (target, source)
        if inside is not None or (shared.pointer.space, registers.pointer.space) != ("smem", "rmem"):
            raise SourceError(
                f"{op.name}: {atom.name} moves all between smem and rmem, not {source.pointer}, {target.pointer}"
            )
        row, name = address(shared, 0, to), {"atom": StringAttr(atom.name)}
        if atom.load:
            made = to.builder.make(ARCH["copy.ldmatrix"], (row,), (i32,) * atom.count, name)
            for offset, value in zip(self.offsets, made.results, strict=True):
                write(registers, offset, value, to)
        else:
            values = [read(registers, offset, i32, to) for offset in self.offsets]
            to.builder.make(ARCH["copy.stmatrix"], (row, *values), (), name)


class _Vector:
    """Loads and stores of elements that lie side by side, and cp.async."""

    def __init__(self, op: Operation, atom: Any, to: Lowering, values: list[Layout]) -> None:
        self.op, self.atom, self.to = op, atom, to
        for side in values[:2]:
            _contiguous(op, side, atom.vector // atom.bits)

    def emit(self, source: Tensor, target: Tensor, inside: SSAValue | None) -> None:
        op, atom, to = self.op, self.atom, self.to
        width, spaces = atom.vector // 8, (source.pointer.space, target.pointer.space)
        for side in (source, target):
            if side.pointer.space != "rmem" and side.pointer.align % width:
                raise SourceError(
                    f"{op.name}: {atom.name} needs pointers aligned to {width} bytes, and {side} is not",
                    hint="give the strides their divisibility, or copy with a narrower atom",
                )
        if atom.is_async:
            if spaces != ("gmem", "smem"):
                raise SourceError(f"{op.name}: {atom.name} copies gmem to smem, not {source.pointer}, {target.pointer}")
            self.asynchronous(source, target, inside)
        elif inside is None:
            write(target, 0, read(source, 0, _word(atom.vector), to), to)
        else:
            _guarded(source, target, _word(atom.vector), inside, to)

    def asynchronous(self, source: Tensor, target: Tensor, inside: SSAValue | None) -> None:
        to, width = self.to, self.atom.vector // 8
        args = [address(target, 0, to), address(source, 0, to)]
        if inside is not None:
            numbers = (to.builder.number(width), to.builder.number(0))
            args.append(to.builder.make(arith.SelectOp, (inside, *numbers), (i32,)).result)
        to.builder.make(ARCH["copy.cp_async"], args, (), {"n": integer(width)})


def _guarded(source: Tensor, target: Tensor, word: Attribute, inside: SSAValue, to: Lowering) -> None:
    """A copy under a condition. A register holds zero where nothing is read."""
    builder, body = to.builder, Block()
    here, there = builder.insertion_point, InsertPoint.at_end(body)
    if target.pointer.space == "rmem" and not is_slot(source, to):
        place, zero = address(source, 0, to), builder.once(("zero", word), llvm.ZeroOp, (), word)
        builder.insertion_point = there
        builder.make(scf.YieldOp, (load(builder, place, word),))
        regions = (Region(body), Region(Block([scf.YieldOp.create(operands=(zero,))])))
        builder.insertion_point = here
        made = builder.insert(scf.IfOp.create(operands=(inside,), result_types=(word,), regions=regions))
        write(target, 0, made.results[0], to)
        return
    value, place = read(source, 0, word, to), address(target, 0, to)
    builder.insertion_point = there
    store(builder, value, place)
    builder.make(scf.YieldOp)
    builder.insertion_point = here
    builder.insert(scf.IfOp.create(operands=(inside,), regions=(Region(body), Region())))


def _word(bits: int) -> Attribute:
    return IntegerType(bits) if bits <= 32 else VectorType(i32, [bits // 32])


def _contiguous(op: Operation, layout: Layout, count: int) -> None:
    if size(layout) != count or layout.offsets() != list(range(count)):
        raise SourceError(
            f"{op.name}: the atom moves {count} elements that lie side by side, and {layout} is not {count}:1",
            hint="copy with a narrower atom, or give each thread values along the contiguous mode",
        )


def packed(op: Operation, layout: Layout, count: int) -> None:
    """Raises SourceError if values that share a register do not lie side by side."""
    offsets = layout.offsets()
    for first in range(0, len(offsets), count):
        if any(offsets[first + i] != offsets[first] + i for i in range(count)):
            raise SourceError(f"{op.name}: {count} values share a register, and {layout} keeps them apart")
