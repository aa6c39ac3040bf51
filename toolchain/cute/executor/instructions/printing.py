"""`vprintf`: what a kernel prints goes to standard output, thread after thread."""

from __future__ import annotations

import re

import numpy as np
from xdsl.dialects import llvm

from ...nvvm.location import place
from ..state.access import LOCAL_BASE
from ..state.block import Warp
from ..state.call import Call
from ..state.findings import NoSemantics


def call(made: Call, warp: Warp) -> None:
    """A format, and the address of its numbers of 32 bits. Raises NoSemantics for another function."""
    op = made.op
    assert isinstance(op, llvm.CallOp)
    if op.callee is None or op.callee.string_value() != "vprintf":
        raise NoSemantics(f"{place(op)}the executor calls vprintf alone")
    text: str = warp.env[made.ins[0]]
    count = len(re.findall(r"%d", text))
    start = int(warp.env[made.ins[1]][0]) - LOCAL_BASE
    for lane in np.flatnonzero(warp.active):
        numbers = warp.local[lane, start : start + 4 * count].view(np.int32) if count else ()
        print(text % tuple(int(number) for number in numbers), end="")
    made.give(warp, [np.array([count], np.int32)] * len(made.outs))
