"""Whole tensors, element by element, and tensors in registers."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import FloatAttr, IntAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, SSAValue

from ...dialect.ops import StaticOp
from ...dialect.sugar import (
    AxpbyOp,
    ClearOp,
    FillOp,
    GemvOp,
    LoadVecOp,
    MakeFragmentLikeOp,
    MmaFragmentOp,
    StoreVecOp,
)
from ...dialect.tensor_ops import AllocaOp, LoadOp, StoreOp, ToAddressOp
from ...dialect.tensors import DTYPES, SPACES
from ...dialect.types import CoordType
from ...layout import Layout, size
from .place import Placed


def _layout(tensor: SSAValue) -> Layout:
    kind: Any = tensor.type
    return kind.data.layout


def _element(tensor: SSAValue) -> Attribute:
    kind: Any = tensor.type
    return DTYPES[kind.data.pointer.dtype]


def _at(where: Any, builder: Placed) -> SSAValue:
    return builder.insert(StaticOp(CoordType(where))).res


def _load(tensor: SSAValue, where: Any, builder: Placed) -> SSAValue:
    return builder.insert(LoadOp([tensor, _at(where, builder)], [_element(tensor)])).res[0]


def _store(tensor: SSAValue, where: Any, value: SSAValue, builder: Placed) -> None:
    builder.insert(StoreOp([tensor, _at(where, builder), value]))


def _sum(a: SSAValue, b: SSAValue, builder: Placed) -> SSAValue:
    return builder.insert((arith.AddiOp if isinstance(a.type, IntegerType) else arith.AddfOp)(a, b)).results[0]


def _product(a: SSAValue, b: SSAValue, builder: Placed) -> SSAValue:
    return builder.insert((arith.MuliOp if isinstance(a.type, IntegerType) else arith.MulfOp)(a, b)).results[0]


def fill(op: FillOp, builder: Placed) -> list[SSAValue]:
    tensor, value = op.args
    for i in range(size(_layout(tensor))):
        _store(tensor, i, value, builder)
    return []


def clear(op: ClearOp, builder: Placed) -> list[SSAValue]:
    zeros(op.args[0], builder)
    return []


def zeros(tensor: SSAValue, builder: Placed) -> None:
    """Writes zero to every element."""
    kind: Any = _element(tensor)
    zero: Any = IntegerAttr(0, kind) if isinstance(kind, IntegerType) else FloatAttr(0.0, kind)
    value = builder.insert(arith.ConstantOp(zero)).result
    for i in range(size(_layout(tensor))):
        _store(tensor, i, value, builder)


def axpby(op: AxpbyOp, builder: Placed) -> list[SSAValue]:
    alpha, x, beta, y = op.args
    for i in range(size(_layout(y))):
        made = _product(alpha, _load(x, i, builder), builder)
        if not _is_zero(beta):
            made = _sum(made, _product(beta, _load(y, i, builder), builder), builder)
        _store(y, i, made, builder)
    return []


def _is_zero(value: SSAValue) -> bool:
    """True for a constant 0."""
    written: Any = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return written is not None and written.value.data == 0


def gemv(op: GemvOp, builder: Placed) -> list[SSAValue]:
    d, a, b, c = op.args
    for row in range(size(_layout(d))):
        made = _load(c, row, builder)
        for k in range(size(_layout(b))):
            made = _sum(made, _product(_load(a, (row, k), builder), _load(b, k, builder), builder), builder)
        _store(d, row, made, builder)
    return []


def _address(tensor: SSAValue, builder: Placed) -> SSAValue:
    kind: Any = tensor.type
    space = SPACES[kind.data.pointer.space]
    pointer = llvm.LLVMPointerType(IntAttr(space)) if space else llvm.LLVMPointerType()
    return builder.insert(ToAddressOp([tensor], [pointer])).res[0]


def _alignment(tensor: SSAValue) -> int:
    kind: Any = tensor.type
    return kind.data.pointer.align


def load_vec(op: LoadVecOp, builder: Placed) -> list[SSAValue]:
    (tensor,) = op.args
    read = llvm.LoadOp(_address(tensor, builder), op.res[0].type)
    read.properties["alignment"] = IntegerAttr(_alignment(tensor), 64)
    return [builder.insert(read).dereferenced_value]


def store_vec(op: StoreVecOp, builder: Placed) -> list[SSAValue]:
    vector, tensor = op.args
    builder.insert(llvm.StoreOp(vector, _address(tensor, builder), alignment=_alignment(tensor)))
    return []


def fragment(op: MakeFragmentLikeOp, builder: Placed) -> list[SSAValue]:
    return [builder.insert(AllocaOp([], [op.res[0].type])).res[0]]


def mma_fragment(op: MmaFragmentOp, builder: Placed) -> list[SSAValue]:
    if not op.in_registers():
        return [op.args[1]]
    return [builder.insert(AllocaOp([], [op.res[0].type])).res[0]]
