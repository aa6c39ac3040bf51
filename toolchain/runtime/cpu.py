"""The CPU executor: the Tile IR interpreter over the bundle's bytecode, with its sanitizer. Kernels of PTX that have
their IR beside them run thread by thread, where somebody asks for it: that is for one small launch, not for a model."""

from __future__ import annotations

import importlib
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LaunchError, OutOfMemory, UsageError
from . import dlpack
from .buffer import Allocation, DeviceBuffer
from .executor import Command, Event, Executor, Graph, Loaded
from .layout import NUMPY

if TYPE_CHECKING:
    from ..bundles.bundle import Bundle, BundleEntry, FileRef
    from ..contract.entry import EntrySpec
    from ..cute.executor.launches.entry import EntryLaunch
    from ..tileir.interpreter import Launch

Step = Callable[[], object]

# A persistent kernel launches one block per multiprocessor. With four, each block loops over several tiles even for a
# small array, and the blocks have to divide the work correctly.
SMS = 4
_BASE_ALIGNMENT = 256  # of allocations, as on a GPU


class CpuExecutor(Executor):
    """Runs each launch immediately, block after block. `sanitize`: trap undefined behaviour (slower)."""

    kind = "cpu"

    def __init__(self, *, sanitize: bool = True) -> None:
        super().__init__()
        self.name = "cpu interpreter"
        self.target = None
        self.sms = SMS
        self.device = (dlpack.CPU, 0)
        self.stream = None
        self.sanitize = sanitize
        self.by_threads = False  # run kernels of PTX too
        self._capturing: CpuGraph | None = None

    @property
    def runs_ptx(self) -> bool:
        return self.by_threads

    def _close(self) -> None:
        self._not_capturing("be closed")
        self._free_all()

    # Memory

    def allocate(self, nbytes: int) -> Allocation:
        self.check_open()
        return self._remember(_allocation(_new_bytes(nbytes)))

    def adopt(self, address: int, nbytes: int, release: Callable[[], None]) -> Allocation:
        self.check_open()
        return self._remember(_allocation(_bytes_at(address, nbytes), release))

    def _remember(self, allocation: Allocation) -> Allocation:
        self._allocations.add(allocation)
        return allocation

    def share(self, allocation: Allocation) -> None:
        allocation.shared = True

    def wait_for(self, stream: int) -> None:
        raise UsageError(f"{self.name} has no stream to order after stream {stream}")

    def hand_over(self, stream: int | None) -> None:
        if stream is not None:
            raise BufferError(f"{self.name} has no streams: ask with stream=None")

    def read(self, source: DeviceBuffer) -> np.ndarray[Any, Any]:
        self._not_capturing("read a buffer")
        return _view(source).copy()

    def write(self, target: DeviceBuffer, array: np.ndarray[Any, Any]) -> None:
        self._not_capturing("copy from the host")
        _view(target)[...] = array

    def copy(self, target: DeviceBuffer, source: DeviceBuffer) -> None:
        self.submit((target, source), lambda: np.copyto(_view(target), _view(source)))

    def fill(self, target: DeviceBuffer, pattern: int) -> None:
        bits = _view(target, np.dtype(f"u{target.layout.itemsize}"))
        self.submit((target,), lambda: bits.fill(pattern))

    # Launches

    def prepare(
        self, bundle: Bundle, entry: BundleEntry, arrays: Sequence[DeviceBuffer], grid: tuple[int, int, int]
    ) -> Command:
        if self.by_threads and entry.ir is not None:
            return self._threads(bundle, entry, entry.ir, grid)
        from ..tileir import interpreter  # imported here because it needs xDSL

        prepared = interpreter.prepare(bundle.read(entry.bytecode))
        spec = entry.spec
        loaded = Loaded(spec.source, spec.symbol, "cpu", entry.bytecode.sha256)
        symbol, params = spec.symbol, spec.params
        sizes = [(*array.shape, *array.strides) for array in arrays]

        def command(arrays: Sequence[DeviceBuffer], scalars: Sequence[int | float]) -> None:
            pointers = [interpreter.Pointer(interpreted(a.allocation), a.offset) for a in arrays]
            array_args, rest = iter(zip(pointers, sizes, strict=True)), iter(scalars)
            args: list[Any] = []
            for param in params:
                if param.dims:
                    pointer, numbers = next(array_args)
                    args += [pointer, *numbers]
                else:
                    args.append(next(rest))
            self.ran.add(loaded)
            self.submit(arrays, self.step(spec, interpreter.Launch(prepared, symbol, args, grid), arrays))

        return command

    def step(self, spec: EntrySpec, launch: Launch, arrays: Sequence[DeviceBuffer]) -> Step:
        """What runs a launch of an entry with these arrays."""
        del spec, arrays
        return lambda: launch.prepared.launch(launch.symbol, launch.args, launch.grid, sanitize=self.sanitize)

    def _threads(self, bundle: Bundle, entry: BundleEntry, ir: FileRef, grid: tuple[int, int, int]) -> Command:
        from ..cute.executor.launches.entry import EntryLaunch  # imported here because it needs xDSL

        spec, form, text = entry.spec, entry.form, bundle.read(ir).decode()
        names = [param.name for param in spec.params if param.dims]
        numbers = [param.name for param in spec.params if not param.dims]

        def command(arrays: Sequence[DeviceBuffer], scalars: Sequence[int | float]) -> None:
            views = {name: _view(array) for name, array in zip(names, arrays, strict=True)}
            given = dict(zip(numbers, scalars, strict=True))
            self.ran.add(Loaded(spec.source, spec.symbol, "cpu", ir.sha256))
            self.submit(arrays, self.step_of_threads(EntryLaunch(text, spec, form, views, given, grid)))

        return command

    def step_of_threads(self, launch: EntryLaunch) -> Step:
        """What runs a launch of a kernel of PTX."""
        return launch.run

    def warm_up(self) -> None:
        importlib.import_module("..tileir.interpreter", __package__)  # with xDSL: half a second

    def synchronize(self) -> None:
        self.check_open()
        self._not_capturing("synchronize")

    def record(self) -> Event:
        self.check_open()
        return CpuEvent(time.perf_counter_ns())

    # Graphs

    @contextmanager
    def capture(self, *, beside: bool = False) -> Generator[CpuGraph]:
        del beside  # one graph runs after the other
        self.check_open()
        self._not_capturing("begin another capture")
        self._capturing = graph = CpuGraph(self)
        try:
            yield graph
            graph.complete = True
        finally:
            self._capturing = None

    @contextmanager
    def beside(self) -> Generator[Callable[[Graph], None]]:
        self._not_capturing("run graphs beside each other")
        yield lambda graph: graph.replay()

    def replay(self, steps: Sequence[Step]) -> None:
        self.check_open()
        self._not_capturing("replay a graph")
        for step in steps:
            step()

    def submit(self, buffers: Sequence[DeviceBuffer], step: Step) -> None:
        """Runs a step on these buffers: now, or at each replay if it is called inside a capture."""
        if self._capturing is None:
            step()
        else:
            self._capturing.add(buffers, step)

    def _not_capturing(self, what: str) -> None:
        if self._capturing is not None:
            raise UsageError(f"{self.name} cannot {what} inside a capture", hint="do it before the `with`, or after")


class CpuEvent:
    def __init__(self, time_ns: int) -> None:
        self.time_ns = time_ns

    def us_since(self, start: Event) -> float:
        if not isinstance(start, CpuEvent):
            raise UsageError(f"{start!r} is not a CPU event: the two have no common clock")
        return (self.time_ns - start.time_ns) / 1000


class CpuGraph:
    """The recorded steps. Each holds a reference to its buffers."""

    def __init__(self, executor: CpuExecutor) -> None:
        self._executor = executor
        self._steps: list[Step] = []
        self._allocations: dict[int, Allocation] = {}
        self.complete = False

    def add(self, buffers: Sequence[DeviceBuffer], step: Step) -> None:
        self._steps.append(step)
        for buffer in buffers:
            self._allocations[id(buffer.allocation)] = buffer.allocation

    def replay(self) -> None:
        if not self.complete:
            raise UsageError("this graph was not captured to its end: nothing to replay")
        for allocation in self._allocations.values():
            if allocation.freed:
                raise LaunchError("a buffer that this graph uses was freed", hint="capture it again")
        self._executor.replay(self._steps)


class _Memory:
    """The bytes of an allocation, and the interpreter's own handle of them after the first launch that uses them. They
    live as long as this object, which another library may keep longer than the allocation does."""

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
        self.data = data
        self.interpreted: Any = None


def _new_bytes(nbytes: int, make: Callable[..., np.ndarray[Any, Any]] = np.empty) -> np.ndarray[Any, Any]:
    try:
        backing = make(nbytes + _BASE_ALIGNMENT, np.uint8)
    except MemoryError as error:
        raise OutOfMemory(f"no memory for {nbytes} bytes", hint="use a smaller batch or model") from error
    skip = -backing.ctypes.data % _BASE_ALIGNMENT
    return backing[skip : skip + nbytes]


def _allocation(data: np.ndarray[Any, Any], release: Callable[[], None] | None = None) -> Allocation:
    memory = _Memory(data)
    if release is not None:
        weakref.finalize(memory, release).atexit = False  # at exit the process gives everything back
    return _over(memory)


def _over(memory: _Memory) -> Allocation:
    def give_back(allocation: Allocation) -> None:
        allocation.memory = None

    return Allocation(memory.data.ctypes.data, memory.data.nbytes, give_back, memory)


def interpreted(allocation: Allocation) -> Any:
    """The interpreter's object for an allocation: one for each piece of memory."""
    from ..tileir import interpreter

    memory: _Memory = allocation.memory
    if memory.interpreted is None:
        memory.interpreted = interpreter.Allocation(memory.data)
    return memory.interpreted


def shared_allocations(nbytes: int, count: int) -> list[Allocation]:
    """One piece of memory as `count` allocations, one for each executor that reaches it: zeros."""
    memory = _Memory(_new_bytes(nbytes, make=np.zeros))
    return [_over(memory) for _ in range(count)]


def _bytes_at(address: int, nbytes: int) -> np.ndarray[Any, Any]:
    """An array over another library's memory, which it does not own."""

    class Bytes:
        __array_interface__ = {"version": 3, "data": (address, False), "typestr": "|u1", "shape": (nbytes,)}

    return np.asarray(Bytes()) if nbytes else np.empty(0, np.uint8)


def _view(buffer: DeviceBuffer, dtype: np.dtype[Any] | None = None) -> np.ndarray[Any, Any]:
    memory: _Memory = buffer.allocation.memory
    view = buffer.layout
    return np.ndarray(view.shape, dtype or NUMPY[view.dtype], memory.data, buffer.offset, view.byte_strides)
