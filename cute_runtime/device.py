"""The GPUs of this machine, and the executor of each."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolchain.errors import NoGPU
from toolchain.runtime.driver import check, describe, load, offered

if TYPE_CHECKING:
    from toolchain.runtime.cuda import CudaExecutor


@dataclass(frozen=True)
class DeviceInfo:
    """A GPU. `arch`: what to compile for, such as "sm_90" (the suffix of sm_90a is the writer's choice). `memory` and
    `shared_memory` (the most that a block may have) in bytes. `cuda`: the version that the driver offers."""

    index: int
    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    memory: int
    shared_memory: int
    cuda: tuple[int, int]

    @property
    def arch(self) -> str:
        major, minor = self.compute_capability
        return f"sm_{major}{minor}"


def get_device_info(device_id: int = 0) -> DeviceInfo:
    """The GPU of that number, as the driver counts. Raises NoGPU and DriverTooOld."""
    driver = load()
    count: int = check("cuDeviceGetCount", driver.cuDeviceGetCount())
    if not 0 <= device_id < count:
        raise NoGPU(f"there is no cuda:{device_id}: the driver lists {count} GPU(s)", hint="see `nvidia-smi -L`")
    gpu = describe(driver, device_id)
    device = check("cuDeviceGet", driver.cuDeviceGet(device_id))
    which = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    shared: int = check("cuDeviceGetAttribute", driver.cuDeviceGetAttribute(which, device))
    return DeviceInfo(device_id, gpu.name, gpu.compute_capability, gpu.sms, gpu.memory, shared, offered(driver))


@functools.cache
def executor(device_id: int = 0) -> CudaExecutor:
    """The executor that kernels and buffers of a GPU share: one stream, on which all of them run in order."""
    from toolchain.runtime.cuda import CudaExecutor  # imported here because it needs cuda-bindings

    return CudaExecutor(device_id)
