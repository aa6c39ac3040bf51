"""DeviceBuffer: memory of a GPU that one object owns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from toolchain.errors import UsageError

from .device import executor

if TYPE_CHECKING:
    from toolchain.runtime.buffer import Allocation


class DeviceBuffer:
    """A contiguous array of a shape and a numpy dtype, of any kind that numpy or ml_dtypes has (fp8 too).

    It can be moved, not copied: `move()` hands the memory to a new owner, and a copy of elements is always a call that
    says so. Work on it runs in order with the launches on its GPU.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, device_id: int = 0) -> None:
        """Memory with undefined values. Raises OutOfMemory and NoGPU."""
        self.shape, self.dtype, self.device_id = tuple(shape), np.dtype(dtype), device_id
        self._memory: Allocation | None = executor(device_id).allocate(self.nbytes)

    @classmethod
    def from_numpy(cls, array: np.ndarray[Any, Any], device_id: int = 0) -> Self:
        """A copy of an array."""
        made = cls(array.shape, array.dtype, device_id)
        made.copy_from(array)
        return made

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def pointer(self) -> int:
        """The address. Raises UsageError after the memory was moved or freed."""
        if self._memory is None or self._memory.freed:
            raise UsageError(f"{self!r} is used after its memory was moved or freed")
        return self._memory.address

    def __repr__(self) -> str:
        state = "" if self._memory is not None and not self._memory.freed else " empty"
        return f"<DeviceBuffer {self.dtype}{list(self.shape)} on cuda:{self.device_id}{state}>"

    def move(self) -> DeviceBuffer:
        """A new owner of the memory; this one has none any more."""
        made = object.__new__(type(self))
        _ = self.pointer
        made.shape, made.dtype, made.device_id = self.shape, self.dtype, self.device_id
        made._memory, self._memory = self._memory, None
        return made

    def copy_from(self, array: np.ndarray[Any, Any]) -> None:
        """Copies from the host. Raises UsageError for another shape or dtype."""
        self._same(array)
        source = np.ascontiguousarray(array)
        gpu = executor(self.device_id)
        if self.nbytes:
            gpu.run("cuMemcpyHtoDAsync", self.pointer, source.ctypes.data, self.nbytes, gpu.stream)
            gpu.synchronize()  # `source` may go away

    def copy_to(self, array: np.ndarray[Any, Any]) -> None:
        """Copies to the host, after all earlier launches."""
        self._same(array)
        if not array.flags.writeable:
            raise UsageError(f"{self!r} cannot be copied into an array that is read-only")
        whole = array if array.flags.c_contiguous else np.empty(self.shape, self.dtype)
        gpu = executor(self.device_id)
        if self.nbytes:
            gpu.run("cuMemcpyDtoHAsync", whole.ctypes.data, self.pointer, self.nbytes, gpu.stream)
        gpu.synchronize()
        if whole is not array:
            array[...] = whole

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host, after all earlier launches."""
        array = np.empty(self.shape, self.dtype)
        self.copy_to(array)
        return array

    def free(self) -> None:
        """Frees the memory now, not when this object goes."""
        _ = self.pointer
        assert self._memory is not None
        self._memory.free()

    def _same(self, array: np.ndarray[Any, Any]) -> None:
        if array.shape != self.shape or array.dtype != self.dtype:
            raise UsageError(f"{self!r} and {array.dtype}{list(array.shape)}: shape and dtype must be equal")

    def __copy__(self) -> NoReturn:
        raise UsageError(f"{self!r} is not copied: its memory has one owner", hint="move() it, or copy .numpy()")

    def __deepcopy__(self, memo: object) -> NoReturn:
        del memo
        self.__copy__()
