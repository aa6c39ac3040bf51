"""A GPU for the Python API: the fake driver of the executor's tests, with memory and kernels of given parameters."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from cuda.bindings import driver

from tests.unit.toolchain.runtime.fake_driver import FakeDriver


class FakeGPU(FakeDriver):
    """Memory is the host's. Every kernel has parameters of `sizes` bytes; `launched` has the bytes of each launch's.
    `streams`: each launch's. `kernel`: what a launch runs, with grid, block and these bytes."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.sizes = sizes
        self.launched: list[tuple[tuple[int, ...], list[bytes]]] = []
        self.streams: list[int] = []
        self.kernel: Callable[[Sequence[int], Sequence[int], list[bytes]], None] = lambda *_: None
        self.boxes: list[tuple[int, ...]] = []  # of the TMA descriptors that were made
        self.mapped: list[str] = []  # the dtypes of these
        self._memory: dict[int, Any] = {}

    def called(self, name: str, args: tuple[Any, ...]) -> tuple[Any, Any]:
        status, value = super().called(name, args)
        if int(status):
            return status, value
        if name == "cuMemAllocFromPoolAsync":
            memory = ctypes.create_string_buffer(args[0])
            self._memory[ctypes.addressof(memory)] = memory
            self.made["cuMemFreeAsync"][-1] = ctypes.addressof(memory)
            return status, ctypes.addressof(memory)
        if name in ("cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"):
            ctypes.memmove(int(args[0]), int(args[1]), args[2])
        if name == "cuLaunchKernelEx":
            config, _, parameters, _ = args
            table = (ctypes.c_void_p * len(self.sizes)).from_address(parameters)
            found = [ctypes.string_at(place or 0, size) for place, size in zip(table, self.sizes, strict=True)]
            grid, block = (tuple(getattr(config, f"{of}Dim{axis}") for axis in "XYZ") for of in ("grid", "block"))
            self.launched.append(((*grid, *block, config.sharedMemBytes), found))
            self.streams.append(int(config.hStream))
            self.kernel(grid, block, found)
        return status, value

    def cuFuncGetParamInfo(self, _: Any, index: int) -> tuple[Any, int, int]:  # noqa: N802 - the driver's name
        if index < len(self.sizes):
            return driver.CUresult.CUDA_SUCCESS, 0, self.sizes[index]
        return driver.CUresult.CUDA_ERROR_INVALID_VALUE, 0, 0

    def cuTensorMapEncodeTiled(self, *args: Any) -> tuple[Any, Any]:  # noqa: N802 - the driver's name
        self.boxes.append(tuple(map(int, args[5])))
        self.mapped.append(args[0].name.rpartition("_")[2])
        made = driver.CUtensorMap()
        ctypes.memset(made.getPtr(), int(args[1]), 128)  # the rank
        return driver.CUresult.CUDA_SUCCESS, made
