"""A kernel of one warp and one atom: D = A x B + C, each element addressed through the atom's layouts."""

from __future__ import annotations

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntAttr,
    ModuleOp,
    UnitAttr,
    f32,
    f64,
    i8,
    i16,
    i32,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from toolchain.cute.atoms import MmaAtom
from toolchain.cute.atoms.mma import BITS
from toolchain.cute.layout import size
from toolchain.cute.nvgpu import ARCH
from toolchain.cute.nvvm.dialect import READ, GpuModuleOp
from toolchain.cute.nvvm.emit import Emitter
from toolchain.cute.nvvm.index import Index, index

GLOBAL = llvm.LLVMPointerType(IntAttr(1))


def one_atom(atom: MmaAtom) -> ModuleOp:
    """The kernel `one_atom(a, b, c, d)`. A, B, C and D are column-major tiles in global memory, as in the atom, with a
    byte for each value of 4 bits. For a sparse A a fifth array has the metadata, an i32 of each thread."""
    kinds = [GLOBAL] * (4 + atom.sparse)
    block = Block(arg_types=kinds)
    builder = Emitter(InsertPoint.at_end(block))
    lane = index(builder.insert(READ["tid.x"]()).res, builder, below=atom.threads)
    a, b, c, d, *metadata = block.args
    accumulator: Attribute = {"f32": f32, "f64": f64}.get(atom.c, i32)
    packed = [*_registers(builder, atom, "a", a, lane), *_registers(builder, atom, "b", b, lane)]
    offsets = [_offset(atom, "c", lane, value) for value in range(size(atom.layout("c")[1]))]
    before = [_load(builder, c, offset, accumulator) for offset in offsets]
    given = [*packed, *before, *(_load(builder, words, lane, i32) for words in metadata)]
    name = "mma.sync_sp" if atom.sparse else "mma.sync"
    made = builder.insert(ARCH[name](given, [accumulator] * len(before), atom.name))
    for offset, element in zip(offsets, made.res, strict=True):
        builder.insert(llvm.StoreOp(element, _address(builder, d, offset, accumulator)))
    builder.insert(llvm.ReturnOp())
    kind = llvm.LLVMFunctionType(kinds)
    function = llvm.FuncOp("one_atom", kind, llvm.LinkageAttr("external"), body=Region(block))
    function.attributes["nvvm.kernel"] = UnitAttr()
    function.attributes["nvvm.maxntid"] = DenseArrayBase.from_list(i32, [atom.threads])
    function.properties["arg_attrs"] = ArrayAttr([DictionaryAttr({})] * len(kinds))
    return ModuleOp([GpuModuleOp("kernels", Region(Block([function])))])


def _offset(atom: MmaAtom, operand: str, lane: Index, value: int) -> Index:
    return atom.layout(operand)((lane, value))


def _address(builder: Emitter, base: SSAValue, offset: Index, element: Attribute) -> SSAValue:
    assert offset.value is not None
    gep = llvm.GEPOp(base, [llvm.GEP_USE_SSA_VAL], element, [offset.value], result_type=GLOBAL)
    return builder.insert(gep).result


def _load(builder: Emitter, base: SSAValue, offset: Index, element: Attribute) -> SSAValue:
    return builder.insert(llvm.LoadOp(_address(builder, base, offset, element), element)).results[0]


def _registers(builder: Emitter, atom: MmaAtom, operand: str, base: SSAValue, lane: Index) -> list[SSAValue]:
    """The registers of an operand: the value of the lowest index in the lowest bits."""
    bits = BITS[atom.ab]
    element: Attribute = {64: f64, 32: i32, 16: i16, 8: i8, 4: i8}[bits]
    values = size(atom.layout(operand)[1])
    if bits == 64:
        return [_load(builder, base, _offset(atom, operand, lane, value), element) for value in range(values)]
    made: list[SSAValue] = []
    for first in range(0, values, 32 // bits):
        whole: SSAValue | None = None
        for part in range(32 // bits):
            value = _load(builder, base, _offset(atom, operand, lane, first + part), element)
            if bits < 32:
                value = builder.insert(arith.ExtUIOp(value, i32)).result
            if bits == 4:
                mask = builder.insert(arith.ConstantOp.from_int_and_width(15, 32)).result
                value = builder.insert(arith.AndIOp(value, mask)).result
            if part:
                shift = builder.insert(arith.ConstantOp.from_int_and_width(part * bits, 32)).result
                value = builder.insert(arith.ShLIOp(value, shift)).result
            whole = value if whole is None else builder.insert(arith.OrIOp(whole, value)).result
        assert whole is not None
        made.append(whole)
    return made
