"""A launch on a GPU, on the stream on which the arrays' library works."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toolchain.contract.artifact import TensorMap
from toolchain.contract.tma import ALIGNED, TMADescriptor
from toolchain.errors import LaunchError, UsageError
from toolchain.runtime.driver import check_grid

from .arrays import Array
from .binding import FLOATS, Argument, flatten
from .code import Code

if TYPE_CHECKING:
    from toolchain.runtime.buffer import Allocation
    from toolchain.runtime.cuda import CudaExecutor

_SHARED_UNASKED = 48 * 1024  # bytes of dynamic shared memory that every kernel may have
_INTEGERS = {"i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q", "i1": "<B"}


@dataclass(frozen=True)
class Function:
    """A kernel that was loaded to a GPU."""

    gpu: CudaExecutor
    handle: Any


def executor(device: int) -> CudaExecutor:
    """The executor that all launches on a GPU share. Raises NoGPU and DriverTooOld."""
    from cute_runtime.device import executor as shared  # imported here because it needs a driver

    return shared(device)


def load(code: Code, device: int) -> Function:
    """Loads an entry's cubin, which is compiled first where it is not. Raises ToolchainError, WrongTarget and
    BundleError."""
    gpu = executor(device)
    image = code.cubin(code.target_for(gpu.gpu))
    with context_kept(gpu):
        module = gpu.ask("cuModuleLoadData", image, doing=f"loading {code.symbol} on {gpu.name}")
        gpu.undo("cuModuleUnload", module)
        handle = gpu.ask("cuModuleGetFunction", module, code.symbol.encode(), doing=f"looking for {code.symbol}")
        if code.form.shared_bytes > _SHARED_UNASKED:
            limit = gpu.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            gpu.ask("cuFuncSetAttribute", handle, limit, code.form.shared_bytes, doing=f"loading {code.symbol}")
    return Function(gpu, handle)


def device_of(symbol: str, arguments: Sequence[Argument], default: int) -> int:
    """The GPU that the arrays are on. Raises LaunchError where they are on several."""
    placed = [a for a in arguments if a.array is not None and a.array.device is not None]
    devices = {a.array.device: a.parameter.name for a in placed if a.array is not None}
    if len(devices) > 1:
        where = ", ".join(f"{name} on cuda:{device}" for device, name in devices.items())
        raise LaunchError(f"{symbol}: its arrays are on several GPUs: {where}")
    return next((device for device in devices if device is not None), default)


def stream_of(arguments: Sequence[Argument], gpu: CudaExecutor) -> int:
    """The stream to launch on: that of the first array whose library names one, PyTorch's before others', else ours."""
    arrays = [a.array for a in arguments if a.array is not None and a.array.stream is not None]
    first = next((a for a in arrays if a.torch), arrays[0] if arrays else None)
    if first is not None and first.stream is not None:
        return first.stream
    assert gpu.stream is not None
    return gpu.stream


def launch(code: Code, function: Function, arguments: Sequence[Argument], grid: tuple[int, int, int]) -> None:
    """Launches on the arrays' stream. Arrays in the host's memory are copied to the GPU, and those that the kernel
    writes back; the call then returns when that is done. Raises LaunchError and DeviceError."""
    if 0 in grid:
        return
    check_grid(code.symbol, grid)
    for argument in arguments:
        if (array := argument.array) is not None:
            code.form.check_reach(code.symbol, argument.parameter.name, array.shape, array.strides)
    gpu = function.gpu
    stream = stream_of(arguments, gpu)
    with ExitStack() as ends, context_kept(gpu):
        addresses = _place(arguments, gpu, stream, ends)
        content = [_packed(dtype, value, addresses) for dtype, value in flatten(arguments)]
        content += [gpu.encode(tensor_map(code, made, arguments, addresses)) for made in code.form.maps]
        memory = [ctypes.create_string_buffer(one, len(one) + ALIGNED) for one in content]
        table = (ctypes.c_void_p * len(memory))(*map(_aligned, memory))
        gpu.run(
            "cuLaunchKernel", function.handle, *grid, *code.form.block, code.form.shared_bytes,
            gpu.driver.CUstream(stream), ctypes.addressof(table), 0, doing=f"launching {code.symbol} with grid {grid}",
        )  # fmt: skip


def tensor_map(
    code: Code, made: TensorMap, arguments: Sequence[Argument], addresses: Mapping[object, int]
) -> TMADescriptor:
    """The descriptor of an array that a kernel reads or writes through TMA. Raises LaunchError for one that TMA cannot
    read, with the reason."""
    argument = next(a for a in arguments if a.parameter.name == made.array)
    array = argument.array
    assert array is not None
    strides = [int(number) * array.itemsize for _, number in argument.numbers[len(array.shape) :]]
    try:
        return TMADescriptor(
            argument.parameter.dtype, addresses[array.device is None, array.place], array.shape[::-1],
            tuple(strides[-2::-1]), made.box[::-1], swizzle=made.swizzle, l2_promotion=made.l2_promotion,
        )  # fmt: skip
    except UsageError as error:
        raise LaunchError(f"{code.symbol}: {made.array} is {array}: {error.args[0]}") from error


def _aligned(memory: ctypes.Array[ctypes.c_char]) -> int:
    """The first address in a parameter's memory that is aligned as a tensor map must be; the content is moved there."""
    start = ctypes.addressof(memory)
    found = start + -start % ALIGNED
    ctypes.memmove(found, start, len(memory) - ALIGNED)
    return found


def _place(arguments: Sequence[Argument], gpu: CudaExecutor, stream: int, ends: ExitStack) -> dict[object, int]:
    """The address of each array, ready on `stream`, by its place. What has to follow the launch is added to `ends`."""
    found: dict[object, int] = {}
    copies: list[tuple[Array, Allocation, bool]] = []
    waits: Callable[[], None] | None = None
    for argument in arguments:
        array = argument.array
        if array is None or (array.device is None, array.place) in found:
            continue
        if array.release is not None:
            ends.callback(array.release)
        if array.device is not None:
            found[False, array.place] = array.address
            if array.stream is not None and array.stream != stream:
                _order(gpu, array.stream, stream)
                ends.callback(_order, gpu, stream, array.stream)
        else:
            whole = gpu.allocate(array.itemsize * int(np.prod(array.shape)))
            found[True, array.place] = whole.address
            wanted = any(a.parameter.written for a in arguments if a.array is not None and a.array.place == array.place)
            copies.append((array, whole, wanted))
        if array.settled:
            waits = lambda: gpu.wait("cuStreamSynchronize", gpu.driver.CUstream(stream))  # noqa: E731
    if waits is not None:
        ends.callback(waits)
    if copies:
        _to_device(copies, gpu)
        ends.callback(_to_host, copies, gpu, stream)
    return found


def _to_device(copies: Sequence[tuple[Array, Allocation, bool]], gpu: CudaExecutor) -> None:
    for array, whole, _ in copies:
        assert array.host is not None
        content = np.ascontiguousarray(array.host)
        if whole.nbytes:
            gpu.run("cuMemcpyHtoDAsync", whole.address, content.ctypes.data, whole.nbytes, gpu.stream)
    gpu.synchronize()  # the host's memory may change from here on, and the launch may be on another stream


def _to_host(copies: Sequence[tuple[Array, Allocation, bool]], gpu: CudaExecutor, stream: int) -> None:
    try:
        gpu.wait("cuStreamSynchronize", gpu.driver.CUstream(stream), doing="waiting for a launch on arrays of the host")
        for array, whole, written in copies:
            if written and whole.nbytes:
                assert array.host is not None
                direct = array.host.flags.c_contiguous
                content = array.host if direct else np.empty(array.shape, array.host.dtype)
                gpu.run("cuMemcpyDtoHAsync", content.ctypes.data, whole.address, whole.nbytes, gpu.stream)
                gpu.synchronize()
                if not direct:
                    array.host[...] = content
    finally:
        for _, whole, _ in copies:
            whole.free()


def _order(gpu: CudaExecutor, first: int, then: int) -> None:
    """What is launched on `then` from now on waits for what is on `first`."""
    event = gpu.run("cuEventCreate", gpu.driver.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
    gpu.run("cuEventRecord", event, gpu.driver.CUstream(first))
    gpu.run("cuStreamWaitEvent", gpu.driver.CUstream(then), event, 0)
    gpu.run("cuEventDestroy", event)


@contextmanager
def context_kept(gpu: CudaExecutor) -> Generator[None]:
    """The thread has the CUDA context of before again in the end: another library may count on it."""
    status, before = gpu.driver.cuCtxGetCurrent()
    try:
        yield
    finally:
        if not int(status) and int(before):
            gpu.driver.cuCtxSetCurrent(before)


def _packed(dtype: str, value: Array | int | float, addresses: dict[object, int]) -> bytes:
    if isinstance(value, Array):
        return struct.pack("<Q", addresses[value.device is None, value.place])
    if dtype in _INTEGERS:
        return struct.pack(_INTEGERS[dtype], value)
    return np.array(value).astype(FLOATS[dtype]).tobytes()
