"""The objects that the CUDA executor returns: commands of loaded entries, events, graphs."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import LaunchError, UsageError
from .buffer import Allocation, DeviceBuffer
from .driver import GPU
from .executor import Event, Loaded
from .tensor_maps import TensorMaps
from .tma import TMADescriptor

if TYPE_CHECKING:
    from ..artifact import Form
    from ..bundle import BundleEntry
    from ..entry import Param


class Stream(Protocol):
    """The interface of the CUDA executor that its commands, events and graphs use."""

    @property
    def gpu(self) -> GPU: ...

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    @property
    def frees(self) -> int: ...

    def check_open(self) -> None: ...

    def run(self, call: str, *args: Any, doing: str = "") -> Any: ...

    def wait(self, call: str, *args: Any, doing: str = "") -> Any: ...

    def hand_out(self, made: CudaEvent | CudaGraph) -> None: ...

    def discard(self, call: str, handle: Any) -> None: ...

    def encode(self, descriptor: TMADescriptor) -> bytes: ...

    def launch_config(self, grid: tuple[int, int, int], form: Form, *, ahead: bool) -> Any: ...

    def start(
        self, command: CudaCommand, arrays: Sequence[DeviceBuffer], pdl_reads: Sequence[range], written: Sequence[range]
    ) -> None: ...

    def new_event(self) -> Any: ...

    def record_on_stream(self, event: Any) -> None: ...

    def replay(self, executable: Any) -> None: ...


class CudaCommand:
    """A loaded entry and its packed parameters. A launch rewrites the addresses and the scalars; the rest stays."""

    def __init__(
        self,
        executor: Stream,
        function: Any,
        entry: BundleEntry,
        arrays: Sequence[DeviceBuffer],
        grid: tuple[int, int, int],
        loaded: Loaded,
    ) -> None:
        self._executor, self.grid, self.symbol, self.loaded = executor, grid, entry.spec.symbol, loaded
        self._head, content, offsets = pack(entry.spec.params, arrays)
        self._content = ctypes.create_string_buffer(content, len(content))
        base = ctypes.addressof(self._content)
        form, params = entry.form, entry.spec.params
        maps = TensorMaps(self.symbol, form.maps, params, arrays, executor.encode) if form.maps else None
        self._maps = maps
        places = [*(base + offset for offset in offsets), *(maps.addresses if maps else ())]
        self._table = (ctypes.c_void_p * len(places))(*places)
        self.call = (function, ctypes.addressof(self._table))
        self.waits = form.waits and executor.gpu.overlaps
        self.plain = executor.launch_config(grid, form, ahead=False)
        self.ahead = executor.launch_config(grid, form, ahead=True) if self.waits else self.plain
        named = [p for p in params if p.dims]
        pdl_reads = entry.spec.op_spec.pdl_reads
        self._pdl_reads = [i for i, p in enumerate(named) if p.name in pdl_reads]
        self._outputs = [i for i, p in enumerate(named) if p.role == "output"]

    def __call__(self, arrays: Sequence[DeviceBuffer], scalars: Sequence[int | float]) -> None:
        executor = self._executor
        with executor.lock:
            self._head.pack_into(self._content, 0, *[a.pointer for a in arrays], *scalars)
            if self._maps is not None:
                self._maps.write(arrays)
            pdl_reads, written = ([_addresses(arrays[i]) for i in which] for which in (self._pdl_reads, self._outputs))
            executor.start(self, arrays, pdl_reads, written)


def _addresses(buffer: DeviceBuffer) -> range:
    return range(buffer.pointer, buffer.pointer + buffer.layout.span)


def pack(params: Sequence[Param], arrays: Sequence[DeviceBuffer]) -> tuple[struct.Struct, bytes, list[int]]:
    """The memory of a kernel's parameters. First come the addresses and scalars, which the returned Struct writes for
    each launch; then shapes and strides, which are already filled in. Also returns each parameter's offset, in ABI
    order."""
    scalars = [p for p in params if not p.dims]
    head = struct.Struct("=" + "Q" * len(arrays) + "".join("f" if p.dtype == "f32" else "i" for p in scalars))
    content = bytearray(head.size)
    offsets: list[int] = []
    seen_arrays = seen_scalars = 0
    for param in params:
        if not param.dims:
            offsets.append(8 * len(arrays) + 4 * seen_scalars)
            seen_scalars += 1
            continue
        view = arrays[seen_arrays].layout
        offsets.append(8 * seen_arrays)
        seen_arrays += 1
        for number in (*view.shape, *view.strides):
            offsets.append(len(content))
            content += struct.pack("=i", number)
    return head, bytes(content), offsets


class CudaEvent:
    """An event on an executor's stream, destroyed with this object."""

    def __init__(self, executor: Stream) -> None:
        self._executor = executor
        self.handle = executor.new_event()
        executor.hand_out(self)  # before it is recorded, so that nothing comes between the event and the work after it
        executor.record_on_stream(self.handle)

    def us_since(self, start: Event) -> float:
        if not isinstance(start, CudaEvent):
            raise UsageError(f"{start!r} is not a CUDA event: the two have no common clock")
        self._executor.wait("cuEventSynchronize", self.handle)
        return 1000 * float(self._executor.run("cuEventElapsedTime", start.handle, self.handle))

    def close(self) -> None:
        handle, self.handle = self.handle, None
        if handle is not None:
            self._executor.discard("cuEventDestroy", handle)

    def __del__(self) -> None:
        if not sys.is_finalizing() and hasattr(self, "handle"):
            self.close()


class CudaGraph:
    """Captured launches. The graph keeps the memory that they use alive."""

    def __init__(self, executor: Stream) -> None:
        self._executor = executor
        self._allocations: dict[int, Allocation] = {}
        self._seen_frees = -1  # the executor's count of frees at the last check of the buffers
        self._executable: Any = None

    def hold(self, buffers: Sequence[DeviceBuffer]) -> None:
        for buffer in buffers:
            self._allocations[id(buffer.allocation)] = buffer.allocation

    def instantiate(self, graph: Any) -> None:
        try:
            self._executable = self._executor.run("cuGraphInstantiate", graph, 0, doing="making a graph executable")
        finally:
            self._executor.discard("cuGraphDestroy", graph)
        self._executor.hand_out(self)

    def replay(self) -> None:
        if self._executable is None:
            self._executor.check_open()
            raise UsageError("this graph was not captured to its end: nothing to replay")
        with self._executor.lock:  # no other thread can free a buffer between the check and the launch
            if self._seen_frees != self._executor.frees:  # hundreds of buffers, so only if one may have been freed
                if any(allocation.freed for allocation in self._allocations.values()):
                    raise LaunchError("a buffer that this graph uses was freed", hint="capture it again")
                self._seen_frees = self._executor.frees
            self._executor.replay(self._executable)

    def close(self) -> None:
        executable, self._executable = self._executable, None
        if executable is not None:
            self._executor.discard("cuGraphExecDestroy", executable)

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.close()
