"""Small kernels in PTX."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolchain.cute.executor import Report, run

HEAD = ".version 8.5\n.target sm_90a\n.address_size 64\n"
REGISTERS = (".reg .pred %p<9>;", ".reg .b16 %h<9>;", ".reg .b32 %r<99>;", ".reg .b64 %d<19>;")


def kernel(*lines: str, parameters: str = ".param .u64 .ptr k_0", before: str = "", threads: int = 32) -> str:
    """A kernel `k` of these lines, the first of which is line 9 of the text. `%r0` is the thread, `%d0` the address of
    the thread's 4 bytes of the first parameter."""
    body = "\n".join(lines)
    entry = f".visible .entry k({parameters}) .reqntid {threads} {{ {' '.join(REGISTERS)}"
    start = "mov.u32 %r0, %tid.x; ld.param.b64 %d1, [k_0];\nmul.wide.u32 %d2, %r0, 4;\nadd.s64 %d0, %d1, %d2;"
    return f"{HEAD}{before}\n{entry}\n{start}\n{body}\nret;\n}}\n"


def results(*lines: str, of: Any = None, **more: Any) -> Any:
    """What the threads make of an array of i32, each of its own element: `%r1` before, `%r2` after the lines."""
    array = np.arange(more.get("threads", 32), dtype=np.int32) if of is None else np.array(of)
    launch(kernel("ld.global.b32 %r1, [%d0];", *lines, "st.global.b32 [%d0], %r2;", **more), array)
    return array


def launch(text: str, *args: Any, **more: Any) -> Report:
    return run(text, args, **more)
