"""The CUDA executor: one GPU, one stream, through cuda-python's driver API. A second stream is for what runs beside it.

Threads may share an executor. `lock` guards what it remembers of its stream: whoever puts work there, or changes
what is remembered, holds it. It can be taken again by the thread that has it, because garbage is collected at any time
and collecting a buffer frees its memory. Calls that only wait for the device do not hold it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contract.launching import check_grid
from ..contract.tma import TMADescriptor
from ..errors import DeviceError, UsageError
from . import copies, dlpack
from .buffer import Allocation, DeviceBuffer
from .cuda_driver import CudaDriver
from .cuda_work import CudaCommand, CudaEvent, CudaGraph
from .driver import choose_target
from .executor import Command, Event, Graph, Loaded
from .launch_config import configured
from .layout import NUMPY, chunks
from .modules import Modules
from .overlaps import any_meet
from .pool import Pool
from .tma import encode

if TYPE_CHECKING:
    from ..bundles.bundle import Bundle, BundleEntry

_WRITTEN_MAX = 128  # address ranges that a launch is compared with before one waits for all before it


class CudaExecutor(CudaDriver):
    """Work runs in order on one non-blocking stream. Memory comes from a stream-ordered pool of this executor, which
    keeps what is freed for the next allocation."""

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self._modules = Modules()
        self._last_entry = ""  # for errors that surface after their launch
        self._capturing: CudaGraph | None = None
        self._replays_s: list[float] | None = None  # what the driver took for each replay, while somebody wants to know
        self.frees = 0  # allocations that went back so far
        self._freed_late: list[Callable[[], None]] = []  # what to give back when the capture ends
        try:
            self._stream, self._side_stream = self._context.new_stream(), self._context.new_stream()
            self._pool = Pool(self._context, index)
        except DeviceError:
            self._context.close()
            raise
        self.stream = int(self._stream)

    def _close(self) -> None:
        with self.lock:
            self._not_capturing("be closed")
            with ExitStack() as steps:  # all of them, even if one raises
                steps.callback(self._context.close)
                steps.callback(self._close_handed_out)
                steps.callback(self._free_all)
                if not self._context.lost:  # the error that lost it was raised already
                    self.synchronize()

    def _close_handed_out(self) -> None:
        for made in list(self._handed_out):
            made.close()
        self._pool.give_all_back(self._stream)
        self._modules.clear()
        self.closed = True

    def __del__(self) -> None:
        # At exit the process gives everything back. `stream`: what is set last where an executor is made.
        if not sys.is_finalizing() and hasattr(self, "stream"):
            self.close()

    # Memory

    def allocate(self, nbytes: int) -> Allocation:
        with self.lock:
            # While capturing, an allocation on our stream would become part of the graph: take it on another one.
            stream = self._stream if self._capturing is None else self._side_stream
            address = self._pool.take(self, nbytes, stream)
            if self._capturing is not None:
                self.run("cuStreamSynchronize", stream)
            allocation = Allocation(address, nbytes, self._free)
            self._allocations.add(allocation)
            return allocation

    def _free(self, allocation: Allocation) -> None:
        def give_back() -> None:
            if self._gone:
                return
            if allocation.shared:  # another library's stream may still be using it
                self.run("cuCtxSynchronize")
            self._pool.give_back(self, allocation.address, self._stream)

        self._give_back(give_back)

    def _give_back(self, memory: Callable[[], None]) -> None:
        """Gives memory back, inside a capture once it has ended: garbage is collected at any time."""
        with self.lock:
            self.frees += 1
            if self._capturing is not None:
                self._freed_late.append(memory)
            else:
                memory()

    def adopt(self, address: int, nbytes: int, release: Callable[[], None]) -> Allocation:
        self.check_open()
        if nbytes:
            ordinal = self._driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
            where = self.run("cuPointerGetAttribute", ordinal, address, doing="adopting an array")
            if int(where) != self.gpu.index:
                raise UsageError(f"the array is on cuda:{int(where)}, this executor on {self.name}")

        def give_back() -> None:
            if not self._gone:
                self.synchronize()  # the owner may reuse the memory at once
            release()

        allocation = Allocation(address, nbytes, lambda _: self._give_back(give_back))
        with self.lock:
            self._allocations.add(allocation)
        return allocation

    def share(self, allocation: Allocation) -> None:
        allocation.shared = True

    def wait_for(self, stream: int) -> None:
        self.order(stream, self._stream)

    def hand_over(self, stream: int | None) -> None:
        if stream == -1:  # DLPack: the reader synchronises by itself
            return
        # DLPack's None is the legacy default stream too; 2 is the per-thread one, as the driver numbers it.
        self.order(self._stream, dlpack.LEGACY_STREAM if stream is None else stream)

    def order(self, first: Any, then: Any) -> None:
        """What is launched on the stream `then` from now on waits for what is on `first`."""
        first, then = (self._driver.CUstream(int(stream)) for stream in (first, then))
        self._follow(first, then, "share memory with another library")

    def _follow(self, first: Any, then: Any, what: str) -> None:
        with self.lock:
            self._not_capturing(what)
            self._behind(first, then)

    def _behind(self, first: Any, then: Any) -> None:
        event = self.run("cuEventCreate", self._driver.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
        try:
            self.run("cuEventRecord", event, first)
            self.run("cuStreamWaitEvent", then, event, 0)
        finally:
            self.discard("cuEventDestroy", event)

    def read(self, source: DeviceBuffer) -> np.ndarray[Any, Any]:
        array = np.empty(source.shape, NUMPY[source.dtype])
        with self.lock:
            self._not_capturing("read a buffer")
            for chunk in chunks(source.layout):
                self._copy(copies.to_host(self._driver, array.ctypes.data, source.pointer, chunk))
        self.synchronize()
        return array

    def write(self, target: DeviceBuffer, array: np.ndarray[Any, Any]) -> None:
        with self.lock:
            self._not_capturing("copy from the host")
            for chunk in chunks(target.layout):
                self._copy(copies.from_host(self._driver, target.pointer, array.ctypes.data, chunk))

    def _copy(self, made: copies.Call) -> None:
        call, arguments = made
        self.run(call, *arguments, self._stream)

    def copy(self, target: DeviceBuffer, source: DeviceBuffer) -> None:
        with self.lock:
            self._hold((target, source))
            if source.nbytes:
                self.run("cuMemcpyDtoDAsync", target.pointer, source.pointer, source.nbytes, self._stream)

    def copy_beside(self, copies: Sequence[tuple[DeviceBuffer, DeviceBuffer]]) -> None:
        with self.lock:
            if self._capturing is None:
                super().copy_beside(copies)
                return
            self._behind(self._stream, self._side_stream)
            self._capturing.forked = True
            for target, source in copies:
                self._hold((target, source))
                self.run("cuMemcpyDtoDAsync", target.pointer, source.pointer, source.nbytes, self._side_stream)

    def fill(self, target: DeviceBuffer, pattern: int) -> None:
        with self.lock:
            self._hold((target,))
            for chunk in chunks(target.layout):
                self._copy(copies.fill(target.pointer, chunk, target.layout.itemsize, pattern))

    # Launches

    def prepare(
        self, bundle: Bundle, entry: BundleEntry, arrays: Sequence[DeviceBuffer], grid: tuple[int, int, int]
    ) -> Command:
        check_grid(entry.spec.symbol, grid)
        target = choose_target(self.gpu, entry.cubins, entry.spec.symbol)
        loaded = Loaded(entry.spec.source, entry.spec.symbol, target, entry.cubins[target].sha256)
        with self.lock:
            function = self._modules.function(self, bundle, entry, target)
        return CudaCommand(self, function, entry, arrays, grid, loaded)

    def start(
        self, command: CudaCommand, arrays: Sequence[DeviceBuffer], pdl_reads: Sequence[range], written: Sequence[range]
    ) -> None:
        """Launches on our stream; the caller holds `lock`. `written`: the addresses that the kernel writes.
        `pdl_reads`: those that it may read before it waits for the launches before it (if `command.waits`). It begins
        before they end, unless one of them writes there."""
        self._hold(arrays)
        before = self._written
        ahead = command.waits and before is not None and len(before) <= _WRITTEN_MAX and not any_meet(pdl_reads, before)
        self._launch(command.ahead if ahead else command.plain, command.call, command.what)
        self._last_entry = command.symbol
        self.ran.add(command.loaded)
        apart = command.meets and self._capturing is not None and self._capturing.beside
        self._written = None if apart else {*written, *(before if ahead and before is not None else ())}

    def launch(self, config: Any, call: tuple[Any, int], what: str) -> None:
        """Launches a kernel of which the executor knows nothing else. `config`: what `launch_config` made; `call`: its
        handle and the address of its parameters; `what`: in words, for errors."""
        with self.lock:
            self._written = None
            self._launch(config, call, what)

    @contextmanager
    def foreign_work(self, buffers: Sequence[DeviceBuffer], what: str) -> Generator[None]:
        """Inside the `with` another library launches on our stream, or captures. `what`: in words, for errors."""
        with self.lock:
            self._hold(buffers)
            self._enter()
            yield
            self._written, self._last_entry = None, what

    def _launch(self, config: Any, call: tuple[Any, int], what: str) -> None:
        self._enter()
        result = self._driver.cuLaunchKernelEx(config, *call, 0)
        if int(result[0]):
            self._context.check("cuLaunchKernelEx", result, f"launching {what}{self._after()}")

    def encode(self, descriptor: TMADescriptor) -> bytes:
        """The bytes of a tensor map; the caller holds `lock`."""
        self._enter()
        return encode(descriptor, self._driver)

    def launch_config(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        *,
        ahead: bool = False,
        together: int = 0,
        stream: int | None = None,
    ) -> Any:
        """How to launch a grid of blocks. `shared_bytes`: of dynamic shared memory for each block. `stream`: the
        driver's handle, by default our own. `ahead`: its blocks may start as soon as all blocks of the launch before it
        let them (CUDA's programmatic dependent launch). `together`: see Form."""
        on = self._stream if stream is None else self._driver.CUstream(stream)
        return configured(self._driver, on, grid, block, shared_bytes, ahead=ahead, together=together)

    def _after(self) -> str:
        return f" after {self._last_entry}" if self._last_entry else ""

    def synchronize(self) -> None:
        self._not_capturing("synchronize")
        last = f"waiting for {self._last_entry}, the last of what was launched" if self._last_entry else "waiting"
        self.wait("cuStreamSynchronize", self._stream, doing=last)

    def record(self) -> Event:
        return CudaEvent(self)

    def new_event(self) -> Any:
        return self.run("cuEventCreate", self._driver.CUevent_flags.CU_EVENT_DEFAULT.value)

    def record_on_stream(self, event: Any) -> None:
        self.run("cuEventRecord", event, self._stream)

    # Graphs

    @contextmanager
    def capture(self, *, beside: bool = False) -> Generator[CudaGraph]:
        relaxed = self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        with self.lock:
            self._not_capturing("begin another capture")
            graph = CudaGraph(self, beside=beside)
            self.run("cuStreamBeginCapture", self._stream, relaxed)
            self._capturing = graph
        finished = False
        try:
            yield graph
            finished = True
        finally:
            with self.lock:
                self._capturing = None
                try:
                    if finished and graph.forked:
                        self._behind(self._side_stream, self._stream)
                    handle = self._end_capture(finished)
                finally:
                    late, self._freed_late = self._freed_late, []
                    for give_back in late:
                        give_back()
        graph.instantiate(handle)

    def _end_capture(self, finished: bool) -> Any:
        """The captured graph. After an error inside the capture, that error is the one to show: the broken capture is
        ended and dropped."""
        self._written = None  # what was captured has not run
        self._enter()
        result = self._driver.cuStreamEndCapture(self._stream)
        if finished:
            return self._context.check("cuStreamEndCapture", result, f"capturing{self._after()}")
        if not int(result[0]) and int(result[1]):
            self.run("cuGraphDestroy", result[1])
        return None

    @contextmanager
    def beside(self) -> Generator[Callable[[Graph], None]]:
        self._follow(self._stream, self._side_stream, "run graphs beside each other")

        def start(graph: Graph) -> None:
            if not (isinstance(graph, CudaGraph) and graph.beside):
                raise UsageError("this graph was not captured to run beside another", hint="capture(beside=True)")
            graph.replay(beside=True)

        try:
            yield start
        finally:
            if not self._gone:
                self._follow(self._side_stream, self._stream, "run graphs beside each other")

    def replay(self, executable: Any, *, beside: bool = False) -> None:
        """Starts a graph on our stream, or on the second one; see `beside`."""
        stream = self._side_stream if beside else self._stream
        with self.lock:
            self._not_capturing("replay a graph")
            doing = f"replaying a graph{self._after()}"
            if self._replays_s is None:
                self.run("cuGraphLaunch", executable, stream, doing=doing)
                return
            self._written = None
            self._enter()
            started = time.perf_counter()
            result = self._driver.cuGraphLaunch(executable, stream)
            self._replays_s.append(time.perf_counter() - started)
            self._context.check("cuGraphLaunch", result, doing)

    # Measuring

    def used_bytes(self) -> int:
        self.synchronize()
        return self._pool.used_bytes(self)

    def most_used_bytes(self, *, reset: bool = False) -> int:
        self.synchronize()
        return self._pool.most_used_bytes(self, reset=reset)

    @contextmanager
    def timed_replays(self) -> Generator[list[float]]:
        self._replays_s = seconds = []
        try:
            yield seconds
        finally:
            self._replays_s = None

    def _hold(self, buffers: Sequence[DeviceBuffer]) -> None:
        if self._capturing is not None:
            self._capturing.hold(buffers)

    def _not_capturing(self, what: str) -> None:
        if self._capturing is not None:
            raise UsageError(f"{self.name} cannot {what} inside a capture", hint="do it before the `with`, or after")
