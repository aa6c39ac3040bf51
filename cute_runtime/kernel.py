"""Kernel: a kernel of a cubin or of PTX, and its launches."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from toolchain.contract.im2col import Im2colDescriptor
from toolchain.contract.launching import check_grid
from toolchain.contract.tma import TMADescriptor
from toolchain.errors import LaunchError, UsageError
from toolchain.runtime.modules import SHARED_UNASKED, allow_shared, get_function, load_module
from toolchain.runtime.packing import Packed
from toolchain.runtime.tma import encode

from .buffer import DeviceBuffer
from .device import executor

_MAX_THREADS = 1024
_FLOATS = {4: "<f", 8: "<d"}


@dataclass
class _Arguments:
    """The bytes of each parameter; `after`: what to do once the kernel was launched; `keep`: what must live until
    then."""

    parameters: list[bytes] = field(default_factory=list[bytes])
    after: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    keep: list[object] = field(default_factory=list[object])


class Kernel:
    """Loads code for a GPU and launches one kernel of it.

    An argument of `launch` is a DeviceBuffer or an array of another library on this GPU (`__cuda_array_interface__`,
    DLPack), which is passed as its address; a numpy array, which is copied to the GPU and back again; a TMADescriptor;
    a number, which gets the width of the kernel's parameter; a numpy scalar, whose width must be the parameter's; or an
    address as an int.
    """

    def __init__(self, device_id: int = 0) -> None:
        """Raises NoGPU and DriverTooOld."""
        self.device_id = device_id
        self._gpu = executor(device_id)
        self._module: Any = None
        self._function: Any = None
        self._sizes: tuple[int, ...] = ()
        self._shared_allowed = SHARED_UNASKED
        self.name = ""

    def load_cubin(self, cubin: str | Path | bytes) -> Kernel:
        """Loads a cubin, from its file or its bytes. Raises UsageError, and WrongTarget if this GPU cannot run it."""
        return self._load(_content(cubin), "a cubin")

    def load_ptx(self, ptx: str | Path | bytes) -> Kernel:
        """Loads PTX, which the driver compiles: from a file, or its text as str or bytes."""
        text = ptx.encode() if isinstance(ptx, str) and "\n" in ptx else _content(ptx)
        return self._load(text + b"\0", "PTX")

    def _load(self, image: bytes, what: str) -> Kernel:
        self._module = load_module(self._gpu, image, f"loading {what} on {self._gpu.name}")
        self._function = None
        return self

    def set_kernel(self, name: str) -> Kernel:
        """Chooses a kernel of the code. Raises UsageError if none was loaded, DeviceError if it has no such kernel."""
        if self._module is None:
            raise UsageError(f"no code was loaded to look for {name!r} in", hint="load_cubin() or load_ptx() first")
        function = get_function(self._gpu, self._module, name, 0, f"looking for {name}")
        sizes: list[int] = []
        while True:
            status, _, size = self._gpu.driver.cuFuncGetParamInfo(function, len(sizes))
            if int(status):
                break
            sizes.append(int(size))
        self._function, self._sizes, self.name = function, tuple(sizes), name
        self._shared_allowed = SHARED_UNASKED
        return self

    @property
    def parameter_sizes(self) -> tuple[int, ...]:
        """Bytes of each parameter."""
        return self._sizes

    def launch(self, args: Sequence[Any], grid: tuple[int, ...], block: tuple[int, ...], shared_mem: int = 0) -> None:
        """Launches `grid` blocks of `block` threads with `shared_mem` bytes of dynamic shared memory each. Returns at
        once, unless an argument is a numpy array: then when the results are in it.

        Raises LaunchError for arguments, a grid or a block that do not fit, before anything is launched.
        """
        if self._function is None:
            raise UsageError("no kernel was chosen", hint="set_kernel(name)")
        blocks, threads = _three(grid), _three(block)
        check_grid(self.name, blocks)
        if min(threads) < 1 or threads[0] * threads[1] * threads[2] > _MAX_THREADS or threads[2] > 64:
            raise LaunchError(f"{self.name}: no GPU runs a block of {' x '.join(map(str, threads))} threads")
        packed = self._pack(args)
        if shared_mem > self._shared_allowed:
            doing = f"asking for {shared_mem} bytes of shared memory for {self.name}"
            allow_shared(self._gpu, self._function, shared_mem, doing)
            self._shared_allowed = shared_mem
        memory = Packed(packed.parameters)
        config = self._gpu.launch_config(blocks, threads, shared_mem)
        self._gpu.launch(config, (self._function, memory.address), f"{self.name} with grid {blocks}")
        for then in packed.after:
            then()

    def synchronize(self) -> None:
        """Waits for all launches. Raises the DeviceError of one that failed."""
        self._gpu.synchronize()

    def _pack(self, args: Sequence[Any]) -> _Arguments:
        if len(args) != len(self._sizes):
            raise LaunchError(f"{self.name} has {len(self._sizes)} parameters, but was given {len(args)}")
        packed = _Arguments()
        for index, (value, size) in enumerate(zip(args, self._sizes, strict=True)):
            content = self._parameter(value, size, packed)
            if len(content) != size:
                raise LaunchError(
                    f"{self.name}: parameter {index} has {size} bytes, but was given {len(content)}: {value!r}"
                )
            packed.parameters.append(content)
        return packed

    def _parameter(self, value: Any, size: int, packed: _Arguments) -> bytes:
        if isinstance(value, DeviceBuffer):
            return _address(value.pointer)
        if isinstance(value, TMADescriptor | Im2colDescriptor):
            return encode(value, self._gpu.driver)
        if isinstance(value, np.generic):
            return value.tobytes()
        if isinstance(value, int):
            return self._integer(value, size)
        if isinstance(value, float):
            if size not in _FLOATS:
                hint = "pass a numpy scalar, such as np.float16(0.5)"
                raise LaunchError(f"{self.name}: {value!r} for a parameter of {size} bytes", hint=hint)
            return struct.pack(_FLOATS[size], value)
        if isinstance(value, np.ndarray):
            return self._host(value, packed)
        return self._foreign(value, packed)

    def _integer(self, value: int, size: int) -> bytes:
        bits = 8 * size
        if size not in (1, 2, 4, 8) or not -(2 ** (bits - 1)) <= value < 2**bits:
            raise LaunchError(f"{self.name}: {value} does not fit into a parameter of {size} bytes")
        return (value % 2**bits).to_bytes(size, "little")

    def _host(self, array: np.ndarray[Any, Any], packed: _Arguments) -> bytes:
        buffer = DeviceBuffer.from_numpy(array, self.device_id)
        packed.keep.append(buffer)
        if array.flags.writeable:
            packed.after.append(lambda: buffer.copy_to(array))
        return _address(buffer.pointer)

    def _foreign(self, array: Any, packed: _Arguments) -> bytes:
        row: dict[str, Any] | None = getattr(array, "__cuda_array_interface__", None)
        if row is not None:
            stream = row.get("stream") or 1  # without one the array's owner works on the legacy default stream
            self._gpu.wait_for(stream)
            packed.after.append(lambda: self._gpu.hand_over(stream))
            return _address(row["data"][0])
        if not hasattr(array, "__dlpack__"):
            raise LaunchError(
                f"{self.name}: a {type(array).__name__} cannot be passed to a kernel",
                hint="pass a DeviceBuffer, a numpy array, an array of this GPU, a number or a TMADescriptor",
            )
        buffer = self._gpu.from_dlpack(array)
        packed.keep.append(buffer)
        return _address(buffer.pointer)


def _address(pointer: int) -> bytes:
    return pointer.to_bytes(8, "little")


def _three(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    if not 1 <= len(sizes) <= 3:
        raise LaunchError(f"a grid or block has one to three sizes, not {list(sizes)}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _content(source: str | Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror or error}") from error
