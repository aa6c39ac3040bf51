"""Memory of several processes of one host in one range of addresses: what stands for peer memory on the CPU."""

from __future__ import annotations

import ctypes
import mmap
import os

from ..buffer import Allocation
from ..cpu import CpuExecutor
from .world import LOADING_S, World

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FIXED = 0x10  # MAP_FIXED of Linux
_FAILED = ctypes.c_void_p(-1).value


def share_memory(executor: CpuExecutor, nbytes: int, world: World) -> Allocation:
    """`nbytes`, whole pages, of each process, one behind the other in one range of addresses."""
    own = os.memfd_create("tilestack")
    try:
        os.ftruncate(own, nbytes)
        reply = world.meet(f"{nbytes} bytes of each rank", descriptor=own, limit_s=LOADING_S)
    finally:
        os.close(own)
    total = nbytes * world.ranks
    address = _map(None, total, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
    for rank, descriptor in enumerate(reply.descriptors):
        _map(address + rank * nbytes, nbytes, mmap.MAP_SHARED | _FIXED, descriptor)
        os.close(descriptor)
    return executor.adopt(address, total, lambda: _libc.munmap(address, total))


def _map(address: int | None, nbytes: int, flags: int, descriptor: int) -> int:
    made = _libc.mmap(address, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0)
    if made is None or made == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, f"mapping {nbytes} bytes that processes share: {os.strerror(code)}")
    return int(made)
