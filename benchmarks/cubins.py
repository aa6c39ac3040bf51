"""Kernels of cubins on PyTorch's stream, and the times of several sides in turn."""

from __future__ import annotations

import ctypes
import functools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolchain.contract.tma import ALIGNED, TMADescriptor
from toolchain.errors import DeviceError
from toolchain.runtime.driver import load
from toolchain.runtime.tma import encode

from .peers.pytorch import Tensor, torch

ROUNDS, WARM_UP, LAUNCHES = 15, 2, 10


class Function:
    """A kernel of a cubin on PyTorch's GPU. `shared`: bytes of dynamic shared memory. Raises DeviceError."""

    def __init__(self, cubin: bytes, symbol: str, shared: int = 0) -> None:
        torch.zeros(1, device="cuda")  # makes the context
        self.symbol, self.shared, self.driver = symbol, shared, load()
        module = self._ok(self.driver.cuModuleLoadData(cubin))
        self._function = self._ok(self.driver.cuModuleGetFunction(module, symbol.encode()))
        if shared:
            limit = self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._ok(self.driver.cuFuncSetAttribute(self._function, limit, shared))

    def bind(self, grid: Sequence[int], threads: int, arguments: Sequence[Any]) -> Callable[[], None]:
        """A function that launches the kernel. `grid`: three numbers of blocks; `arguments`: ctypes values."""
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))

        def launch(_kept: Any) -> None:
            stream = torch.cuda.current_stream().cuda_stream
            self._ok(
                self.driver.cuLaunchKernel(
                    self._function, *grid, threads, 1, 1, self.shared, stream, ctypes.addressof(pointers), 0
                )
            )  # fmt: skip

        return functools.partial(launch, (arguments, pointers))

    def tensor_map(self, dtype: str, tensor: Tensor, row: Mapping[str, Any]) -> Any:
        """The argument for a TMA descriptor of a tensor, in memory aligned as the driver wants it. `row`: its box in
        the order of the tensor's dimensions, its swizzle and its promotion to L2."""
        strides = tuple(stride * tensor.element_size() for stride in reversed(tensor.stride()[:-1]))
        descriptor = TMADescriptor(
            dtype, tensor.data_ptr(), tuple(reversed(tensor.shape)), strides, tuple(reversed(row["box"])),
            swizzle=row["swizzle"], l2_promotion=row["l2_promotion"],
        )  # fmt: skip
        made = encode(descriptor, self.driver)
        room = bytearray(len(made) + ALIGNED)
        start = -ctypes.addressof(ctypes.c_char.from_buffer(room)) % ALIGNED
        room[start : start + len(made)] = made
        return (ctypes.c_char * len(made)).from_buffer(room, start)

    def _ok(self, result: tuple[Any, ...]) -> Any:
        if result[0] != 0:
            raise DeviceError(f"{self.symbol}: the CUDA driver says {result[0]!s}")
        return result[1] if len(result) == 2 else None


def passed(*tensors: Tensor) -> list[Any]:
    """The arguments for arrays in cuTile's calling convention: each one's pointer, sizes and strides."""
    made: list[Any] = []
    for tensor in tensors:
        made += [ctypes.c_uint64(tensor.data_ptr()), *map(ctypes.c_int, (*tensor.shape, *tensor.stride()))]
    return made


def processors() -> int:
    """The multiprocessors of PyTorch's GPU."""
    return torch.cuda.get_device_properties(0).multi_processor_count


def times_in_turn(sides: Mapping[str, Callable[[], None]]) -> dict[str, list[float]]:
    """The microseconds of a launch of each side in each round. A round runs a CUDA graph of each side, in an order of
    its own: at its limit of power a GPU's clock depends on the work before."""
    graphs: dict[str, Any] = {}
    for label, launch in sides.items():
        launch()
        torch.cuda.synchronize()
        graphs[label] = graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(LAUNCHES):
                launch()
    times: dict[str, list[float]] = {label: [] for label in sides}
    draw, order = random.Random(0), list(sides)
    for number in range(-WARM_UP, ROUNDS):
        draw.shuffle(order)
        for label in order:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graphs[label].replay()
            end.record()
            end.synchronize()
            if number >= 0:
                times[label].append(start.elapsed_time(end) / LAUNCHES * 1e3)
    return times
