"""The symmetric heap: as much memory on every rank, all of it in one range of addresses.

Rank r's memory lies at r x `stride` bytes from the beginning, and a buffer at the same offset on every rank. So one
strided array, whose first dimension is the ranks, reaches a buffer of all of them.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence

from ...errors import OutOfMemory, UsageError
from ..buffer import Allocation, DeviceBuffer
from ..cpu import CpuExecutor, shared_allocations
from ..cuda import CudaExecutor
from ..executor import Executor
from ..layout import NUMPY, contiguous_strides
from .mapping import granularity, map_peers, map_processes
from .shared_memory import share_memory
from .world import World

APART = 256  # bytes: buffers begin at multiples
MOST = 2**31  # elements: strides are 32-bit numbers


class SymmetricHeap:
    """`nbytes` on each rank, rounded up to whole pages. `stride`: bytes from one rank's memory to the next one's."""

    def __init__(self, executors: Sequence[Executor], nbytes: int, world: World | None = None) -> None:
        """`world`: the other processes, if each has one rank; all of them make their heaps in the same order. Raises
        OutOfMemory, and UsageError for more than addresses of 32 bits reach."""
        self._executors = executors
        self._ranks = len(executors) if world is None else world.ranks
        gpus = [each for each in executors if isinstance(each, CudaExecutor)]
        page = granularity(gpus) if gpus else APART if world is None else mmap.PAGESIZE
        self.stride = max(-(-nbytes // page), 1) * page
        if self.stride * self._ranks > 2 * MOST:
            raise UsageError(
                f"a symmetric heap of {self._ranks} x {self.stride} bytes: together at most {2 * MOST}",
                hint="take smaller buffers, or several heaps",
            )
        total = self.stride * self._ranks
        self._unmap: Callable[[], None] | None = None
        if gpus:
            mapped = map_peers(gpus, self.stride) if world is None else map_processes(gpus[0], self.stride, world)
            address, self._unmap = mapped
            self._allocations = [Allocation(address, total, lambda _: None) for _ in executors]
        elif world is not None:
            cpus = [each for each in executors if isinstance(each, CpuExecutor)]
            self._allocations = [share_memory(cpus[0], self.stride, world)]
        else:
            self._allocations = shared_allocations(total, len(executors))
        self._used = 0

    def empty(self, shape: Sequence[int], dtype: str) -> list[DeviceBuffer]:
        """A buffer of this shape on every rank: for the launches of each executor one view of all, (R, *shape), whose
        row r is in rank r's memory. Raises OutOfMemory where the heap is full."""
        strides = contiguous_strides(tuple(shape))
        itemsize = NUMPY[dtype].itemsize
        nbytes = itemsize * (strides[0] * shape[0] if shape else 1)
        first = -(-self._used // APART) * APART
        if first + nbytes > self.stride:
            raise OutOfMemory(
                f"a symmetric heap of {self.stride} bytes has {self.stride - first} left, not {nbytes}",
                hint="make a larger one",
            )
        self._used = first + nbytes
        whole, steps = (self._ranks, *shape), (self.stride // itemsize, *strides)
        return [
            DeviceBuffer(executor, allocation, first, dtype, whole, steps)
            for executor, allocation in zip(self._executors, self._allocations, strict=True)
        ]

    def close(self) -> None:
        """Frees it. The ranks have ended all work with it: see Peers.synchronize."""
        for allocation in self._allocations:
            if not allocation.freed:
                allocation.free()
        if self._unmap is not None:
            unmap, self._unmap = self._unmap, None
            unmap()
