"""Lowers the operations of `cute` on memory to the base level: addresses, loads, stores, and instructions of atoms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects import arith, llvm, scf
from xdsl.dialects.builtin import IntAttr, IntegerAttr, IntegerType, VectorType, i1, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ...errors import SourceError
from ..atoms.mma import WARP, MmaAtom
from ..dialect.tensor_ops import (
    AllocaOp,
    CopyAtomCallOp,
    InBoundsOp,
    LoadOp,
    MakePtrOp,
    MemoryOp,
    MmaAtomCallOp,
    StoreOp,
    ToAddressOp,
)
from ..dialect.tensors import DTYPES, SPACES, Coordinates, MemRefType, Place, PtrType, Tensor
from ..dialect.types import CuteType
from ..layout import Layout, Swizzle, cosize, size
from ..nvgpu import ARCH
from ..nvgpu.descriptor import shared_operand
from ..nvvm.index import Index, as_value, constant

Find = Callable[[SSAValue], CuteType]


def lower_memory(op: MemoryOp, known: dict[SSAValue, CuteType], find: Find, builder: Builder) -> None:
    """Emits an operation's form where the builder stands. Raises SourceError if `cute-expand-ops` was left out."""
    match op:
        case MakePtrOp():
            kind: Any = op.res[0].type
            known[op.res[0]] = PtrType(Tensor(kind.data.pointer, kind.data.layout, Place(op.args[0])))
        case ToAddressOp():
            op.res[0].replace_all_uses_with(address(_tensor(find(op.args[0])), 0, builder))
        case AllocaOp():
            known[op.res[0]] = _alloca(op)
        case LoadOp():
            made = load_element(_tensor(find(op.args[0])), _coordinate(find(op.args[1])), builder)
            op.res[0].replace_all_uses_with(made)
        case StoreOp():
            tensor, where = _tensor(find(op.args[0])), _coordinate(find(op.args[1]))
            builder.insert(llvm.StoreOp(op.args[2], address(tensor, tensor.layout(where), builder)))
        case InBoundsOp():
            op.res[0].replace_all_uses_with(_in_bounds(find(op.args[0]).data, find(op.args[1]).data, builder))
        case CopyAtomCallOp():
            _copy(op, find, builder)
        case MmaAtomCallOp():
            _mma(op, find, builder)
        case _:
            raise SourceError(f"cute-to-base: {op.name} is left", hint="run cute-expand-ops before")


def _tensor(kind: CuteType) -> Tensor:
    return kind.data


def _coordinate(kind: CuteType) -> Any:
    return kind.data


def _alloca(op: AllocaOp) -> CuteType:
    """The stack's slots stand at the function's beginning, where LLVM turns them into registers."""
    kind: Any = op.res[0].type
    tensor: Tensor = kind.data
    function: Operation | None = op
    while not isinstance(function, llvm.FuncOp):
        function = function.parent_op()
        if function is None:
            raise SourceError(f"{op.name} stands in no llvm.func")
    builder = Builder(InsertPoint.at_start(function.body.blocks[0]))
    one = constant(1, builder).value
    assert one is not None
    slots = llvm.LLVMArrayType(IntAttr(cosize(tensor.layout)), DTYPES[tensor.pointer.dtype])
    made = builder.insert(llvm.AllocaOp(one, slots, alignment=16))
    return MemRefType(Tensor(tensor.pointer, tensor.layout, Place(made.res)))


def address(tensor: Tensor, offset: Any, builder: Builder) -> SSAValue:
    """The pointer to an element, with the swizzle applied."""
    assert tensor.place is not None
    pointer, place = tensor.pointer, tensor.place
    if pointer.swizzle is None:
        return _gep(place.base, place.high + place.low + offset, DTYPES[pointer.dtype], pointer.space, builder)
    near = (place.low + offset) * pointer.bytes
    swizzled = _swizzled(pointer.swizzle, near, builder)
    return _gep(place.base, place.high * pointer.bytes + swizzled, IntegerType(8), pointer.space, builder)


def _swizzled(swizzle: Swizzle, offset: Any, builder: Builder) -> Any:
    if isinstance(offset, int):
        return swizzle(offset)
    assert isinstance(offset, Index) and swizzle.shift > 0
    value = as_value(offset, builder)
    mask = ((1 << swizzle.bits) - 1) << (swizzle.base + swizzle.shift)
    taken = builder.insert(arith.AndIOp(value, as_value(mask, builder))).result
    moved = builder.insert(arith.ShRUIOp(taken, as_value(swizzle.shift, builder))).result
    return Index(32, 1, builder.insert(arith.XOrIOp(value, moved)).result, builder)


def _gep(base: SSAValue, offset: Any, element: Attribute, space: str, builder: Builder) -> SSAValue:
    kind = llvm.LLVMPointerType(IntAttr(SPACES[space])) if SPACES[space] else llvm.LLVMPointerType()
    if isinstance(offset, int):
        if offset == 0:
            return base
        return builder.insert(llvm.GEPOp(base, [offset], element, result_type=kind)).result
    indices, values = [llvm.GEP_USE_SSA_VAL], [as_value(offset, builder)]
    return builder.insert(llvm.GEPOp(base, indices, element, ssa_indices=values, result_type=kind)).result


def load_element(tensor: Tensor, where: Any, builder: Builder) -> SSAValue:
    """The element at a coordinate."""
    kind = DTYPES[tensor.pointer.dtype]
    return builder.insert(llvm.LoadOp(address(tensor, tensor.layout(where), builder), kind)).dereferenced_value


def _in_bounds(coordinates: Coordinates, shape: Any, builder: Builder) -> SSAValue:
    made: SSAValue | None = None
    for part, extent in zip(coordinates.offset, shape, strict=True):
        if isinstance(part, int) and isinstance(extent, int) and part < extent:
            continue
        one = builder.insert(arith.CmpiOp(as_value(part, builder), as_value(extent, builder), "ult")).result
        made = one if made is None else builder.insert(arith.AndIOp(made, one)).result
    return made if made is not None else builder.insert(arith.ConstantOp(IntegerAttr(1, i1))).result


def _copy(op: CopyAtomCallOp, find: Find, builder: Builder) -> None:
    tiled: Any = find(op.args[0])
    source, target = _tensor(find(op.args[1])), _tensor(find(op.args[2]))
    inside = _in_bounds(find(op.args[3]).data, find(op.args[4]).data, builder) if len(op.args) == 5 else None
    atom = tiled.data.atom
    if atom.matrix is not None:
        _matrix_copy(op, atom.matrix, source, target, builder)
        return
    width = atom.vector // 8
    for side in (source, target):
        _contiguous(op, side, atom.vector // atom.bits)
        if side.pointer.space != "rmem" and side.pointer.align % width:
            raise SourceError(
                f"{op.name}: {atom.name} needs pointers aligned to {width} bytes, and {side} is not",
                hint="give the strides their divisibility, or copy with a narrower atom",
            )
    if atom.is_async:
        if (source.pointer.space, target.pointer.space) != ("gmem", "smem"):
            raise SourceError(f"{op.name}: {atom.name} copies gmem to smem, not {source.pointer} to {target.pointer}")
        args = [address(target, 0, builder), address(source, 0, builder)]
        if inside is not None:
            bytes_, none = as_value(width, builder), as_value(0, builder)
            args.append(builder.insert(arith.SelectOp(inside, bytes_, none)).result)
        builder.insert(ARCH["copy.cp_async"](args, n=width))
        return
    if inside is None:
        _move(source, target, atom.vector, builder)
        return
    if target.pointer.space == "rmem":  # a register holds zero where nothing is read
        zero = builder.insert(llvm.ZeroOp(result_types=[_word(atom.vector)])).res
        builder.insert(llvm.StoreOp(zero, address(target, 0, builder), alignment=width))
    block = Block()
    _move(source, target, atom.vector, inner := Builder(InsertPoint.at_end(block)))
    inner.insert(scf.YieldOp())
    builder.insert(scf.IfOp(inside, [], Region(block)))


def _word(bits: int) -> Attribute:
    return IntegerType(bits) if bits <= 32 else VectorType(i32, [bits // 32])


def _move(source: Tensor, target: Tensor, bits: int, builder: Builder) -> None:
    here = address(source, 0, builder)
    read = llvm.LoadOp(here, _word(bits))
    read.properties["alignment"] = IntegerAttr(bits // 8, 64)
    value = builder.insert(read).dereferenced_value
    builder.insert(llvm.StoreOp(value, address(target, 0, builder), alignment=bits // 8))


def _contiguous(op: Operation, tensor: Tensor, count: int) -> None:
    offsets = [tensor.layout(i) for i in range(count)]
    if size(tensor.layout) != count or offsets != list(range(count)):
        raise SourceError(
            f"{op.name}: the atom moves {count} elements that lie side by side, and {tensor.layout} is not {count}:1",
            hint="copy with a narrower atom, or give each thread values along the contiguous mode",
        )


def _matrix_copy(op: Operation, atom: Any, source: Tensor, target: Tensor, builder: Builder) -> None:
    shared, registers = (source, target) if atom.load else (target, source)
    if shared.pointer.space != "smem" or registers.pointer.space != "rmem":
        raise SourceError(f"{op.name}: {atom.name} moves between smem and rmem, not {source.pointer}, {target.pointer}")
    _contiguous(op, shared, 8)
    row = address(shared, 0, builder)
    slots = [address(registers, registers.layout(2 * i), builder) for i in range(atom.count)]
    _packed(op, registers.layout, 2)
    if atom.load:
        made = builder.insert(ARCH["copy.ldmatrix"]([row], [i32] * atom.count, atom.name))
        for slot, value in zip(slots, made.res, strict=True):
            builder.insert(llvm.StoreOp(value, slot))
    else:
        values = [builder.insert(llvm.LoadOp(slot, i32)).dereferenced_value for slot in slots]
        builder.insert(ARCH["copy.stmatrix"]([row, *values], [], atom.name))


def _packed(op: Operation, layout: Layout, count: int) -> None:
    for first in range(0, size(layout), count):
        if any(layout(first + i) != layout(first) + i for i in range(count)):
            raise SourceError(f"{op.name}: {count} values share a register, and {layout} keeps them apart")


def _mma(op: MmaAtomCallOp, find: Find, builder: Builder) -> None:
    tiled: Any = find(op.args[0])
    atom = tiled.data.atom
    d, a, b, *c = (_tensor(find(arg)) for arg in op.args[1:])
    if atom.threads != WARP:
        _wgmma(op, atom, d, a, b, builder, added=bool(c))
        return
    values: list[SSAValue] = []
    for tensor, operand in ((a, "a"), (b, "b"), *((tensor, "c") for tensor in c)):
        kind = DTYPES["f32"] if operand == "c" and atom.c == "f32" else i32
        values += [_loaded(slot, kind, builder) for slot in _slots(op, tensor, atom, operand, builder)]
    kind = DTYPES["f32"] if atom.c == "f32" else i32
    if not c:
        values += [builder.insert(llvm.ZeroOp(result_types=[kind])).res] * atom.registers("c")
    made = builder.insert(ARCH["mma.sync"](values, [kind] * atom.registers("c"), atom.name))
    for value, slot in zip(made.res, _slots(op, d, atom, "c", builder), strict=True):
        builder.insert(llvm.StoreOp(value, slot))


def _wgmma(op: Operation, atom: MmaAtom, d: Tensor, a: Tensor, b: Tensor, builder: Builder, *, added: bool) -> None:
    """A product of a warpgroup: B in shared memory, A there or in registers, C and D the same registers. `added`: to
    what is there; else it is overwritten."""
    if atom.sparse:
        raise SourceError(f"{op.name}: {atom.name} needs metadata", hint="cute_nvgpu.arch.mma.wgmma_sp takes it")
    kind = DTYPES["f32"] if atom.c == "f32" else i32
    slots = _slots(op, d, atom, "c", builder)
    nothing = None if added else builder.insert(llvm.UndefOp(kind)).res
    values = [nothing or _loaded(slot, kind, builder) for slot in slots]
    shared = [b] if atom.a_layout else [a, b]
    sides = [shared_operand(op.name, tensor) for tensor in shared]
    words = [side.word(address(tensor, 0, builder), builder) for side, tensor in zip(sides, shared, strict=True)]
    held = [_loaded(slot, i32, builder) for slot in _slots(op, a, atom, "a", builder)] if atom.a_layout else []
    majors = "k" * bool(held) + "".join(side.major for side in sides)
    args = [*values, *held, *words, as_value(int(added), builder)]
    made = builder.insert(ARCH["mma.wgmma"](args, [kind] * len(slots), f"{atom.name}.{majors}"))
    for value, slot in zip(made.res, slots, strict=True):
        builder.insert(llvm.StoreOp(value, slot))


def _loaded(slot: SSAValue, kind: Attribute, builder: Builder) -> SSAValue:
    return builder.insert(llvm.LoadOp(slot, kind)).dereferenced_value


def _slots(op: Operation, tensor: Tensor, atom: Any, operand: str, builder: Builder) -> list[SSAValue]:
    """The pointers to the registers of an operand."""
    if tensor.pointer.space != "rmem":
        raise SourceError(f"{op.name}: {atom.name} takes operand {operand} in registers, not {tensor.pointer}")
    count, registers = size(tensor.layout), atom.registers(operand)
    if count % registers or count // registers * _bits(tensor) != 32:
        raise SourceError(f"{op.name}: {atom.name} holds {operand} in {registers} registers; {tensor} does not fit")
    packed = count // registers
    _packed(op, tensor.layout, packed)
    return [address(tensor, tensor.layout(i * packed), builder) for i in range(registers)]


def _bits(tensor: Tensor) -> int:
    return tensor.pointer.bytes * 8
