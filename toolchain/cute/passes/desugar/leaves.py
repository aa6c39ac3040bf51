"""Values taken apart: each leaf that is known is static, each other one is a mode of the value."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from ...dialect.ops import OPERATIONS, StaticOp
from ...dialect.sugar import LeavesOp
from ...dialect.types import is_static
from .place import Placed

Get: Any = OPERATIONS["get"]


def take_apart(op: LeavesOp, builder: Placed) -> list[SSAValue]:
    made: list[SSAValue] = []
    for at, kind in op.leaves(op.arg.type):
        if is_static(kind):
            made.append(builder.insert(StaticOp(kind)).res)
        else:
            made.append(builder.insert(Get([op.arg], at, kind)).res if at else op.arg)
    return made
