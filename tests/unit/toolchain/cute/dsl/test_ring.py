"""Rings of mbarriers: several in one, each with phases of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.executor import Deadlock, run


def kernel(awaited: int) -> cute.Kernel:
    @cute.kernel(cute.Array("f32", rank=1), threads=64, name="rings")
    def made(out: Any) -> None:
        thread = arch.thread_idx()[0]
        ready = Barriers(2, 1, rings=2)
        with cute.when(cute.same(thread, 0)):
            ready.init()
            arch.instruction("mbarrier.init_fence")
        arch.sync_threads()
        with cute.when(cute.same(thread, 0)):
            ready.of(1).arrive(0)
            ready.of(1).arrive(1)
        with cute.when(cute.same(thread, 32)):
            ready.of(thread // 32 * awaited).wait(0)
            out[0] = 1.0

    return made


def test_a_ring_is_waited_for_alone() -> None:
    out = np.zeros(1, np.float32)
    run(kernel(1), [out])
    assert out[0] == 1
    with pytest.raises(Deadlock):
        run(kernel(0), [out])
