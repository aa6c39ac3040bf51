"""A launch on a GPU, on the stream on which the arrays' library works."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toolchain.contract.artifact import TensorMap
from toolchain.contract.launching import check_grid
from toolchain.contract.tma import TMADescriptor
from toolchain.errors import LaunchError, UsageError
from toolchain.runtime.modules import get_function, load_module
from toolchain.runtime.packing import Packed, number
from toolchain.runtime.tensor_maps import describe

from ..arguments.arrays import Array
from ..arguments.binding import Argument, each, flatten
from .code import Code

if TYPE_CHECKING:
    from toolchain.runtime.buffer import Allocation
    from toolchain.runtime.cuda import CudaExecutor


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
    target = code.target_for(gpu.gpu)
    image, doing = code.cubin(target), f"loading {code.symbol} on {gpu.name}"
    with context_kept(gpu):
        handle = get_function(gpu, load_module(gpu, image, doing, target), code.symbol, code.form.shared_bytes, doing)
    return Function(gpu, handle)


def device_of(symbol: str, arguments: Sequence[Argument], default: int) -> int:
    """The GPU that the arrays are on. Raises LaunchError where they are on several."""
    placed = [a for a in each(arguments) if a.array is not None and a.array.device is not None]
    devices = {a.array.device: a.parameter.name for a in placed if a.array is not None}
    if len(devices) > 1:
        where = ", ".join(f"{name} on cuda:{device}" for device, name in devices.items())
        raise LaunchError(f"{symbol}: its arrays are on several GPUs: {where}")
    return next((device for device in devices if device is not None), default)


def stream_of(arguments: Sequence[Argument], gpu: CudaExecutor) -> int:
    """The stream to launch on: that of the first array whose library names one, PyTorch's before others', else ours."""
    arrays = [a.array for a in each(arguments) if a.array is not None and a.array.stream is not None]
    first = next((a for a in arrays if a.torch), arrays[0] if arrays else None)
    if first is not None and first.stream is not None:
        return first.stream
    assert gpu.stream is not None
    return gpu.stream


def launch(code: Code, function: Function, arguments: Sequence[Argument], grid: tuple[int, int, int]) -> None:
    """Launches on the arrays' stream. Arrays in the host's memory are copied to the GPU, and those that the kernel
    writes back; the call then returns when that is done, as with a list of arrays.

    Raises LaunchError and DeviceError."""
    if 0 in grid:
        return
    check_grid(code.symbol, grid)
    for argument in each(arguments):
        if (array := argument.array) is not None:
            code.form.check_reach(code.symbol, argument.parameter.name, array.shape, array.strides)
    gpu = function.gpu
    stream = stream_of(arguments, gpu)
    with ExitStack() as ends, context_kept(gpu):
        addresses = _place(list(each(arguments)), gpu, stream, ends)
        addresses.update(_tables(arguments, addresses, gpu, stream, ends))
        slots = [_parameter(dtype, value, addresses) for dtype, value in flatten(arguments)]
        slots += [gpu.encode(tensor_map(code, made, arguments, addresses)) for made in code.form.maps]
        packed = Packed(slots)
        config = gpu.launch_config(grid, code.form.block, code.form.shared_bytes, stream=stream)
        gpu.launch(config, (function.handle, packed.address), f"{code.symbol} with grid {grid}")


def tensor_map(
    code: Code, made: TensorMap, arguments: Sequence[Argument], addresses: Mapping[object, int]
) -> TMADescriptor:
    """The descriptor of an array that a kernel reads or writes through TMA. Raises LaunchError for one that TMA cannot
    read, with the reason."""
    argument = next(a for a in arguments if a.parameter.name == made.array)
    array = argument.array
    assert array is not None
    strides = [int(number) * array.itemsize for _, number in argument.numbers[len(array.shape) :]]
    address = addresses[array.device is None, array.place]
    try:
        return describe(made, argument.parameter.dtype, address, array.shape, strides)
    except UsageError as error:
        raise LaunchError(f"{code.symbol}: {made.array} is {array}: {error.args[0]}") from error


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
                gpu.order(array.stream, stream)
                ends.callback(gpu.order, stream, array.stream)
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


def _tables(
    arguments: Sequence[Argument], addresses: Mapping[object, int], gpu: CudaExecutor, stream: int, ends: ExitStack
) -> dict[object, int]:
    """The addresses of the tables of lists, by the names of their parameters."""
    found: dict[object, int] = {}
    for argument in arguments:
        if not argument.items:
            continue
        rows = argument.table(lambda array: addresses[array.device is None, array.place])
        table = gpu.allocate(rows.nbytes)
        ends.callback(table.free)
        found[argument.parameter.name] = table.address
        gpu.run("cuMemcpyHtoDAsync", table.address, rows.ctypes.data, rows.nbytes, gpu.stream)
        gpu.synchronize()
    if found:  # no table is freed before the kernel has read it
        ends.callback(lambda: gpu.wait("cuStreamSynchronize", gpu.driver.CUstream(stream)))
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


@contextmanager
def context_kept(gpu: CudaExecutor) -> Generator[None]:
    """The thread has the CUDA context of before again in the end: another library may count on it."""
    status, before = gpu.driver.cuCtxGetCurrent()
    try:
        yield
    finally:
        if not int(status) and int(before):
            gpu.driver.cuCtxSetCurrent(before)


def _parameter(dtype: str, value: Array | Argument | float, addresses: Mapping[object, int]) -> bytes:
    if isinstance(value, Argument):
        return addresses[value.parameter.name].to_bytes(8, "little")
    if isinstance(value, Array):
        return addresses[value.device is None, value.place].to_bytes(8, "little")
    return number(dtype, value)
