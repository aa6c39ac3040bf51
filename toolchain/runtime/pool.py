"""The memory of a GPU that an executor takes: a stream-ordered pool of its own."""

from __future__ import annotations

from typing import Any, Protocol

from ..errors import OutOfMemory
from .context import Context
from .driver import out_of_memory


class Device(Protocol):
    """What the pool needs of its executor."""

    name: str

    def run(self, call: str, *args: Any, doing: str = "") -> Any: ...


class Pool:
    """The device's default pool belongs to the whole process and stays as it is. By default a pool returns freed memory
    to the system at each synchronisation, which every step would pay for: this one keeps it. The caller holds the
    executor's lock."""

    def __init__(self, context: Context, index: int) -> None:
        driver = context.driver
        place = driver.CUmemLocation()
        place.type, place.id = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, index
        properties = driver.CUmemPoolProps()
        properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.handleTypes = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE
        properties.location = place
        self._context = context
        self._handle = context.ask("cuMemPoolCreate", properties)
        context.undo("cuMemPoolDestroy", self._handle)
        threshold = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        context.ask("cuMemPoolSetAttribute", self._handle, threshold, driver.cuuint64_t(2**64 - 1))
        self._held: set[int] = set()  # the addresses that were not given back

    def take(self, device: Device, nbytes: int, stream: Any) -> int:
        """The address of new memory, in the order of a stream. Raises OutOfMemory that says how much there is."""
        try:
            address = int(device.run("cuMemAllocFromPoolAsync", max(nbytes, 1), self._handle, stream))
        except OutOfMemory as error:
            free, total = device.run("cuMemGetInfo")
            raise out_of_memory(nbytes, free, total, device.name) from error
        self._held.add(address)
        return address

    def give_back(self, device: Device, address: int, stream: Any) -> None:
        """In the order of a stream."""
        self._held.discard(address)
        device.run("cuMemFreeAsync", address, stream)

    def give_all_back(self, stream: Any) -> None:
        """What buffers still have that are being collected together with their executor."""
        for address in self._held:
            self._context.destroy("cuMemFreeAsync", address, stream)
        self._held.clear()

    def used_bytes(self, device: Device) -> int:
        """What is allocated now."""
        return self._ask(device, "CU_MEMPOOL_ATTR_USED_MEM_CURRENT")

    def most_used_bytes(self, device: Device, *, reset: bool) -> int:
        """The most that was allocated at once; `reset` begins to count anew."""
        name = "CU_MEMPOOL_ATTR_USED_MEM_HIGH"
        found = self._ask(device, name)
        if reset:
            driver = self._context.driver
            attribute = getattr(driver.CUmemPool_attribute, name)
            device.run("cuMemPoolSetAttribute", self._handle, attribute, driver.cuuint64_t(0))
        return found

    def _ask(self, device: Device, name: str) -> int:
        attribute = getattr(self._context.driver.CUmemPool_attribute, name)
        return int(device.run("cuMemPoolGetAttribute", self._handle, attribute))
