"""Kernels in Python, traced to `cute` IR: `from toolchain.cute import dsl as cute`.

Names are those of NVIDIA's CuTe DSL where the meaning is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntAttr, i1, i32
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Block, Region
from xdsl.utils.exceptions import VerifyException

from ...errors import UsageError
from ..atoms import find
from ..atoms.copy_atom import CopyAtom
from ..atoms.tiled import (
    TiledCopy,
    TiledMma,
    accumulator_as_a,
    make_tiled_copy,
    make_tiled_copy_like,
    make_tiled_mma,
    retile,
)
from ..dialect.tensor_ops import AllocaOp, CopyOp, GemmOp, InBoundsOp, ToAddressOp
from ..dialect.tensors import BITS, SPACES, MemRefType, Pointer, Tensor, TiledCopyType, TiledMmaType
from ..dialect.types import CoordType, LayoutType, ShapeType
from ..layout import Layout, Swizzle, cosize, make_layout, size
from ..layout.leaves import ceil_div
from . import arch
from .trace import Kernel, Parameter, current, kernel, shared_address, when
from .values import (
    Array,
    Float32,
    Number32,
    Scalar,
    SizedTensor,
    TensorMap,
    TensorValue,
    both,
    invert,
    layout_value,
    less,
    number,
    op,
    pointer,
    same,
    scalar,
    select,
    ssa,
    tile_value,
    tuple_value,
    view,
)

__all__ = [
    "BITS",
    "Array",
    "CopyAtom",
    "Float32",
    "Kernel",
    "Layout",
    "Number32",
    "Parameter",
    "Scalar",
    "Swizzle",
    "TensorMap",
    "TiledMma",
    "accumulator_as_a",
    "address",
    "arch",
    "both",
    "broadcast_columns",
    "broadcast_rows",
    "ceil_div",
    "convert",
    "copy",
    "domain_offset",
    "fill",
    "find",
    "gemm",
    "hold",
    "in_bounds",
    "invert",
    "kernel",
    "less",
    "local_tile",
    "make_fragment",
    "make_identity_tensor",
    "make_layout",
    "make_tiled_copy",
    "make_tiled_copy_like",
    "make_tiled_mma",
    "number",
    "overlay",
    "partition",
    "range_",
    "registers",
    "retile",
    "same",
    "scalar",
    "select",
    "shared_tensor",
    "size",
    "ssa",
    "transposed",
    "when",
    "with_layout",
]


def _call(name: str, *args: Any) -> TensorValue:
    return TensorValue(current().insert(op(name)(list(args))).res)


def range_(start: Any, stop: Any = None, step: Any = 1) -> Iterator[Any]:
    """A loop of the kernel, as `range`. Its body is traced once; what changes in it is held in tensors. Do not leave it
    by `break` or `return`."""
    first, last = (0, start) if stop is None else (start, stop)
    trace, block = current(), Block(arg_types=[i32])
    bounds = ssa(first), ssa(last), ssa(step)
    with trace.inside(block):
        yield number(block.args[0])
        trace.insert(scf.YieldOp())
    trace.insert(scf.ForOp(*bounds, [], Region(block)))


def shared_tensor(dtype: str, layout: Layout, *, align: int = 128, swizzle: Swizzle | None = None) -> TensorValue:
    """A tensor in the block's shared memory. `swizzle`: of byte offsets. Raises LayoutError if a size is not known."""
    align = max(align, 1 << (swizzle.bits + swizzle.base + swizzle.shift)) if swizzle else align
    address = shared_address(cosize(layout) * BITS[dtype] // 8, align)
    return view(pointer(address, dtype, "smem", align, swizzle), layout)


def overlay(tensor: TensorValue, layout: Layout, *, swizzle: Swizzle | None = None) -> TensorValue:
    """The memory of a tensor in shared memory under another layout. Raises UsageError if that needs more."""
    pointed = tensor.kind.data.pointer
    if pointed.space != "smem" or cosize(layout) > cosize(tensor.layout):
        raise UsageError(f"{layout} does not fit into the shared memory of {tensor.layout}")
    return view(pointer(address(tensor), pointed.dtype, "smem", pointed.align, swizzle), layout)


def make_fragment(shape: Any, dtype: str) -> TensorValue:
    """A tensor in registers, column-major over a shape, or with a layout."""
    layout = shape if isinstance(shape, Layout) else Layout(shape)
    kind = MemRefType(Tensor(Pointer(dtype, "rmem", 16), layout))
    return TensorValue(current().insert(AllocaOp([], [kind])).res[0])


def make_identity_tensor(shape: Any) -> TensorValue:
    """A tensor whose elements are their coordinates."""
    return _call("make_identity_tensor", tuple_value(ShapeType, shape))


def local_tile(tensor: TensorValue, tile: Any, coordinate: Any) -> TensorValue:
    """The tile at a coordinate of the tiles; None keeps the tiles of a mode as a mode behind."""
    return _call("local_tile", tensor.value, tile_value(tile), tuple_value(CoordType, coordinate))


def with_layout(tensor: TensorValue, layout: Layout) -> TensorValue:
    """The same first element with another layout of known numbers, as a composition with its own."""
    return _call("composition", tensor.value, current().static(LayoutType(layout)))


def broadcast_rows(vector: TensorValue, rows: Any) -> TensorValue:
    """The tensor (N) as (rows, N), each row the same."""
    return _spread(vector, Layout((rows, _count(vector)), (0, 1)))


def broadcast_columns(vector: TensorValue, columns: Any) -> TensorValue:
    """The tensor (M) as (M, columns), each column the same."""
    return _spread(vector, Layout((_count(vector), columns), (1, 0)))


def _count(vector: TensorValue) -> Any:
    return vector.shape if isinstance(vector, SizedTensor) else size(vector.layout)


def _spread(vector: TensorValue, layout: Layout) -> TensorValue:
    return TensorValue(current().insert(op("make_view")([iterator(vector), layout_value(layout)])).res)


def domain_offset(tensor: SizedTensor, coordinate: tuple[Any, ...]) -> SizedTensor:
    """The tensor that begins at a coordinate; its sizes are said as before."""
    layout = tensor.sized
    twice = Layout((*layout.shape, *layout.shape), (*layout.stride, *layout.stride))
    both = TensorValue(current().insert(op("make_view")([iterator(tensor), layout_value(twice)])).res)
    return SizedTensor(both[(*[None] * len(layout), *coordinate)].value, layout)


def iterator(tensor: TensorValue) -> Any:
    """The pointer to a tensor's first element."""
    return current().insert(op("get_iter")([tensor.value])).res


def transposed(tensor: TensorValue) -> TensorValue:
    """The tensor (K, N) as (N, K). Modes behind stay."""
    return _call_numbers("select", tensor, [1, 0, *range(2, len(tensor.layout))])


def _call_numbers(name: str, tensor: TensorValue, numbers: list[int]) -> TensorValue:
    return TensorValue(current().insert(op(name)([tensor.value], numbers)).res)


def _tiled(tiled: TiledCopy | TiledMma) -> Any:
    kind = TiledCopyType(tiled) if isinstance(tiled, TiledCopy) else TiledMmaType(tiled)
    return current().static(kind)


def partition(tiled: TiledCopy | TiledMma, which: str, tensor: TensorValue, thread: Any) -> TensorValue:
    """What a thread holds of a tensor: side `S` or `D` of a tiled copy, or operand `A`, `B`, `C` or `E` (a
    sparse A's metadata) of a tiled MMA."""
    name = f"tiled.{'copy' if isinstance(tiled, TiledCopy) else 'mma'}.partition_{which}"
    return _call(name, _tiled(tiled), tensor.value, tuple_value(CoordType, thread))


def copy(
    tiled: TiledCopy, source: TensorValue, target: TensorValue, *, where: TensorValue | None = None, inside: Any = None
) -> None:
    """Copies what a thread holds. `where`, `inside`: coordinates of the elements, and the shape they must lie in."""
    bounds = [] if where is None else [where.value, tuple_value(ShapeType, inside)]
    current().insert(CopyOp([_tiled(tiled), source.value, target.value, *bounds]))


def gemm(
    tiled: TiledMma, d: TensorValue, a: TensorValue, b: TensorValue, c: TensorValue | None = None, *,
    metadata: TensorValue | None = None,
) -> None:  # fmt: skip
    """D = A x B + C for the parts of one thread; without C, D = A x B. `metadata`: of a sparse A, in registers.

    Raises UsageError for operands that do not fit together."""
    more = [tensor.value for tensor in (c, metadata) if tensor is not None]
    made = GemmOp([_tiled(tiled), d.value, a.value, b.value, *more])
    try:
        made.verify_()
    except VerifyException as error:
        raise UsageError(str(error)) from error
    current().insert(made)


def hold(*tensors: TensorValue) -> None:
    """A line in the program that no arithmetic on these registers crosses. An instruction of a warpgroup reads and
    writes registers until a wait for it ends, and the compiler does not know."""
    for tensor in tensors:
        words = tensor if BITS[tensor.dtype] == 32 else registers(tensor)
        values = [words[i] for i in range(size(words.layout))]
        held = arch.instruction("registers", *values, results=[value.type for value in values])
        for i, value in enumerate(held):
            words[i] = Scalar(value)


def registers(tensor: TensorValue) -> TensorValue:
    """Registers of values of 8 or 16 bits as words of 32."""
    count = cosize(tensor.layout) * BITS[tensor.dtype] // 32
    return view(pointer(address(tensor), "i32", "rmem", 16), Layout(count))


def address(tensor: TensorValue) -> Any:
    """The pointer to a tensor's first element, for instructions of `arch`."""
    kind = LLVMPointerType(IntAttr(SPACES[tensor.kind.data.pointer.space]))
    return current().insert(ToAddressOp([tensor.value], [kind])).res[0]


def fill(tensor: TensorValue, value: Any) -> None:
    """Writes a value to every element; the tensor's shape is known."""
    made = scalar(value, tensor.dtype)
    for i in range(size(tensor.layout)):
        tensor[i] = made


def convert(source: TensorValue, target: TensorValue) -> None:
    """Rounds f32 in registers to f16 or bf16, or to e4m3 or e5m2, to nearest even; two or four values share a register
    of the target."""
    words, layout = registers(target), target.layout
    count, name = (2, "convert.pair") if BITS[target.dtype] == 16 else (4, "convert.quad")
    for i in range(0, size(source.layout), count):
        together = [layout(i + j) for j in range(count)]
        if together[0] % count or together != list(range(together[0], together[0] + count)):
            raise UsageError(f"{layout} keeps values apart that one instruction rounds: {count} side by side")
        values = [source[i + j] for j in range(count)]
        words[layout(i) // count] = Scalar(arch.instruction(name, *values, results=[i32], atom=target.dtype)[0])


def in_bounds(where: TensorValue, shape: Any) -> Any:
    """True if the first coordinate lies in a shape, an i1."""
    return current().insert(InBoundsOp([where.value, tuple_value(ShapeType, shape)], [i1])).res[0]
