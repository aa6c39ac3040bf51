"""Which launches may begin before the previous one ends, tested with a driver that only records calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from toolchain.bundles.bundle import BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.errors import DeviceError
from toolchain.runtime import GPU, DeviceBuffer
from toolchain.runtime import cuda as executors
from toolchain.runtime import cuda_driver as module
from toolchain.runtime.cuda import CudaExecutor
from toolchain.runtime.launch import EntryLauncher

HOPPER = GPU(0, "NVIDIA H200", (9, 0), 132, 141 * 2**30)
AMPERE = GPU(0, "NVIDIA A10", (8, 6), 72, 24 * 2**30)
N = 8


class FakeDriver:
    """The driver's types and constants, and calls that all succeed, but for those in `failing`. `ahead`: of each
    launch, whether it may begin before the one before it ends."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.ahead: list[bool] = []
        self.streams: list[int] = []
        self._address = 0x1000

    def __getattr__(self, name: str) -> Any:
        real = getattr(driver, name)
        return real if isinstance(real, type) else lambda *args: self._called(name, args)

    def _called(self, name: str, args: tuple[Any, ...]) -> tuple[Any, Any]:
        if name in self.failing:
            return driver.CUresult.CUDA_ERROR_INVALID_VALUE, 0
        if name == "cuLaunchKernelEx":
            config = args[0]
            self.ahead.append(_is_ahead(config))
            self.streams.append(int(config.hStream))
        if name == "cuMemAllocFromPoolAsync":
            self._address += 0x1000
            return driver.CUresult.CUDA_SUCCESS, self._address
        return driver.CUresult.CUDA_SUCCESS, 1


def _is_ahead(config: Any) -> bool:
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (1, 1, 1)
    if not config.numAttrs:
        return False
    (attribute,) = config.attrs
    assert attribute.id == driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    return bool(attribute.value.programmaticStreamSerializationAllowed)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = FakeDriver()
    monkeypatch.setattr(module, "load", lambda: made)
    monkeypatch.setattr(module, "describe", lambda *_: HOPPER)
    return made


@pytest.fixture
def cuda(fake: FakeDriver) -> CudaExecutor:
    del fake
    return CudaExecutor()


BUNDLE: Any = SimpleNamespace(read=lambda file: file.sha256.encode())


def entry(op: str, version: str = "13.4") -> BundleEntry:
    cubins = {target: FileRef(Path(f"{op}.{target}"), op + target) for target in ("sm_80", "sm_90")}
    spec = EntrySpec(f"{op}_{version}", op, "py", "f32", grid=("N", "2", "1"))
    return BundleEntry(spec, FileRef(Path(op), op), tile_ir(b"", version).form, cubins)


class Chain:
    """Launches over buffers by name, each made when it is first named."""

    def __init__(self, executor: CudaExecutor) -> None:
        self.executor = executor
        self._memory = executor.empty((64, N, N), "f32")  # all are in one allocation, with nothing between them
        self._named: dict[str, DeviceBuffer] = {}
        self.launch = EntryLauncher(executor)

    def __getitem__(self, name: str) -> DeviceBuffer:
        return self._named.setdefault(name, self._memory.select(0, len(self._named)))

    def gelu(self, x: str, out: str, version: str = "13.4") -> None:
        self.launch(BUNDLE, entry("gelu", version), {"x": self[x], "out": self[out]})

    def norm(self, x: str, weight: str, out: str, version: str = "13.4", row: int = 0) -> None:
        """It may read its weight and bias early."""
        line = self[weight].select(0, row)
        args = {"x": self[x], "weight": line, "bias": self["zero"].select(0, 0), "out": self[out], "eps": 1e-5}
        self.launch(BUNDLE, entry("layernorm", version), args)


@pytest.fixture
def chain(cuda: CudaExecutor) -> Chain:
    made = Chain(cuda)
    for name in ("zero", "x", "weight"):
        assert made[name].shape == (N, N)
    return made


def test_a_launch_runs_ahead_of_the_launch_before_it(chain: Chain, fake: FakeDriver) -> None:
    chain.gelu("x", "a")
    assert fake.ahead == [False]  # what is before it is no launch
    chain.gelu("a", "b")
    chain.norm("b", "weight", "a")  # a kernel that is loaded just now
    chain.norm("a", "weight", "b")
    chain.gelu("b", "x")
    assert fake.ahead == [False, True, True, True, True]
    assert set(fake.streams) == {chain.executor.stream}


def test_a_kernel_that_does_not_wait_runs_behind(chain: Chain, fake: FakeDriver) -> None:
    chain.gelu("x", "a")
    chain.gelu("a", "b", version="13.3")
    chain.gelu("b", "a")
    chain.gelu("a", "b", version="13.3")
    assert fake.ahead == [False, False, True, False]


def test_a_gpu_that_cannot_overlap(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "describe", lambda *_: AMPERE)
    chain = Chain(CudaExecutor())
    for x, out in ("ab", "ba", "ab"):
        chain.gelu(x, out)
    assert fake.ahead == [False] * 3


@pytest.mark.parametrize("between", [0, 1, 5])
def test_what_is_read_early_may_not_be_written_by_any_launch_that_still_runs(
    chain: Chain, fake: FakeDriver, between: int
) -> None:
    chain.gelu("x", "a")
    chain.gelu("x", "weight")
    for _ in range(between):
        chain.gelu("x", "a")
    chain.norm("x", "weight", "b")
    chain.norm("b", "weight", "a")  # the one before it has waited for all
    assert fake.ahead == [False, *[True] * (between + 1), False, True]


def test_nor_by_one_that_waited_for_all_itself(chain: Chain, fake: FakeDriver) -> None:
    chain.gelu("x", "weight")
    chain.norm("x", "weight", "weight2")
    chain.norm("x", "weight2", "b")
    assert fake.ahead == [False, False, False]
    chain.gelu("x", "weight", version="13.3")
    chain.norm("x", "weight", "b")
    assert fake.ahead[3:] == [False, False]


def test_the_launches_before_one_that_waited_for_all_are_over(chain: Chain, fake: FakeDriver) -> None:
    chain.gelu("x", "weight")
    chain.gelu("x", "a", version="13.3")
    chain.norm("x", "weight", "b")
    assert fake.ahead == [False, False, True]


def test_addresses_are_compared_not_arrays(chain: Chain, fake: FakeDriver) -> None:
    chain.gelu("x", "a")
    chain.norm("x", "weight", "b", row=N - 1)  # `b` and `a` follow it in memory
    lines = {"x": chain["x"].slice(0, 0, 2), "out": chain["weight"].slice(0, 3, 5)}
    chain.launch(BUNDLE, entry("gelu"), lines)
    for row in (2, 5):
        chain.norm("x", "weight", "b", row=row)
    assert fake.ahead == [False, True, True, True, True]
    chain.norm("x", "weight", "b", row=4)
    assert fake.ahead[5:] == [False]


def test_what_is_read_after_the_wait_may_be_written(chain: Chain, fake: FakeDriver) -> None:
    chain.gelu("x", "a")
    chain.norm("a", "weight", "x")
    chain.norm("x", "weight", "x2")
    chain.gelu("x2", "weight")  # which the two before it read early
    assert fake.ahead == [False, True, True, True]


BETWEEN: dict[str, Callable[[CudaExecutor, DeviceBuffer], Any]] = {
    "a copy from the host": lambda _, a: a.copy_from(np.ones((N, N), np.float32)),
    "a copy of rows": lambda _, a: a.slice(1, 0, 2).copy_from(np.ones((N, 2), np.float32)),
    "a copy to the host": lambda _, a: a.numpy(),
    "a copy between buffers": lambda _, a: a.slice(0, 0, 1).copy_from(a.slice(0, 1, 2)),
    "a fill": lambda _, a: a.fill(0),
    "an allocation": lambda cuda, _: cuda.empty((2,), "f32"),
    "an event": lambda cuda, _: cuda.record(),
    "a wait for all": lambda cuda, _: cuda.synchronize(),
    "another library's stream": lambda cuda, _: cuda.wait_for(7),
    "a reader's stream": lambda cuda, _: cuda.hand_over(7),
    "a graph": lambda cuda, _: cuda.replay("graph"),
}


@pytest.mark.parametrize("what", BETWEEN)
def test_other_work_in_between_is_waited_for(chain: Chain, fake: FakeDriver, what: str) -> None:
    for _ in range(2):
        chain.gelu("x", "a")
    kept = BETWEEN[what](chain.executor, chain["weight"])
    chain.norm("x", "weight", "a")
    chain.gelu("x", "a")
    assert fake.ahead == [False, True, False, True], kept


def test_memory_that_goes_back_in_between(chain: Chain, fake: FakeDriver) -> None:
    gone = chain.executor.empty((N,), "f32")
    chain.gelu("x", "a")
    gone.free()
    chain.gelu("x", "a")
    assert fake.ahead == [False, False]


def test_a_graph_begins_and_ends_on_its_own(chain: Chain, fake: FakeDriver) -> None:
    chain.gelu("x", "a")
    with chain.executor.capture() as graph:
        chain.gelu("x", "weight")
        chain.gelu("x", "a")
        chain.norm("x", "weight", "b")
    chain.gelu("x", "a")
    graph.replay()
    chain.gelu("x", "a")
    chain.gelu("x", "a")
    assert fake.ahead == [False, False, True, False, False, False, True]


@pytest.mark.parametrize("failing", [(), ("cuStreamEndCapture",)])
def test_after_a_capture_that_broke(chain: Chain, fake: FakeDriver, failing: tuple[str, ...]) -> None:
    """The captured launches did not run. So the next launch comes after those before the capture."""
    chain.gelu("x", "weight")
    fake.failing.update(failing)

    def broken() -> None:
        with chain.executor.capture():
            chain.gelu("x", "a")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        broken()
    fake.failing.clear()
    chain.norm("x", "weight", "b")
    assert fake.ahead == [False, False, False]


def test_a_launch_that_fails_changes_nothing(chain: Chain, fake: FakeDriver) -> None:
    chain.gelu("x", "weight")
    chain.gelu("x", "a")
    fake.failing.add("cuLaunchKernelEx")
    with pytest.raises(DeviceError, match=r"cuLaunchKernelEx failed while launching gelu_13.4 with grid \(8, 2, 1\)"):
        chain.gelu("x", "b")
    fake.failing.clear()
    chain.gelu("x", "a")
    chain.norm("x", "weight", "b")
    assert fake.ahead == [False, True, True, False]


def test_now_and_then_one_waits_so_that_there_is_little_to_compare(
    chain: Chain, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "_WRITTEN_MAX", 4)
    for n in range(11):
        chain.gelu("x", f"out{n}")
    assert fake.ahead == [False, *[True] * 4, False, *[True] * 4, False]
    for _ in range(11):
        chain.gelu("x", "out10")
    assert all(fake.ahead[11:])


@pytest.mark.parametrize("beside", [False, True])
def test_nothing_runs_ahead_of_a_collective_of_a_graph_beside_another(
    cuda: CudaExecutor, chain: Chain, fake: FakeDriver, *, beside: bool
) -> None:
    """Its blocks would take the room of those that the peers of the collective wait for. The collective itself may."""
    cuda.ranks = 2
    flags, state = cuda.empty((2, 2, 1), "i32"), cuda.empty((1, 2), "i32")
    parts = chain["parts"].slice(0, 0, 2)
    with cuda.capture(beside=beside):
        chain.gelu("x", "a")
        args = {"parts": parts, "out": chain["out"].select(0, 0), "flags": flags, "state": state, "rank": 0}
        chain.launch(BUNDLE, entry("all_reduce"), args)
        chain.gelu("x", "b")
        chain.gelu("b", "c")
    assert fake.ahead == [False, True, not beside, True]
