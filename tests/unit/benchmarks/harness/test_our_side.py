from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from benchmarks.harness.our_side import OurSide, poison
from toolchain.knobs import ROOT
from toolchain.runtime import Executor, open_executor


@pytest.fixture
def executor() -> Executor:
    return open_executor("cpu")


def test_a_sample_prepares_flushes_and_runs(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    side, order = OurSide(executor, flush_bytes=64), list[str]()
    fill = executor.fill
    monkeypatch.setattr(executor, "fill", lambda *args: (order.append("flush"), fill(*args)))
    us = side.time_us(lambda: order.append("run"), lambda: order.append("prepare"))
    assert order == ["prepare", "flush", "run"]
    assert 0 <= us < 1e6


@pytest.mark.parametrize(("dtype", "shape"), [("bf16", (2, 3)), ("f32", (4,)), ("i32", (5,))])
def test_a_poisoned_output_holds_no_right_result(executor: Executor, dtype: str, shape: tuple[int, ...]) -> None:
    buffer = executor.empty(shape, dtype)
    poison(buffer)
    held = buffer.numpy()
    assert (held == np.iinfo(np.int32).min).all() if dtype == "i32" else np.isnan(held.astype(np.float32)).all()


class Foreign:
    """A tensor of another library that says, as PyTorch does, a stride of 1 for a dimension of one element."""

    def __init__(self, array: np.ndarray[Any, Any], strides: tuple[int, ...]) -> None:
        self.array, self.shape, self._strides = array, array.shape, strides

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self) -> Any:
        strides = tuple(1 if n == 1 else s for n, s in zip(self.shape, self._strides, strict=True))
        normal = np.lib.stride_tricks.as_strided(self.array, self.shape, [4 * s for s in strides])
        return normal.__dlpack__()


def test_a_shared_tensor_keeps_its_strides(executor: Executor) -> None:
    """Otherwise a batch of one would count as misaligned, and a slower kernel would be chosen."""
    array = np.arange(32, dtype=np.float32).reshape(1, 4, 8)
    tensor = Foreign(array, (32, 8, 1))
    assert executor.from_dlpack(tensor).strides[0] == 1
    buffer = OurSide(executor, 0).share(tensor)
    assert (buffer.strides, buffer.layout.aligned or buffer.pointer % 16 != 0) == ((32, 8, 1), True)
    assert np.array_equal(buffer.numpy(), array)


def test_memory_is_watched_on_a_gpu_only(executor: Executor) -> None:
    side = OurSide(executor, 0)
    assert side.peak(side.start_peak()) is None


def test_the_peak_is_beyond_what_was_in_use_before(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def most_used_bytes(*, reset: bool = False) -> int:
        asked.append(reset)
        return 700

    monkeypatch.setattr(executor, "most_used_bytes", most_used_bytes)
    monkeypatch.setattr(executor, "used_bytes", lambda: 300)
    side = OurSide(executor, 0)
    assert side.peak(side.start_peak()) == 400
    assert asked == [True, False]


def test_measuring_code_replaces_nothing_of_the_program() -> None:
    """unittest.mock is for tests: what is measured has to be what runs. A study compares it with what does not run."""
    files = [path for path in (ROOT / "benchmarks").rglob("*.py") if path.parent.name != "studies"]
    found = [str(path) for path in files if "unittest" in path.read_text()]
    assert len(files) > 20
    assert found == []


def test_poison_is_nan_in_the_dtype_of_the_kernels(executor: Executor) -> None:
    buffer = executor.from_numpy(np.zeros(3, ml_dtypes.bfloat16))
    poison(buffer)
    assert np.isnan(buffer.numpy().astype(np.float32)).all()


def test_the_hosts_time_is_that_of_starting_alone(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Preparing and waiting do not count. Here each of them advances the fake clock by a second."""
    side, now = OurSide(executor, 0), [0.0]
    assert side.host_time(lambda: None, lambda: None) is None, "a CPU"

    def takes(seconds: float) -> None:
        now[0] += seconds

    seconds: list[float] = []
    monkeypatch.setattr(executor, "timed_replays", lambda: nullcontext(seconds))
    monkeypatch.setattr(executor, "kind", "cuda")
    monkeypatch.setattr(executor, "synchronize", lambda: takes(1.0))
    monkeypatch.setattr("benchmarks.harness.our_side.time.perf_counter", lambda: now[0])
    ours, launches = iter([3e-6, 1e-6, 80e-6]), iter([4e-6, 4e-6, 10e-6])

    def run() -> None:
        takes(next(ours))
        takes(took := next(launches))
        seconds.append(took)

    host = side.host_time(run, lambda: takes(1.0), samples=3)
    assert host is not None
    assert host.us == pytest.approx(7.0, rel=1e-3)
    assert host.launch_us == pytest.approx(4.0, rel=1e-3)
