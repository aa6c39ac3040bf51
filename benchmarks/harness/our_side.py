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
    """The host's time to start something, in µs, and the part of it that the driver takes to launch the graph."""

    us: float
    launch_us: float


class OurSide:
    """Our executor with its own stream. A sample is taken on it while PyTorch's stream is idle."""

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
        """The host's time in `run`, which launches a graph on a GPU without waiting for it: medians of `samples` runs,
        each started on an idle device. None on a CPU, where the host does the work, and if `run` launches no graph."""
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
        if not launches:
            return None
        return HostTime(1e6 * statistics.median(times), 1e6 * statistics.median(launches))

    def share(self, tensor: Any) -> DeviceBuffer:
        """A tensor of another library as a buffer on the same memory. The strides are taken from the tensor itself:
        DLPack says 1 for a dimension with one element, but alignment is judged by the true stride."""
        taken = self.executor.from_dlpack(tensor)
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        return DeviceBuffer(self.executor, taken.allocation, taken.offset, taken.dtype, shape, strides)

    def start_peak(self) -> int:
        """Start to record the executor's memory use. Returns the bytes in use now."""
        self.executor.most_used_bytes(reset=True)
        return self.executor.used_bytes() or 0

    def peak(self, since: int) -> int | None:
        """The most bytes in use since `start_peak`, minus those in use then. None on a CPU."""
        most = self.executor.most_used_bytes()
        return None if most is None else most - since


def poison(buffer: DeviceBuffer) -> None:
    """Fill an output with a value that no right result has, so that an element that is never written cannot pass."""
    buffer.fill(-(2**31) if buffer.dtype == "i32" else float("nan"))
