"""The driver's calls that copy or fill a part of a buffer: in one piece, or rows with gaps between them."""

from __future__ import annotations

from typing import Any

from .layout import Chunk

Call = tuple[str, tuple[Any, ...]]  # of the driver API, without the stream, which comes last


def from_host(driver: Any, device: int, host: int, chunk: Chunk) -> Call:
    """Copies a chunk, which lies without gaps at `host`, to the address of a buffer."""
    target, source = device + chunk.offset, host + chunk.at
    if chunk.pitch == chunk.width:
        return "cuMemcpyHtoDAsync", (target, source, chunk.rows * chunk.width)
    copy, kinds = _rows(driver, chunk), driver.CUmemorytype
    copy.srcMemoryType, copy.srcHost, copy.srcPitch = kinds.CU_MEMORYTYPE_HOST, source, chunk.width
    copy.dstMemoryType, copy.dstDevice, copy.dstPitch = kinds.CU_MEMORYTYPE_DEVICE, target, chunk.pitch
    return "cuMemcpy2DAsync", (copy,)


def to_host(driver: Any, host: int, device: int, chunk: Chunk) -> Call:
    """The other way."""
    target, source = host + chunk.at, device + chunk.offset
    if chunk.pitch == chunk.width:
        return "cuMemcpyDtoHAsync", (target, source, chunk.rows * chunk.width)
    copy, kinds = _rows(driver, chunk), driver.CUmemorytype
    copy.srcMemoryType, copy.srcDevice, copy.srcPitch = kinds.CU_MEMORYTYPE_DEVICE, source, chunk.pitch
    copy.dstMemoryType, copy.dstHost, copy.dstPitch = kinds.CU_MEMORYTYPE_HOST, target, chunk.width
    return "cuMemcpy2DAsync", (copy,)


def fill(device: int, chunk: Chunk, itemsize: int, pattern: int) -> Call:
    """Writes a pattern of `itemsize` bytes to every element of a chunk."""
    place, bits, width = device + chunk.offset, 8 * itemsize, chunk.width // itemsize
    if chunk.pitch == chunk.width:
        return f"cuMemsetD{bits}Async", (place, pattern, chunk.rows * width)
    return f"cuMemsetD2D{bits}Async", (place, chunk.pitch, pattern, width, chunk.rows)


def _rows(driver: Any, chunk: Chunk) -> Any:
    copy = driver.CUDA_MEMCPY2D()
    copy.WidthInBytes, copy.Height = chunk.width, chunk.rows
    return copy
