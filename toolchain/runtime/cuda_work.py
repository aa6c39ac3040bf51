"""The objects that the CUDA executor returns: commands of loaded entries, events, graphs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from ..contract.tma import TMADescriptor
from ..errors import LaunchError, NoRoom, UsageError
from .buffer import Allocation, DeviceBuffer
from .driver import GPU
from .executor import Event, Loaded
from .packing import FORMATS, Packed, array
from .tensor_maps import TensorMaps, descriptors

if TYPE_CHECKING:
    from ..bundles.bundle import BundleEntry
    from ..contract.op import Param


class Stream(Protocol):
    """The interface of the CUDA executor that its commands, events and graphs use."""

    @property
    def gpu(self) -> GPU: ...

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    @property
    def frees(self) -> int: ...

    ranks_here: int

    def check_open(self) -> None: ...

    def run(self, call: str, *args: Any, doing: str = "") -> Any: ...

    def wait(self, call: str, *args: Any, doing: str = "") -> Any: ...

    def hand_out(self, made: CudaEvent | CudaGraph) -> None: ...

    def discard(self, call: str, *handle: Any) -> None: ...

    def encode(self, descriptor: TMADescriptor) -> bytes: ...

    def launch_config(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        *,
        ahead: bool = False,
        together: int = 0,
    ) -> Any: ...

    def start(
        self, command: CudaCommand, arrays: Sequence[DeviceBuffer], pdl_reads: Sequence[range], written: Sequence[range]
    ) -> None: ...

    def new_event(self) -> Any: ...

    def record_on_stream(self, event: Any) -> None: ...

    def replay(self, executable: Any, *, beside: bool = False) -> None: ...


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
        self._executor, self.symbol, self.loaded = executor, entry.spec.symbol, loaded
        self.what = f"{self.symbol} with grid {grid}"  # for errors
        form, params = entry.form, entry.spec.params
        made = descriptors(self.symbol, form.maps, params, arrays)
        self._maps = TensorMaps(made, executor.encode) if made else None
        self._packed = Packed(slots(params, arrays), self._maps.addresses if self._maps else ())
        self.call = (function, self._packed.address)
        self.meets = bool(entry.spec.op_spec.peers)  # its blocks wait for those of other ranks
        self.waits = form.waits and executor.gpu.overlaps
        shape = (grid, form.block, form.shared_bytes)
        self.plain = executor.launch_config(*shape, together=form.together)
        if form.together:
            _check_fit(
                executor, function, self.plain, self.what, grid[0] // form.together,
                executor.ranks_here if self.meets else 1,
            )  # fmt: skip
        self.ahead = executor.launch_config(*shape, ahead=True) if self.waits else self.plain
        named = [p for p in params if p.dims]
        pdl_reads = entry.spec.op_spec.pdl_reads
        self._pdl_reads = [i for i, p in enumerate(named) if p.name in pdl_reads]
        self._outputs = [i for i, p in enumerate(named) if p.role == "output"]

    def __call__(self, arrays: Sequence[DeviceBuffer], scalars: Sequence[int | float]) -> None:
        executor = self._executor
        with executor.lock:
            pointers = [a.pointer for a in arrays]
            self._packed.write(pointers, scalars)
            if self._maps is not None:
                self._maps.write(pointers)
            pdl_reads, written = ([_addresses(arrays[i]) for i in which] for which in (self._pdl_reads, self._outputs))
            executor.start(self, arrays, pdl_reads, written)


def _check_fit(executor: Stream, function: Any, config: Any, what: str, clusters: int, ranks: int) -> None:
    """Raises NoRoom if a kernel whose blocks must all run at the same time has more than the GPU holds at once.
    `ranks`: on this GPU, whose launches wait for each other."""
    room = int(executor.run("cuOccupancyMaxActiveClusters", function, config, doing=f"asking how much fits of {what}"))
    if room < clusters * ranks:
        those = f"its {clusters} clusters" if ranks == 1 else f"{ranks} ranks' {clusters} clusters each"
        raise NoRoom(
            f"{what}: {those} must run at the same time, and this GPU has room for {room}",
            hint="a GPU with fewer multiprocessors, or a part of one, runs the ops one by one"
            if ranks == 1 else "give each rank a GPU of its own",
        )  # fmt: skip


def _addresses(buffer: DeviceBuffer) -> range:
    return range(buffer.pointer, buffer.pointer + buffer.layout.span)


def slots(params: Sequence[Param], arrays: Sequence[DeviceBuffer]) -> list[str | bytes]:
    """The parameters of an entry, in ABI order, for arrays of these layouts; see Packed."""
    found: list[str | bytes] = []
    left = iter(arrays)
    for param in params:
        if param.dims:
            view = next(left).layout
            found += array(("i32", number) for number in (*view.shape, *view.strides))
        else:
            found.append(FORMATS[param.dtype])
    return found


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
    """Captured launches. The graph keeps the memory that they use alive. `beside`: see Executor.capture. `forked`:
    copies run beside them, which the graph ends with."""

    def __init__(self, executor: Stream, *, beside: bool = False) -> None:
        self._executor, self.beside, self.forked = executor, beside, False
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

    def replay(self, *, beside: bool = False) -> None:
        """`beside`: on the executor's second stream; see Executor.beside."""
        if self._executable is None:
            self._executor.check_open()
            raise UsageError("this graph was not captured to its end: nothing to replay")
        with self._executor.lock:  # no other thread can free a buffer between the check and the launch
            if self._seen_frees != self._executor.frees:  # hundreds of buffers, so only if one may have been freed
                if any(allocation.freed for allocation in self._allocations.values()):
                    raise LaunchError("a buffer that this graph uses was freed", hint="capture it again")
                self._seen_frees = self._executor.frees
            self._executor.replay(self._executable, beside=beside)

    def close(self) -> None:
        executable, self._executable = self._executable, None
        if executable is not None:
            self._executor.discard("cuGraphExecDestroy", executable)

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.close()
