"""The operations of `cute` on values of the algebra, by name. Their rows stand by theme in the modules beside this."""

from __future__ import annotations

from xdsl.ir import Operation

from ..layout import tuples as nested
from .algebra import AlgebraOp, OpForm, define
from .layout_rows import LAYOUT_ROWS
from .tensor_rows import TENSOR_ROWS
from .tuple_rows import TUPLE_ROWS
from .values import VALUES, CompareOp, GetScalarsOp, MakeOp, StaticOp

__all__ = ["OPERATIONS", "ROWS", "AlgebraOp", "CompareOp", "GetScalarsOp", "MakeOp", "StaticOp", "nested"]

ROWS: dict[str, OpForm] = {**LAYOUT_ROWS, **TUPLE_ROWS, **TENSOR_ROWS}
OPERATIONS: dict[str, type[Operation]] = {
    **VALUES,
    **{name: define(name, AlgebraOp, ROW=row, __doc__=row.does) for name, row in ROWS.items()},
}
