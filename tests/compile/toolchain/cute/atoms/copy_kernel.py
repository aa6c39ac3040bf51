"""A kernel of one warp and one matrix copy: a tile through shared memory and registers, addressed by the atom."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, IntAttr, ModuleOp, UnitAttr, i16, i32
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from toolchain.cute.atoms import MatrixCopyAtom
from toolchain.cute.layout import size
from toolchain.cute.nvgpu import ARCH
from toolchain.cute.nvvm.dialect import READ, Barrier0Op, GpuModuleOp
from toolchain.cute.nvvm.emit import Emitter
from toolchain.cute.nvvm.index import Index, constant, index

GLOBAL, SHARED = llvm.LLVMPointerType(IntAttr(1)), llvm.LLVMPointerType(IntAttr(3))
Place = tuple[SSAValue, llvm.LLVMPointerType]


def one_copy(atom: MatrixCopyAtom) -> ModuleOp:
    """The kernel `one_copy(tile, registers)`: a load reads `tile` (rows x 8, row-major, b16) and writes each thread's
    values to `registers` (32 x values); a store does the reverse."""
    rows, columns = atom.tile
    block = Block(arg_types=[GLOBAL, GLOBAL])
    builder = Emitter(InsertPoint.at_end(block))
    lane = index(builder.insert(READ["tid.x"]()).res, builder, below=32)
    tile, registers = block.args
    shared = builder.insert(llvm.AddressOfOp("shared", SHARED)).result
    values = size(atom.layout("registers")[1])
    moved = rows * columns // 32  # elements of a thread between global and shared memory
    row = _at(builder, shared, lane % rows * columns, SHARED)
    if atom.load:
        for i in range(moved):
            _copy(builder, (tile, GLOBAL), (shared, SHARED), lane * moved + i, lane * moved + i)
        builder.insert(Barrier0Op())
    if atom.load:
        loaded = builder.insert(ARCH["copy.ldmatrix"]([row], [i32] * atom.count, atom.name)).res
        for number, one in enumerate(loaded):
            builder.insert(llvm.StoreOp(one, _at(builder, registers, lane * values + 2 * number, GLOBAL)))
    else:
        held = [
            builder.insert(llvm.LoadOp(_at(builder, registers, lane * values + 2 * number, GLOBAL), i32)).results[0]
            for number in range(atom.count)
        ]
        builder.insert(ARCH["copy.stmatrix"]([row, *held], [], atom.name))
        builder.insert(Barrier0Op())
        for i in range(moved):
            _copy(builder, (shared, SHARED), (tile, GLOBAL), lane * moved + i, lane * moved + i)
    builder.insert(llvm.ReturnOp())
    function = llvm.FuncOp(
        "one_copy", llvm.LLVMFunctionType([GLOBAL, GLOBAL]), llvm.LinkageAttr("external"), body=Region(block)
    )
    function.attributes["nvvm.kernel"] = UnitAttr()
    function.attributes["nvvm.maxntid"] = DenseArrayBase.from_list(i32, [32])
    memory = llvm.GlobalOp(llvm.LLVMArrayType(rows * columns, i16), "shared", "internal", 3, alignment=128)
    return ModuleOp([GpuModuleOp("kernels", Region(Block([memory, function])))])


def _at(builder: Emitter, base: SSAValue, offset: Index | int, kind: llvm.LLVMPointerType) -> SSAValue:
    where = constant(offset, builder) if isinstance(offset, int) else offset
    assert where.value is not None
    return builder.insert(llvm.GEPOp(base, [llvm.GEP_USE_SSA_VAL], i16, [where.value], result_type=kind)).result


def _copy(builder: Emitter, source: Place, target: Place, read: Index, write: Index) -> None:
    value = builder.insert(llvm.LoadOp(_at(builder, source[0], read, source[1]), i16)).results[0]
    builder.insert(llvm.StoreOp(value, _at(builder, target[0], write, target[1])))
