"""DeviceBuffer: a typed, strided view of memory that an executor owns.

Views share one Allocation. It is freed when its last view is deleted, or at once by `free()`; using a view of freed
memory is an error.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from ..contract.entry import ALIGNMENT
from ..contract.op import ITEMSIZE
from ..errors import UsageError
from . import dlpack
from .layout import NUMPY, Layout, contiguous_strides, layout


class Allocation:
    """One piece of memory. `memory`: the executor's own object for it (the interpreter's Allocation; None on a GPU).
    `shared`: another library knows its address, so freeing must also wait for that library's work."""

    __slots__ = ("__weakref__", "_release", "address", "freed", "memory", "nbytes", "shared")

    def __init__(self, address: int, nbytes: int, release: Callable[[Allocation], None], memory: Any = None) -> None:
        self.address, self.nbytes, self.memory = address, nbytes, memory
        self.freed = False
        self.shared = False
        self._release = release

    def free(self) -> None:
        if self.freed:
            raise UsageError("this buffer's memory was already freed")
        self.freed = True
        self._release(self)

    def __del__(self) -> None:
        if not self.freed and not sys.is_finalizing():  # at exit the system frees everything
            self.free()


class Owner(Protocol):
    """The interface of an executor that its buffers use."""

    kind: Literal["cuda", "cpu"]
    name: str
    device: tuple[int, int]

    def read(self, source: DeviceBuffer) -> np.ndarray[Any, Any]: ...

    def write(self, target: DeviceBuffer, array: np.ndarray[Any, Any]) -> None: ...

    def copy(self, target: DeviceBuffer, source: DeviceBuffer) -> None: ...

    def copy_beside(self, copies: Sequence[tuple[DeviceBuffer, DeviceBuffer]]) -> None: ...

    def fill(self, target: DeviceBuffer, pattern: int) -> None: ...

    def share(self, allocation: Allocation) -> None: ...

    def hand_over(self, stream: int | None) -> None: ...


class DeviceBuffer:
    """An array in an executor's memory. `strides` are in elements, never negative."""

    __slots__ = ("allocation", "executor", "layout", "offset", "pointer")

    def __init__(
        self,
        executor: Owner,
        allocation: Allocation,
        offset: int,
        dtype: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        """A view of `allocation` from `offset` bytes on. Raises UsageError if it does not fit in there."""
        self.executor = executor
        self.allocation = allocation
        self.offset = offset
        self.pointer = allocation.address + offset
        self.layout: Layout = layout(dtype, shape, strides, self.pointer % ALIGNMENT == 0)
        if offset < 0 or offset + self.layout.span > allocation.nbytes:
            raise UsageError(f"a view {self.layout} at byte {offset} exceeds its memory of {allocation.nbytes} bytes")
        if self.pointer % self.layout.itemsize:
            raise UsageError(f"a view {self.layout} at address {self.pointer:#x}: not a multiple of its element's size")

    @property
    def dtype(self) -> str:
        """ "f32", "f16", "bf16", "f8E4M3FN", "i8", "i32" or "i64"."""
        return self.layout.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.layout.strides

    @property
    def nbytes(self) -> int:
        return self.layout.nbytes

    @property
    def freed(self) -> bool:
        return self.allocation.freed

    def __repr__(self) -> str:
        state = " freed" if self.freed else ""
        return f"<DeviceBuffer {self.layout} on {self.executor.name}{state}>"

    def free(self) -> None:
        """Frees the memory now. Every view of it becomes unusable; on a GPU also the arrays that other libraries made
        of it."""
        self.allocation.free()

    def check_alive(self) -> None:
        if self.allocation.freed:
            raise UsageError(f"{self!r} is used after its memory was freed")

    # Views

    def _view(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> DeviceBuffer:
        self.check_alive()
        offset = 0 if 0 in shape else offset  # an empty view may begin anywhere
        return DeviceBuffer(self.executor, self.allocation, self.offset + offset, self.dtype, shape, strides)

    def reshape(self, *shape: int) -> DeviceBuffer:
        """The same elements in another shape; one size may be -1. Only a contiguous buffer has such a view."""
        if not self.layout.contiguous:
            raise UsageError(f"{self!r} is not contiguous: no view can reshape it")
        size = self.layout.size
        if -1 in shape:
            known = -math.prod(shape)
            fits = shape.count(-1) == 1 and known > 0 and size % known == 0
            shape = tuple(size // known if fits and s == -1 else s for s in shape)
        if any(s < 0 for s in shape) or math.prod(shape) != size:
            raise UsageError(f"{self!r} has {size} elements: it cannot have shape {list(shape)}")
        return self._view(0, shape, contiguous_strides(shape))

    def unflatten(self, dim: int, *sizes: int) -> DeviceBuffer:
        """Splits one dimension into several, whose sizes multiply to its size."""
        dim = self._dim(dim)
        if math.prod(sizes) != self.shape[dim] or any(size < 0 for size in sizes):
            raise UsageError(f"{self!r}: dimension {dim} cannot become {list(sizes)}")
        steps = tuple(step * self.strides[dim] for step in contiguous_strides(sizes))
        strides = (*self.strides[:dim], *steps, *self.strides[dim + 1 :])
        return self._view(0, (*self.shape[:dim], *sizes, *self.shape[dim + 1 :]), strides)

    def slice(self, dim: int, start: int, stop: int) -> DeviceBuffer:
        """Elements start .. stop of one dimension, like x[..., start:stop]; bounds out of range are errors."""
        dim = self._dim(dim)
        if not 0 <= start <= stop <= self.shape[dim]:
            raise UsageError(f"{self!r}: dimension {dim} has no range {start}:{stop}")
        shape = (*self.shape[:dim], stop - start, *self.shape[dim + 1 :])
        return self._view(start * self.strides[dim] * self.layout.itemsize, shape, self.strides)

    def narrow(self, dim: int, start: int, length: int) -> DeviceBuffer:
        """`length` elements of one dimension from `start` on."""
        return self.slice(dim, start, start + length)

    def select(self, dim: int, index: int) -> DeviceBuffer:
        """Selects one index of a dimension, and removes the dimension; -1 is the last index."""
        dim = self._dim(dim)
        size = self.shape[dim]
        if not -size <= index < size:
            raise UsageError(f"{self!r}: dimension {dim} has no index {index}")
        offset = (index % size) * self.strides[dim] * self.layout.itemsize
        without = (*self.shape[:dim], *self.shape[dim + 1 :])
        return self._view(offset, without, (*self.strides[:dim], *self.strides[dim + 1 :]))

    def _dim(self, dim: int) -> int:
        rank = len(self.shape)
        if not -rank <= dim < rank:
            raise UsageError(f"{self!r} has no dimension {dim}")
        return dim % rank

    # Contents

    def numpy(self) -> np.ndarray[Any, Any]:
        """A contiguous copy on the host, after all work launched before; bf16 becomes ml_dtypes.bfloat16."""
        self.check_alive()
        return self.executor.read(self)

    def copy_from(self, source: np.ndarray[Any, Any] | DeviceBuffer) -> None:
        """Copies an array of the same shape and dtype. A host array can be copied into any view; a buffer only if both
        are contiguous, of the same executor, and do not overlap. A page-locked host array must stay unchanged until
        `synchronize()`."""
        self.check_alive()
        same = self.dtype if isinstance(source, DeviceBuffer) else NUMPY[self.dtype]
        if source.shape != self.shape or source.dtype != same:
            raise UsageError(
                f"cannot copy {source.dtype}{list(source.shape)} into {self!r}: shape and dtype must be equal"
            )
        if not isinstance(source, DeviceBuffer):
            self.executor.write(self, np.ascontiguousarray(source))
            return
        source.check_alive()
        if source.executor is not self.executor:
            raise UsageError(f"cannot copy {source!r} into {self!r}: go through .numpy()")
        if not (self.layout.contiguous and source.layout.contiguous):
            raise UsageError(f"cannot copy {source!r} into {self!r}: both must be contiguous")
        if 0 < abs(self.pointer - source.pointer) < self.nbytes:
            raise UsageError(f"cannot copy {source!r} into {self!r}: they overlap in memory")
        self.executor.copy(self, source)

    def fill(self, value: float) -> None:
        """Sets every element, in order with the launches around it."""
        self.check_alive()
        if self.dtype == "i32" and not (value == value // 1 and -(2**31) <= value < 2**31):
            raise UsageError(f"cannot fill {self!r} with {value}: not a 32-bit integer")
        element = np.array(value).astype(NUMPY[self.dtype])
        self.executor.fill(self, int(element.view(f"u{ITEMSIZE[self.dtype]}")))

    # Other libraries

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface. It cannot express bfloat16, which numpy lacks. A bf16 buffer therefore does not
        have this attribute, so that readers use DLPack, which can."""
        self.check_alive()
        if self.executor.kind != "cuda":
            raise AttributeError(f"{self!r} is not in a GPU's memory: it has no __cuda_array_interface__")
        view = self.layout
        row = dlpack.cuda_array_interface(self.pointer, view.dtype, view.shape, view.byte_strides)
        self.executor.share(self.allocation)
        self.executor.hand_over(dlpack.LEGACY_STREAM)
        return row

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.executor.device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A DLPack capsule of this buffer, without a copy, ready on the reader's stream. It always has the unversioned
        form, which every reader accepts, whatever `max_version` is."""
        del max_version
        self.check_alive()
        if copy or dl_device not in (None, self.executor.device):
            raise BufferError(f"{self!r} can only be shared without a copy and on its own device")
        self.executor.share(self.allocation)
        self.executor.hand_over(stream)
        view = self.layout
        owner = self, self.allocation.memory  # `free` does not affect a reader's share of either
        return dlpack.give(self.pointer, view.dtype, view.shape, view.strides, self.executor.device, owner)
