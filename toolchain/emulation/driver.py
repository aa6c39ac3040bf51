"""A CUDA driver with one device, whose kernels are Tile IR bytecode. Functions of C that call Python.

cuTile's C extension asks cuGetProcAddress for each function that it uses. What a launch needs is here; what only has to
succeed, such as waiting for work that is already done, does nothing; every other call fails and says its name.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import UsageError
from ..tileir.interpreter import Storage
from .launch import launch
from .settings import SMS, Settings
from .storages import Storages
from .structures import LaunchConfig

# CUresult: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
_SUCCESS, _NOT_SUPPORTED, _LAUNCH_FAILED = 0, 801, 719
_MAGIC = b"tilestack bytecode\0"
_CONTEXT = 0x77  # the one context
_32 = 0xFFFFFFFF  # an int's part of a machine word
_MOST_ARGUMENTS = 12  # of a function of the driver; each is passed as a machine word

# What only has to succeed here: there is nothing to wait for, and one context and one device to choose.
_NOTHING = frozenset({
    "cuInit", "cuCtxSynchronize", "cuCtxPushCurrent", "cuCtxSetCurrent", "cuEventDestroy", "cuEventQuery",
    "cuEventRecord", "cuKernelSetAttribute", "cuStreamDestroy", "cuStreamSynchronize", "cuStreamWaitEvent",
})  # fmt: skip
# CUdevice_attribute of the device that it poses as; the others are 1024.
_ATTRIBUTES = {5: 2**31 - 1, 6: 65535, 7: 65535, 16: SMS, 97: 227 * 1024, 10: 32, 38: 1 << 20}
_MAJOR, _MINOR = 75, 76
_VERSION = 13050  # CUDA 13.5


def image(bytecode: bytes) -> bytes:
    """What stands for a cubin of this bytecode."""
    return _MAGIC + len(bytecode).to_bytes(8, "little") + bytecode


class Driver:
    """The driver. `storages`: where whoever prepares a launch notes the memory of its arguments."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.storages = Storages()
        self.launches = 0
        self._pending = threading.local()
        self._lock = threading.RLock()  # a launch has memory of its own, but kernels of one module share its globals
        self._memory: dict[int, np.ndarray[Any, Any]] = {}  # by address, of the device and of the host
        self._libraries: dict[int, bytes] = {}
        self._kernels: dict[int, tuple[bytes, str]] = {}
        self._last_handle = 0x1000
        self._message = ctypes.create_string_buffer(b"see the exception of the interpreter")
        self._functions: dict[str, Any] = {}
        self.get_address = _GetAddress(self._address_of)  # cuGetProcAddress_v2
        self._slot = ctypes.c_void_p(ctypes.cast(self.get_address, ctypes.c_void_p).value)

    @property
    def get_address_pointer(self) -> int:
        """The address of a variable that holds the address of cuGetProcAddress_v2."""
        return ctypes.addressof(self._slot)

    @contextmanager
    def call(self) -> Generator[None]:
        """A call into cuTile's C extension: what goes wrong in the driver meanwhile is raised here as it was, not as
        the number that C knows it by. The storages of the launch are forgotten afterwards."""
        __tracebackhide__ = True
        with self._lock:
            self._pending.error = None
            try:
                yield
            except BaseException:
                if self._pending.error is None:
                    raise
                raise self._pending.error from None
            finally:
                self.storages.clear()

    # How C reaches Python

    def _address_of(self, symbol: int, out: int, _version: int, _flags: int, _status: int) -> int:
        name = ctypes.string_at(symbol).decode()
        _put(out, _after_python() if name == "cuLibraryUnload" else self._function(name))
        return _SUCCESS

    def _function(self, name: str) -> int:
        if name not in self._functions:
            found: Callable[..., int | None] | None = getattr(self, name, None)
            if found is None:
                found = _nothing if name in _NOTHING else _refusal(name)
            self._functions[name] = _Function(self._guarded(found))
        return ctypes.cast(self._functions[name], ctypes.c_void_p).value or 0

    def _guarded(self, function: Callable[..., int | None]) -> Callable[..., int]:
        def call(*args: int | None) -> int:
            try:
                return function(*(arg or 0 for arg in args)) or _SUCCESS
            except BaseException as error:  # noqa: BLE001 - C cannot pass it on: `call` raises it
                self._pending.error = error
                return _NOT_SUPPORTED if isinstance(error, UsageError) else _LAUNCH_FAILED

        return call

    def _handle(self, out: int) -> int:
        self._last_handle += 16
        _put(out, self._last_handle)
        return self._last_handle

    # The functions, by their names in C

    def cuDriverGetVersion(self, out: int, *_: int) -> None:
        _put(out, _VERSION, ctypes.c_int)

    def cuDeviceGetCount(self, out: int, *_: int) -> None:
        _put(out, 1, ctypes.c_int)

    def cuDeviceGet(self, out: int, *_: int) -> None:
        _put(out, 0, ctypes.c_int)

    def cuDeviceGetAttribute(self, out: int, attribute: int, *_: int) -> None:
        capability = dict(zip((_MAJOR, _MINOR), self.settings.capability, strict=True))
        number = attribute & _32
        _put(out, (capability | _ATTRIBUTES).get(number, 1024), ctypes.c_int)

    def cuCtxGetCurrent(self, out: int, *_: int) -> None:
        _put(out, _CONTEXT)

    cuCtxPopCurrent = cuCtxGetCurrent

    def cuCtxGetDevice(self, out: int, *_: int) -> None:
        _put(out, 0, ctypes.c_int)

    cuCtxGetDevice_v2 = cuCtxGetDevice

    def cuDevicePrimaryCtxRetain(self, out: int, *_: int) -> None:
        _put(out, _CONTEXT)

    cuPointerGetAttribute = cuDevicePrimaryCtxRetain  # asked only for the context of a pointer

    def cuStreamGetCtx(self, _stream: int, out: int, *_: int) -> None:
        _put(out, _CONTEXT)

    def cuCtxGetId(self, _context: int, out: int, *_: int) -> None:
        _put(out, 1, ctypes.c_uint64)

    def cuStreamGetId(self, stream: int, out: int, *_: int) -> None:
        _put(out, stream, ctypes.c_uint64)

    def cuStreamIsCapturing(self, _stream: int, out: int, *_: int) -> None:
        _put(out, 0, ctypes.c_int)

    def cuStreamCreate(self, out: int, *_: int) -> None:
        self._handle(out)

    cuEventCreate = cuStreamCreate

    def cuEventElapsedTime(self, out: int, *_: int) -> None:
        _put(out, 1.0, ctypes.c_float)

    def cuGetErrorString(self, _code: int, out: int, *_: int) -> None:
        _put(out, ctypes.addressof(self._message))

    def cuMemAlloc(self, out: int, nbytes: int, *_: int) -> None:
        memory = np.zeros(-(-nbytes // 256) * 32, np.int64)
        self._memory[memory.ctypes.data] = memory
        _put(out, memory.ctypes.data)

    cuMemAllocHost = cuMemAlloc

    def cuMemFree(self, address: int, *_: int) -> None:
        self._memory.pop(address, None)

    cuMemFreeHost = cuMemFree

    def cuMemcpyHtoDAsync(self, target: int, source: int, nbytes: int, *_: int) -> None:
        ctypes.memmove(target, source, nbytes)

    def cuLibraryLoadData(self, out: int, code: int, *_: int) -> None:
        if ctypes.string_at(code, len(_MAGIC)) != _MAGIC:
            raise UsageError("a cubin cannot run on a CPU: only kernels that this process compiles can")
        start = code + len(_MAGIC)
        size = int.from_bytes(ctypes.string_at(start, 8), "little")
        self._libraries[self._handle(out)] = ctypes.string_at(start + 8, size)

    def cuLibraryGetKernel(self, out: int, library: int, name: int, *_: int) -> None:
        self._kernels[self._handle(out)] = self._libraries[library], ctypes.string_at(name).decode()

    def cuKernelGetFunction(self, out: int, kernel: int, *_: int) -> None:
        _put(out, kernel)

    def cuKernelGetAttribute(self, out: int, *_: int) -> None:
        _put(out, 0, ctypes.c_int)

    def cuLaunchKernelEx(self, config: int, kernel: int, params: int, *_: int) -> None:
        c = LaunchConfig.from_address(config)
        self._launch(kernel, (c.gx, c.gy, c.gz), params)

    def cuLaunchKernel(self, kernel: int, gx: int, gy: int, gz: int, *rest: int) -> None:
        self._launch(kernel, (gx & _32, gy & _32, gz & _32), rest[5])  # behind the block, shared memory and the stream

    def _launch(self, kernel: int, grid: tuple[int, int, int], params: int) -> None:
        bytecode, symbol = self._kernels[kernel]
        own = [Storage(address, memory.nbytes, memory) for address, memory in self._memory.items()]
        self.launches += 1
        launch(bytecode, symbol, grid, params, self.storages.placed(own), self.settings)


_Function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * _MOST_ARGUMENTS)
_GetAddress = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p
)


def _put(place: int, value: float, kind: Any = ctypes.c_void_p) -> None:
    kind.from_address(place).value = value


def _nothing(*_: int) -> None:
    """Succeeds."""


def _refusal(name: str) -> Callable[..., None]:
    def refuse(*_: int) -> None:
        what = "CUDA graphs cannot be captured" if name.startswith("cuGraph") else f"{name} is not emulated"
        raise UsageError(f"{what} on a CPU", hint="run this on a GPU")

    return refuse


def _after_python() -> int:
    """A function of C that is also called when Python has ended, and does nothing: an attribute of a mutex is destroyed
    without a trace on Linux."""
    function = ctypes.CDLL(None).pthread_mutexattr_destroy
    return ctypes.cast(function, ctypes.c_void_p).value or 0
