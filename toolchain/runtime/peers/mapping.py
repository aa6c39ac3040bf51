"""Memory of several GPUs in one range of addresses that all reach, by the driver's virtual memory management."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from ...errors import DeviceError, OutOfMemory, UsageError
from ..cuda import CudaExecutor
from ..driver import out_of_memory
from .world import LOADING_S, World


def granularity(devices: Sequence[CudaExecutor]) -> int:
    """Bytes: what is mapped is a multiple."""
    flag = devices[0].driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    return max(int(each.ask("cuMemGetAllocationGranularity", _pinned(each), flag)) for each in devices)


def map_peers(devices: Sequence[CudaExecutor], nbytes: int) -> tuple[int, Callable[[], None]]:
    """`nbytes` of each device's memory, one behind the other: the address, and what gives it all back. Raises
    OutOfMemory, and DeviceError where a device cannot map another one's memory."""
    first, undo = devices[0], ExitStack()
    try:
        total = nbytes * len(devices)
        address = int(first.ask("cuMemAddressReserve", total, 0, 0, 0, doing="reserving addresses for all ranks"))
        undo.callback(first.discard, "cuMemAddressFree", address, total)
        for rank, device in enumerate(devices):
            handle = _create(device, nbytes)
            undo.callback(device.discard, "cuMemRelease", handle)
            device.ask("cuMemMap", address + rank * nbytes, nbytes, 0, handle, 0)
            undo.callback(device.discard, "cuMemUnmap", address + rank * nbytes, nbytes)
        access = [_access(device) for device in {each.gpu.index: each for each in devices}.values()]
        first.ask("cuMemSetAccess", address, total, access, len(access), doing="letting all ranks reach the memory")
    except DeviceError:
        undo.close()
        raise
    return address, undo.close


def map_processes(device: CudaExecutor, nbytes: int, world: World) -> tuple[int, Callable[[], None]]:
    """The same for ranks that are processes: each maps its own device's memory and that of the others. Raises also the
    errors of World.meet."""
    undo = ExitStack()
    kind = device.driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    try:
        handle = _create(device, nbytes)
        undo.callback(device.discard, "cuMemRelease", handle)
        own = int(device.ask("cuMemExportToShareableHandle", handle, kind, 0, doing="sharing memory with processes"))
        try:
            reply = world.meet(f"{nbytes} bytes of each rank", descriptor=own, limit_s=LOADING_S)
        finally:
            os.close(own)
        with ExitStack() as received:
            for descriptor in reply.descriptors:
                received.callback(os.close, descriptor)
            total = nbytes * world.ranks
            address = int(device.ask("cuMemAddressReserve", total, 0, 0, 0, doing="reserving addresses for all ranks"))
            undo.callback(device.discard, "cuMemAddressFree", address, total)
            for rank, descriptor in enumerate(reply.descriptors):
                part = handle
                if rank != world.rank:
                    part = device.ask(
                        "cuMemImportFromShareableHandle", descriptor, kind, doing=f"taking memory of rank {rank}"
                    )
                    undo.callback(device.discard, "cuMemRelease", part)
                device.ask("cuMemMap", address + rank * nbytes, nbytes, 0, part, 0, doing=f"mapping rank {rank}")
                undo.callback(device.discard, "cuMemUnmap", address + rank * nbytes, nbytes)
        device.ask("cuMemSetAccess", address, total, [_access(device)], 1, doing="reaching the memory of all ranks")
    except (DeviceError, UsageError):
        undo.close()
        raise
    return address, undo.close


def _create(device: CudaExecutor, nbytes: int) -> Any:
    try:
        return device.ask("cuMemCreate", nbytes, _pinned(device), 0, doing=f"making memory on {device.name}")
    except OutOfMemory as error:
        free, total = device.ask("cuMemGetInfo")
        raise out_of_memory(nbytes, free, total, device.name) from error


def _place(device: CudaExecutor) -> Any:
    place = device.driver.CUmemLocation()
    place.type, place.id = device.driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, device.gpu.index
    return place


def _pinned(device: CudaExecutor) -> Any:
    properties = device.driver.CUmemAllocationProp()
    properties.type = device.driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location = _place(device)
    # Another process can map it too. Without one this has no effect.
    properties.requestedHandleTypes = device.driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    return properties


def _access(device: CudaExecutor) -> Any:
    found = device.driver.CUmemAccessDesc()
    found.location = _place(device)
    found.flags = device.driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return found
