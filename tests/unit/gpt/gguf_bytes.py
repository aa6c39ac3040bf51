"""GGUF files made byte by byte, so that each of their numbers can be wrong."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14, "BF16": 30}
Tensors = Mapping[str, tuple[str, tuple[int, ...], bytes]]  # kind, shape with rows first, bytes


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def value(given: Any) -> bytes:
    """A value after its type."""
    if isinstance(given, bytes):  # as it shall stand in the file
        return given
    if isinstance(given, bool):
        return struct.pack("<I?", 7, given)
    if isinstance(given, int):
        return struct.pack("<II", 4, given)
    if isinstance(given, float):
        return struct.pack("<If", 6, given)
    if isinstance(given, str):
        return struct.pack("<I", 8) + text(given)
    if isinstance(given, np.ndarray):
        return struct.pack("<IIQ", 9, {"f": 6, "i": 5}[given.dtype.kind], len(given)) + given.tobytes()
    return struct.pack("<IIQ", 9, 8, len(given)) + b"".join(map(text, given))


def row(name: str, kind: int, shape: tuple[int, ...], offset: int) -> bytes:
    """What a header says about a tensor."""
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, offset)


def header(
    keys: Mapping[str, Any], rows: list[bytes], *, version: int = 3, counts: tuple[int, int] | None = None
) -> bytes:
    tensors, count = counts or (len(rows), len(keys))
    return b"".join(
        [b"GGUF", struct.pack("<IQQ", version, tensors, count), *(text(n) + value(v) for n, v in keys.items()), *rows]
    )


def padded(data: bytes, step: int = 32) -> bytes:
    return data + bytes(-len(data) % step)


def whole(keys: Mapping[str, Any], tensors: Tensors) -> bytes:
    rows: list[bytes] = []
    data = b""
    for name, (kind, shape, content) in tensors.items():
        rows.append(row(name, KINDS[kind], shape, len(data)))
        data += padded(content)
    return padded(header(keys, rows)) + data


def plain(tensor: NDArray[Any]) -> tuple[str, tuple[int, ...], bytes]:
    """A tensor in f32."""
    return "F32", tensor.shape, tensor.astype("<f4").tobytes()


def write(path: Path, keys: Mapping[str, Any], tensors: Tensors) -> Path:
    path.write_bytes(whole(keys, tensors))
    return path
