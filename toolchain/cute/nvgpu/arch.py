"""The operations `cute_nvgpu.arch.*`, one class for each row of the tables, by the GPUs that brought them."""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.ir import Operation
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition

from . import sm80, sm90, sm100
from .row import ArchOp, PtxForm

ROWS: dict[str, PtxForm] = {**sm80.ROWS, **sm90.ROWS, **sm100.ROWS}


def _define(name: str, row: PtxForm) -> type[Operation]:
    label = "".join(part.capitalize() for part in name.replace(".", "_").split("_")) + "Op"
    said: dict[str, Any] = {
        "name": f"cute_nvgpu.arch.{name}", "__module__": __name__, "__annotations__": {"ROW": ClassVar[Any]},
        "__doc__": row.does, "ROW": row,
        "irdl_options": (ParsePropInAttrDict(),),
    }  # fmt: skip
    return irdl_op_definition(type(label, (ArchOp,), said))


ARCH: dict[str, Any] = {name: _define(name, row) for name, row in ROWS.items()}
