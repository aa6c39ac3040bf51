"""Values taken apart: each leaf that is known is static, each other one is a mode of the value, or of a tile's layout
the layout of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from ...dialect.ops import OPERATIONS, GetScalarsOp, StaticOp
from ...dialect.sugar import LeavesOp
from ...dialect.types import CuteType, LayoutType, ShapeType, StrideType, TileType, is_static
from ...dialect.values import dynamic_leaves
from .place import Placed

Get: Any = OPERATIONS["get"]
MakeLayout: Any = OPERATIONS["make_layout"]


def take_apart(op: LeavesOp, builder: Placed) -> list[SSAValue]:
    made: list[SSAValue] = []
    for at, kind in op.leaves(op.arg.type):
        if is_static(kind):
            made.append(builder.insert(StaticOp(kind)).res)
            continue
        of_tile = isinstance(op.arg.type, TileType) and isinstance(kind, LayoutType)
        part = TileType(kind.data) if of_tile else kind
        leaf = builder.insert(Get([op.arg], at, part)).res if at else op.arg
        made.append(_layout(leaf, kind, builder) if of_tile else leaf)
    return made


def _layout(tile: SSAValue, kind: Any, builder: Placed) -> SSAValue:
    """The layout of a tile that is one."""
    numbers = list(builder.insert(GetScalarsOp(tile, only_dynamic=True)).scalars)
    shape, stride = ShapeType(kind.data.shape), StrideType(kind.data.stride)
    count = len(dynamic_leaves(shape))
    parts = [_made("shape", shape, numbers[:count], builder), _made("stride", stride, numbers[count:], builder)]
    return builder.insert(MakeLayout(parts, None, kind)).res


def _made(name: str, kind: CuteType, numbers: Sequence[SSAValue], builder: Placed) -> SSAValue:
    if is_static(kind):
        return builder.insert(StaticOp(kind)).res
    make: Any = OPERATIONS[f"make_{name}"]
    return builder.insert(make(numbers, kind)).res
