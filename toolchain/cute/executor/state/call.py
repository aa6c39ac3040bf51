"""One instruction of a kernel as its semantics see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import llvm
from xdsl.ir import Operation, SSAValue

from .block import WARP, Array, Wait, Warp
from .findings import DivergentBarrier

WGMMA = ("cute_nvgpu.arch.mma.wgmma", "cute_nvgpu.arch.mma.wgmma_sp")
Run = Callable[["Call", Warp], "Wait | None"]


@dataclass(frozen=True)
class Call:
    """`ins`, `outs`: its registers. `number`, `atom`: as `ArchOp` has them. `op`: None for an instruction of PTX."""

    op: Operation | None
    ins: Sequence[int]
    outs: Sequence[int]
    number: int = 0
    atom: str = ""

    def arg(self, warp: Warp, index: int) -> Array:
        """An operand, one row for each thread."""
        value = warp.env[self.ins[index]]
        return value if len(value) == WARP else np.broadcast_to(value, (WARP, *value.shape[1:]))

    def one(self, warp: Warp, index: int) -> int:
        """An operand that all active threads must have the same."""
        value = self.arg(warp, index)[warp.active]
        if (value != value[0]).any():
            warp.fail(
                DivergentBarrier, f"operand {index} differs between the threads of a warp: {value[0]}, {value.max()}"
            )
        return int(value[0])

    def registers(self, warp: Warp, first: int, count: int, dtype: Any = np.int32) -> NDArray[np.uint8]:
        """Operands of 32 bits, or as wide as a dtype, as bytes (32, 4 * count)."""
        made = np.empty((WARP, count), dtype)
        for i, register in enumerate(self.ins[first : first + count]):
            made[:, i] = warp.env[register].view(dtype)
        return made.view(np.uint8)

    def give(self, warp: Warp, results: Sequence[Any]) -> None:
        """The results."""
        for register, value in zip(self.outs, results, strict=True):
            warp.env[register] = value
            warp.pending.pop(register, None)


def origin(value: SSAValue) -> SSAValue:
    """The value that `registers` passes on, which writes no register."""
    while isinstance(owner := value.owner, Operation) and owner.name == "cute_nvgpu.arch.registers":
        value = owner.operands[owner.results.index(value)]
    return value


def moved(value: SSAValue) -> bool:
    """True if an instruction of a warpgroup or a slot has given the value: to pass it on writes no register anew."""
    owner = origin(value).owner
    return not isinstance(owner, Operation) or isinstance(owner, llvm.LoadOp) or owner.name in WGMMA


@dataclass(frozen=True)
class InstructionRule:
    """`run`: what the instruction does. `aligned`: all threads of the warp do it together; `full`: and there must be
    32. `late`: as many operands as there are results may be without their values yet."""

    run: Run
    aligned: bool = False
    full: bool = False
    late: bool = False
