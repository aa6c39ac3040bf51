"""Which GPUs reach each other's memory, and through what: for `tilestack doctor`."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from ..driver import check, gpus, load


@dataclass(frozen=True)
class Link:
    """What the first GPU can do with the second one's memory. `atomics`: with its flags too, which ranks need."""

    one: int
    other: int
    access: bool
    atomics: bool


def links() -> list[Link]:
    """Those of every two GPUs of this machine, both ways. Raises DeviceError."""
    driver = load()
    kind = driver.CUdevice_P2PAttribute
    wanted = (kind.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, kind.CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)

    def ask(attribute: Any, one: int, other: int) -> bool:
        return bool(check("cuDeviceGetP2PAttribute", driver.cuDeviceGetP2PAttribute(attribute, one, other)))

    numbers = [gpu.index for gpu in gpus()]
    return [
        Link(one, other, *(ask(attribute, one, other) for attribute in wanted))
        for one in numbers for other in numbers if one != other
    ]  # fmt: skip


def nvlinks() -> dict[int, int]:
    """How many NVLinks of each GPU are up, as NVML says, by our number. Raises NoNVML where it cannot be asked."""
    driver = load()
    try:
        nvml = importlib.import_module("cuda.bindings.nvml")
        nvml.init_v2()
    except (ImportError, RuntimeError) as error:  # bindings that are older, or no library
        raise NoNVML(f"NVML cannot be asked: {error}") from error
    try:
        return {gpu.index: _up(nvml, _place(driver, gpu.index)) for gpu in gpus()}
    finally:
        nvml.shutdown()


class NoNVML(Exception):
    """NVML is not there."""


def _place(driver: Any, index: int) -> str:
    device = check("cuDeviceGet", driver.cuDeviceGet(index))
    name: bytes = check("cuDeviceGetPCIBusId", driver.cuDeviceGetPCIBusId(32, device))
    return name.split(b"\0", 1)[0].decode()


def _up(nvml: Any, place: str) -> int:
    device = nvml.device_get_handle_by_pci_bus_id_v2(place)
    count = 0
    for link in range(int(nvml.NVLINK_MAX_LINKS)):
        try:
            count += int(nvml.device_get_nvlink_state(device, link)) == 1
        except nvml.NvmlError:  # a link that this GPU does not have
            break
    return count
