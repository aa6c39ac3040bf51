"""All operations of Tile IR at bytecode 13.5, by class, by text name and by opcode."""

from __future__ import annotations

from . import arithmetic, control, memory, shaping
from .arithmetic import *  # noqa: F403
from .base import TileOp
from .control import *  # noqa: F403
from .memory import *  # noqa: F403
from .shaping import *  # noqa: F403


def _all() -> list[type[TileOp]]:
    found: list[type[TileOp]] = []
    for module in (arithmetic, control, memory, shaping):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, TileOp) and "OPCODE" in vars(value):
                found.append(value)
    return found


# Other names that text may have: NVIDIA's disassembler since 13.4, and cuda-tile 13.1.
ALIASES = {"fpowf": "pow", "print": "print_tko"}
OPS: dict[str, type[TileOp]] = {op.name.removeprefix("cuda_tile."): op for op in _all()}
BY_OPCODE: dict[int, type[TileOp]] = {op.OPCODE: op for op in OPS.values()}
