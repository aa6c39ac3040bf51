"""Our kernels on an executor: its clock, its graphs, and the memory that it takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
        with self.executor.timed_replays() as launches:
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
        """Starts to watch the executor's memory; the bytes in use already."""
        self.executor.most_used_bytes(reset=True)
        return self.executor.used_bytes() or 0

    def peak(self, since: int) -> int | None:
        """The most bytes in use since `start_peak`, beyond those that were then. None on a CPU."""
        most = self.executor.most_used_bytes()
        return None if most is None else most - since


def poison(buffer: DeviceBuffer) -> None:
    """Fills an output with what no right result holds, so that an element nobody writes cannot pass."""
    buffer.fill(-(2**31) if buffer.dtype == "i32" else float("nan"))
