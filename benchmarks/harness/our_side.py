"""Our kernels on an executor: its clock, its graphs, and the memory that it takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from toolchain.runtime import DeviceBuffer, Executor

HOST_SAMPLES = 100


@dataclass(frozen=True)
class HostTime:
    """The host's time to start something, in µs, and of it what the driver takes to launch its graph."""

    us: float
    launch_us: float


class OurSide:
    """The executor's stream beside PyTorch's: a sample is taken on one while the other is idle."""

    def __init__(self, executor: Executor, flush_bytes: int) -> None:
        """`flush_bytes`: what is written between samples to empty the L2 cache."""
        self.executor = executor
        self._flushed = executor.empty((max(flush_bytes // 4, 1),), "i32")

    def time_us(self, run: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> float:
        """The device time of `run`, as `TorchSide.time_us` takes it."""
        prepare()
        self._flushed.fill(0)
        start = self.executor.record()
        run()
        end = self.executor.record()
        self.executor.synchronize()
        return end.us_since(start)

    def host_time(
        self, run: Callable[[], object], prepare: Callable[[], object], samples: int = HOST_SAMPLES
    ) -> HostTime | None:
        """The host's time in `run`, which launches a graph on a GPU and does not wait for it: the medians of some, the
        device idle before each. None on a CPU, where the host does the work."""
        if self.executor.kind != "cuda":
            return None
        times: list[float] = []
        with _watched_launches() as launches:
            for _ in range(samples):
                prepare()
                self.executor.synchronize()
                started = time.perf_counter()
                run()
                times.append(time.perf_counter() - started)
        self.executor.synchronize()
        return HostTime(1e6 * statistics.median(times), 1e6 * statistics.median(launches))

    def share(self, tensor: Any) -> DeviceBuffer:
        """A tensor of another library as a buffer on the same memory. DLPack says 1 for the stride of a dimension of
        one element: the true ones are taken from the tensor, for alignment is judged by them."""
        taken = self.executor.from_dlpack(tensor)
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        return DeviceBuffer(self.executor, taken.allocation, taken.offset, taken.dtype, shape, strides)

    def start_peak(self) -> int:
        """Starts to watch the pool that the executor's memory comes from; the bytes in use already."""
        if self.executor.kind != "cuda":
            return 0
        _start_high_water(self.executor)
        return _pool_attribute(self.executor, "CU_MEMPOOL_ATTR_USED_MEM_CURRENT")

    def peak(self, since: int) -> int | None:
        """The most bytes in use since `start_peak`, beyond those that were then."""
        if self.executor.kind != "cuda":
            return None
        return _pool_attribute(self.executor, "CU_MEMPOOL_ATTR_USED_MEM_HIGH") - since


def poison(buffer: DeviceBuffer) -> None:
    """Fills an output with what no right result holds, so that an element nobody writes cannot pass."""
    buffer.fill(-(2**31) if buffer.dtype == "i32" else float("nan"))


@contextmanager
def _watched_launches() -> Generator[list[float]]:
    """The seconds of each call of the driver that launches a graph, as they come."""
    from toolchain.runtime.driver import load

    driver, seconds = load(), list[float]()
    launch = driver.cuGraphLaunch

    def timed(*args: Any) -> Any:
        started = time.perf_counter()
        status = launch(*args)
        seconds.append(time.perf_counter() - started)
        return status

    with mock.patch.object(driver, "cuGraphLaunch", timed):
        yield seconds


def _pool(executor: Any) -> tuple[Any, Any]:
    """The driver and the device's memory pool."""
    from toolchain.runtime.driver import load

    driver = load()
    device = executor.run("cuDeviceGet", executor.device[1])
    return driver, executor.run("cuDeviceGetDefaultMemPool", device)


def _pool_attribute(executor: Any, name: str) -> int:
    driver, pool = _pool(executor)
    executor.synchronize()
    return int(executor.run("cuMemPoolGetAttribute", pool, getattr(driver.CUmemPool_attribute, name)))


def _start_high_water(executor: Any) -> None:
    driver, pool = _pool(executor)
    executor.synchronize()
    high = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH
    executor.run("cuMemPoolSetAttribute", pool, high, driver.cuuint64_t(0))
