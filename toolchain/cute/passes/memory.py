"""Lowers the operations of `cute` on memory to the base level: addresses, elements, and tensors in registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntAttr, IntegerType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ...errors import SourceError
from ..dialect.tensor_ops import AllocaOp, InBoundsOp, LoadOp, MakePtrOp, StoreOp, ToAddressOp
from ..dialect.tensors import DTYPES, Coordinates, MemRefType, Place, PtrType, Tensor
from ..dialect.types import CuteType
from ..layout import cosize
from ..nvvm.emit import Emitter
from ..nvvm.index import as_value
from .registers import Registers, load, store


@dataclass(frozen=True)
class Lowering:
    """What a kernel's lowering knows: where it emits, what the registers hold, and the values of `cute`."""

    builder: Emitter
    registers: Registers
    known: dict[SSAValue, CuteType]
    find: Callable[[SSAValue], CuteType]

    def data(self, value: SSAValue) -> Any:
        """The tensor, the coordinate or the shape that a value is."""
        return self.find(value).data


def lower_memory(op: Operation, to: Lowering) -> bool:
    """Emits an operation's form where the builder stands. Returns False for another operation."""
    builder = to.builder
    match op:
        case MakePtrOp():
            kind: Any = op.res[0].type
            to.known[op.res[0]] = PtrType(Tensor(kind.data.pointer, kind.data.layout, Place(op.args[0])))
        case ToAddressOp():
            op.res[0].replace_all_uses_with(_given(op, to.data(op.args[0]), to))
        case AllocaOp():
            to.known[op.res[0]] = _alloca(op, to)
        case LoadOp():
            tensor, where = to.data(op.args[0]), to.data(op.args[1])
            made = read(tensor, tensor.layout(where), DTYPES[tensor.pointer.dtype], to)
            op.res[0].replace_all_uses_with(made)
        case StoreOp():
            tensor, where = to.data(op.args[0]), to.data(op.args[1])
            write(tensor, tensor.layout(where), op.args[2], to)
        case InBoundsOp():
            op.res[0].replace_all_uses_with(in_bounds(to.data(op.args[0]), to.data(op.args[1]), builder))
        case _:
            return False
    return True


def _alloca(op: AllocaOp, to: Lowering) -> CuteType:
    """The stack's slots stand at the function's beginning, where LLVM turns them into registers."""
    kind: Any = op.res[0].type
    tensor: Tensor = kind.data
    function: Operation | None = op
    while not isinstance(function, llvm.FuncOp):
        function = function.parent_op()
        if function is None:
            raise SourceError(f"{op.name} stands in no llvm.func")
    builder = Emitter(InsertPoint.at_start(function.body.blocks[0]))
    slots = llvm.LLVMArrayType(IntAttr(cosize(tensor.layout)), DTYPES[tensor.pointer.dtype])
    made = builder.insert(llvm.AllocaOp(builder.number(1), slots, alignment=16))
    to.registers.add(made.res)
    return MemRefType(Tensor(tensor.pointer, tensor.layout, Place(made.res)))


def _given(op: ToAddressOp, tensor: Tensor, to: Lowering) -> SSAValue:
    """The pointer that an operation gives away. One that only names registers anew lets them be registers."""
    place = tensor.place
    assert place is not None
    if place.base in to.registers:
        start = place.high + place.low
        if isinstance(start, int) and start == 0 and all(isinstance(u.operation, MakePtrOp) for u in op.res[0].uses):
            return place.base
        to.registers.share(place.base)
    return address(tensor, 0, to)


def read(tensor: Tensor, offset: Any, kind: Attribute, to: Lowering) -> SSAValue:
    """A value of a type from an element on."""
    if (place := _slot(tensor, offset, to)) is not None:
        return to.registers.read(*place, kind)
    return load(to.builder, address(tensor, offset, to), kind)


def write(tensor: Tensor, offset: Any, value: SSAValue, to: Lowering) -> None:
    """Writes a value from an element on."""
    if (place := _slot(tensor, offset, to)) is not None:
        to.registers.write(*place, value)
    else:
        store(to.builder, value, address(tensor, offset, to))


def is_slot(tensor: Tensor, to: Lowering) -> bool:
    """True if the tensor lies in registers and begins where Python knows."""
    return _slot(tensor, 0, to) is not None


def _slot(tensor: Tensor, offset: Any, to: Lowering) -> tuple[SSAValue, int] | None:
    """The registers of a tensor and a byte in them, or None: the kernel computes which, or it lies elsewhere."""
    place = tensor.place
    assert place is not None
    if place.base not in to.registers:
        return None
    offset = place.high + place.low + offset
    return (place.base, offset * tensor.pointer.bytes) if isinstance(offset, int) else None


def address(tensor: Tensor, offset: Any, to: Lowering) -> SSAValue:
    """The pointer to an element, with the swizzle applied."""
    base, count = located(tensor, offset, to)
    return to.builder.shifted(base, count)


def located(tensor: Tensor, offset: Any, to: Lowering) -> tuple[SSAValue, int]:
    """The pointer to an element as one that the kernel computes, and bytes behind it that are known."""
    assert tensor.place is not None
    pointer, place, builder = tensor.pointer, tensor.place, to.builder
    if place.base in to.registers:
        to.registers.flush(place.base)
    base, element, width = place.base, DTYPES[pointer.dtype], pointer.bytes
    if pointer.swizzle is None:
        total = place.high + place.low + offset
    else:
        element, width = IntegerType(8), 1
        total = place.high * pointer.bytes + pointer.swizzle((place.low + offset) * pointer.bytes)
    if isinstance(total, int):
        return base, total * width
    return builder.shifted(base, total.bound[0], element), total.plus * width


def in_bounds(coordinates: Coordinates, shape: Any, builder: Emitter) -> SSAValue:
    """True if all coordinates are below a shape, an i1."""
    made: SSAValue | None = None
    for part, extent in zip(coordinates.offset, shape, strict=True):
        if isinstance(part, int) and isinstance(extent, int) and part < extent:
            continue
        one = builder.compare("ult", as_value(part, builder), as_value(extent, builder))
        made = one if made is None else builder.binary(arith.AndIOp, made, one)
    return made if made is not None else builder.number(1, i1)
