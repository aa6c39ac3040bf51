"""Where a traced operation comes from: the line of the kernel, not of the front end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.layout import Layout
from toolchain.cute.nvvm.location import place

LINES = Path(__file__).read_text().split("\n")


@cute.kernel(cute.Array("f32", rank=1), threads=32)
def kernel(target: Any) -> None:
    thread = arch.thread_idx()[0]
    full = Barriers(1, 1)
    with cute.when(cute.less(thread, 8)):
        full.init()
    shared = cute.shared_tensor("f32", Layout(32))
    shared[thread] = 1.0
    target[thread] = shared[thread] * 2.0


def lines(name: str) -> list[str]:
    """The lines that the operations of a name come from, in order."""
    found = [place(op) for op in kernel.module.walk() if op.name == name]
    assert all(where.rpartition("test_caller.py:")[1] for where in found)
    return [LINES[int(where.split(":")[-3]) - 1].strip() for where in found]


def test_an_operation_has_the_line_of_the_kernel() -> None:
    assert lines("arith.mulf") == ["target[thread] = shared[thread] * 2.0"]
    assert lines("cute.memref.store") == ["shared[thread] = 1.0", "target[thread] = shared[thread] * 2.0"]


def test_what_the_front_end_does_on_its_own_has_the_line_that_called_it() -> None:
    assert lines("cute_nvgpu.arch.mbarrier.init") == ["full.init()"]
    assert lines("scf.if") == ["with cute.when(cute.less(thread, 8)):"]


def test_lowering_keeps_the_lines() -> None:
    lowered = kernel.lowered()
    stores = [place(op) for op in lowered.walk() if op.name == "llvm.store"]
    assert [LINES[int(where.split(":")[-3]) - 1].strip() for where in stores] == lines("cute.memref.store")


def test_shared_memory_is_named_by_its_line() -> None:
    said = [LINES[int(name.rpartition(":")[2]) - 1].strip() for _, _, name in kernel.shared]
    assert said == ["full = Barriers(1, 1)", 'shared = cute.shared_tensor("f32", Layout(32))']
