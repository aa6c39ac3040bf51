"""The interface of executors, which run entries on a GPU through the CUDA driver, or on the CPU interpreter."""

from __future__ import annotations

import math
import re
import statistics
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self

import numpy as np

from ..errors import OutOfMemory, UsageError
from . import dlpack
from .buffer import Allocation, DeviceBuffer
from .layout import NUMPY, contiguous_strides, dtype_name, layout

if TYPE_CHECKING:
    from ..bundles.bundle import Bundle, BundleEntry

PLACE = re.compile(r"auto|cpu|cuda(?::(\d+))?")  # names of executors; "auto": the first GPU, or the CPU
_NO_ROOM = 2**62  # bytes: no address reaches as far


class Loaded(NamedTuple):
    """What an executor loaded of an entry: the cubin for a `target`, or on the interpreter (target "cpu") the
    bytecode. `sha256`: of that file."""

    source: str
    symbol: str
    target: str
    sha256: str


class Command(Protocol):
    """An entry prepared for arguments of certain layouts. It is called with checked arrays and scalars in ABI order."""

    def __call__(self, arrays: Sequence[DeviceBuffer], scalars: Sequence[int | float]) -> None: ...


class Graph(Protocol):
    """The work launched inside `Executor.capture()`, which can be run again as a whole."""

    def replay(self) -> None:
        """Runs it once more, on the same buffers. Raises LaunchError if one of them has been freed since."""
        ...


class Event(Protocol):
    """A point in an executor's order of work."""

    def us_since(self, start: Event) -> float:
        """The microseconds between two events. Waits until both have passed."""
        ...


class Executor(ABC):
    """Runs entries in the order they are launched; `synchronize` waits for them.

    `name`: for people. `target`: the device's target ("sm_90"; None for the interpreter). `sms`: its multiprocessors.
    `device`: DLPack's number of it, (type, index). `stream`: the handle of the CUDA stream that its work is on, or
    None. `ranks`: how many executors share memory, itself included; `ranks_here`: those of them on its device.
    `closed`: it was closed, and every use other than another `close()` is an error. `ran`: what was launched so far;
    who wants to know what a piece of work launches clears it before.
    """

    kind: Literal["cuda", "cpu"]
    name: str
    target: str | None
    sms: int
    device: tuple[int, int]
    stream: int | None

    def __init__(self) -> None:
        self.ranks = self.ranks_here = 1
        self.closed = False
        self.ran: set[Loaded] = set()
        self._allocations: weakref.WeakSet[Allocation] = weakref.WeakSet()  # freed when the executor is closed

    @property
    def runs_ptx(self) -> bool:
        """Whether kernels of PTX run on it."""
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Waits for all work, then frees everything: buffers (their views become unusable), loaded entries, events,
        graphs, and the device's resources for this executor. A second call does nothing. It raises the errors of
        launches that nobody has waited for.

        Raises UsageError inside a capture.
        """
        if self.closed:
            return
        self._close()
        self.closed = True

    def check_open(self) -> None:
        """Raises UsageError if this executor was closed."""
        if self.closed:
            raise UsageError(f"{self.name} is used after it was closed", hint="open another with open_executor()")

    @abstractmethod
    def _close(self) -> None:
        """The actual work of `close()`; called once."""

    def _free_all(self) -> None:
        for allocation in list(self._allocations):
            if not allocation.freed:
                allocation.free()

    # Memory

    @abstractmethod
    def allocate(self, nbytes: int) -> Allocation:
        """Uninitialised memory. Raises OutOfMemory."""

    @abstractmethod
    def adopt(self, address: int, nbytes: int, release: Callable[[], None]) -> Allocation:
        """An allocation over another library's memory; `release` returns it to that library."""

    @abstractmethod
    def read(self, source: DeviceBuffer) -> np.ndarray[Any, Any]:
        """A contiguous copy on the host, after all earlier work."""

    @abstractmethod
    def write(self, target: DeviceBuffer, array: np.ndarray[Any, Any]) -> None:
        """Copies a contiguous host array of the buffer's shape and dtype."""

    @abstractmethod
    def copy(self, target: DeviceBuffer, source: DeviceBuffer) -> None:
        """Copies between two contiguous buffers of this executor, in order with its launches."""

    def copy_beside(self, copies: Sequence[tuple[DeviceBuffer, DeviceBuffer]]) -> None:
        """Copies between contiguous buffers, (target, source), one after the other, behind what was launched before. In
        a capture launches behind this do not wait for it: only the end of the graph does."""
        for target, source in copies:
            self.copy(target, source)

    @abstractmethod
    def fill(self, target: DeviceBuffer, pattern: int) -> None:
        """Sets every element to a bit pattern, in order with its launches."""

    @abstractmethod
    def share(self, allocation: Allocation) -> None:
        """Notes that another library gets this memory, so that freeing it must also wait for that library's work."""

    @abstractmethod
    def wait_for(self, stream: int) -> None:
        """Orders our next work after the work on another library's stream."""

    @abstractmethod
    def hand_over(self, stream: int | None) -> None:
        """Orders the next work of another library's stream (DLPack's numbering) after ours."""

    def empty(self, shape: Sequence[int], dtype: str) -> DeviceBuffer:
        """A contiguous buffer with undefined contents."""
        if dtype not in NUMPY:
            raise UsageError(f"no buffer of dtype {dtype!r}: it can be {', '.join(NUMPY)}")
        shape = tuple(int(size) for size in shape)
        if any(size < 0 for size in shape):
            raise UsageError(f"no buffer of shape {list(shape)}: a size is negative")
        nbytes = math.prod(shape) * NUMPY[dtype].itemsize
        if nbytes >= _NO_ROOM:
            raise OutOfMemory(f"{nbytes} bytes do not fit into any memory", hint="use a smaller shape")
        return self.view(self.allocate(nbytes), 0, shape, dtype)

    def view(self, allocation: Allocation, offset: int, shape: Sequence[int], dtype: str) -> DeviceBuffer:
        """A contiguous buffer in an allocation, from `offset` bytes on. Raises UsageError if it does not fit."""
        shape = tuple(shape)
        return DeviceBuffer(self, allocation, offset, dtype, shape, contiguous_strides(shape))

    def from_numpy(self, array: np.ndarray[Any, Any]) -> DeviceBuffer:
        """A contiguous copy of a host array of dtype float32, float16, bfloat16 (ml_dtypes) or int32."""
        buffer = self.empty(array.shape, dtype_name(array.dtype))
        buffer.copy_from(array)
        return buffer

    def from_dlpack(self, tensor: Any) -> DeviceBuffer:
        """Another library's array on this device as a buffer, without a copy. It stays alive as long as the buffer."""
        return self._adopt(dlpack.take(tensor, self.device, self.stream))

    def from_cuda_array(self, array: Any, dtype: str | None = None) -> DeviceBuffer:
        """An object with `__cuda_array_interface__` as a buffer, without a copy; it is kept alive.

        The interface has no bfloat16: `dtype="bf16"` says that the two-byte elements are bfloat16.
        """
        if self.kind != "cuda":
            raise UsageError(f"{self.name} cannot reach an array in a GPU's memory: copy it to the host first")
        return self._adopt(dlpack.take_cuda_array(array, dtype))

    def _adopt(self, foreign: dlpack.Foreign) -> DeviceBuffer:
        try:
            if foreign.stream is not None:
                self.wait_for(foreign.stream)
            nbytes = layout(foreign.dtype, foreign.shape, foreign.strides, address_aligned=True).span
            allocation = self.adopt(foreign.address, nbytes, foreign.release)
        except BaseException:
            foreign.release()
            raise
        return DeviceBuffer(self, allocation, 0, foreign.dtype, foreign.shape, foreign.strides)

    # Launches

    @abstractmethod
    def prepare(
        self, bundle: Bundle, entry: BundleEntry, arrays: Sequence[DeviceBuffer], grid: tuple[int, int, int]
    ) -> Command:
        """The entry, loaded and ready for arrays of these layouts. The grid has no zero."""

    @abstractmethod
    def synchronize(self) -> None:
        """Waits for all work, and raises the errors of launches."""

    @abstractmethod
    def capture(self, *, beside: bool = False) -> AbstractContextManager[Graph]:
        """Records the launches inside the `with` instead of running them. Its target is the Graph to replay. `beside`:
        it may run beside another such graph. Then what follows a launch that waits for its peers starts after that has
        ended: blocks that came earlier would take the room of those that the peers wait for."""

    @abstractmethod
    def beside(self) -> AbstractContextManager[Callable[[Graph], None]]:
        """Its target starts a graph after all work before the `with`, beside the graph that is replayed inside it. Work
        after the `with` waits for both. On the CPU nothing runs beside anything: the graph runs at once.

        Raises UsageError inside a capture, and for a graph that was not captured for it."""

    @abstractmethod
    def record(self) -> Event:
        """An event after all work launched so far."""

    # Measuring

    def warm_up(self) -> None:  # noqa: B027 - nothing by default: a GPU's times leave out the first launch
        """Does now what the first launch would do once for all others, so that its time compares with theirs."""

    def used_bytes(self) -> int | None:
        """The bytes of memory that buffers have now; None on a CPU, where they are not counted."""
        return None

    def most_used_bytes(self, *, reset: bool = False) -> int | None:
        """The most memory that buffers had since the last `reset`, in bytes; None on a CPU."""
        del reset
        return None

    @contextmanager
    def timed_replays(self) -> Generator[list[float]]:
        """Collects the seconds that the driver takes to launch a graph, one number for each replay inside the `with`.
        On a CPU, where there is no driver, the list stays empty."""
        yield []

    def times_us(self, run: Callable[[], object], repeats: int) -> list[float]:
        """The device time of each of `repeats` calls, in microseconds, after one call that is not counted."""
        run()
        marks: list[tuple[Event, Event]] = []
        for _ in range(repeats):
            start = self.record()
            run()
            marks.append((start, self.record()))
        self.synchronize()
        return [end.us_since(start) for start, end in marks]

    def time_us(self, run: Callable[[], object], repeats: int = 10) -> float:
        """The median of `times_us`."""
        return statistics.median(self.times_us(run, repeats))
