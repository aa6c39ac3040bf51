from __future__ import annotations

import struct
import threading
from typing import Any

import pytest

from toolchain.contract.op import ops
from toolchain.errors import LaunchError, UsageError
from toolchain.runtime.buffer import Allocation
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.cuda_work import CudaGraph, slots


def test_parameters_are_in_abi_order(cpu: CpuExecutor) -> None:
    """An array is its address, sizes and strides; a launch writes addresses and scalars."""
    x = cpu.empty((5, 60), "f32").slice(1, 0, 48)
    found = slots(ops()["layernorm"].params, [x, *(cpu.empty(size, "f32") for size in ((48,), (48,), (5, 48)))])
    numbers = [struct.unpack("<i", slot)[0] if isinstance(slot, bytes) else slot for slot in found]
    assert numbers == ["Q", 5, 48, 60, 1, "Q", 48, 1, "Q", 48, 1, "Q", 5, 48, 48, 1, "f"]


class Driverless:
    """The part of the CUDA executor that a graph uses; `frees` counts as the real one does."""

    def __init__(self) -> None:
        self.frees = 0
        self.lock = threading.RLock()
        self.replayed: list[Any] = []

    def run(self, call: str, *_: object, doing: str = "") -> str:
        del doing
        return f"result of {call}"

    def check_open(self) -> None: ...

    def hand_out(self, made: Any) -> None: ...

    def replay(self, executable: Any, *, beside: bool = False) -> None:
        self.replayed.append((executable, beside))

    def discard(self, call: str, handle: Any) -> None:
        del call, handle


class Counted(Allocation):
    """Counts how often it is asked if it was freed."""

    asked = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "freed":
            Counted.asked += 1
        return super().__getattribute__(name)


def test_a_cuda_graph_looks_at_its_buffers_when_one_can_have_gone(cpu: CpuExecutor) -> None:
    executor: Any = Driverless()

    def freed(_: Allocation) -> None:
        executor.frees += 1

    own, other = Counted(4096, 64, freed), Counted(8192, 64, freed)
    graph = CudaGraph(executor)
    graph.hold([cpu.view(own, 0, (4,), "i32"), cpu.view(own, 16, (4,), "i32")])
    with pytest.raises(UsageError, match="not captured to its end"):
        graph.replay()
    graph.instantiate("a graph")
    graph.replay()
    looked = Counted.asked
    graph.replay()
    graph.replay(beside=True)
    assert executor.replayed == [("result of cuGraphInstantiate", beside) for beside in (False, False, True)]
    assert Counted.asked == looked  # nothing was freed since
    other.free()
    graph.replay()
    own.free()
    for _ in range(2):  # it stays so
        with pytest.raises(LaunchError, match="buffer that this graph uses was freed"):
            graph.replay()
    assert len(executor.replayed) == 4
