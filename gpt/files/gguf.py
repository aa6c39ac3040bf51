"""GGUF, the file format of ggml's models: its header, and its tensors as numbers.

The format is described in ggml's docs/gguf.md. The header is read here, because the reader in PyPI's `gguf` neither
looks where a file ends nor is frugal: it makes two arrays for each token of a vocabulary. What the bytes of a block of
quantized numbers mean is `gguf`'s to know.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from toolchain.errors import UsageError

Array = NDArray[Any]
VERSIONS = (2, 3)
KINDS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K")  # of tensors, as ggml calls them
MOST_HEADER = 1 << 28  # bytes; that of a vocabulary of 256,000 tokens has about 2^23
MOST_TENSORS = 1 << 16
MOST_DIMENSIONS = 4  # ggml's own limit
ALIGNMENT = 32  # where the file states none
_AT_ONCE = 1 << 22  # numbers that are converted at once
_NUMBERS: Mapping[int, np.dtype[Any]] = {  # the number of a type of values, and the type
    0: np.dtype("u1"), 1: np.dtype("i1"), 2: np.dtype("<u2"), 3: np.dtype("<i2"), 4: np.dtype("<u4"),
    5: np.dtype("<i4"), 6: np.dtype("<f4"), 7: np.dtype("?"), 10: np.dtype("<u8"), 11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_AGAIN = "download it again"


@dataclass(frozen=True)
class Stored:
    """A tensor as the file has it: its shape, rows first as numpy has it, and where its bytes are."""

    name: str
    shape: tuple[int, ...]
    kind: str
    offset: int
    nbytes: int


@dataclass(frozen=True)
class GGUFFile:
    """The header of a file. `keys`: a number, truth value or text, an array of numbers, or a tuple of texts."""

    path: Path
    keys: Mapping[str, object]
    tensors: Mapping[str, Stored]

    def read(self, name: str, dtype: DTypeLike) -> Array:
        """A tensor, its numbers as `dtype`, each rounded once. Beside it no more than a few million numbers are in
        memory. Raises UsageError if the file ends early."""
        stored, gguf = self.tensors[name], _library(self.path)
        kind = gguf.GGMLQuantizationType[stored.kind]
        found = np.empty(stored.shape, dtype)
        flat = found.reshape(-1, stored.shape[-1])  # rows
        row = stored.nbytes // max(len(flat), 1)  # bytes
        step = max(1, _AT_ONCE // stored.shape[-1])
        with self.path.open("rb", buffering=0) as file, np.errstate(all="ignore"):  # check() finds what overflowed
            file.seek(stored.offset)
            for first in range(0, len(flat), step):
                rows = flat[first : first + step]
                packed = np.empty((len(rows), row), np.uint8)
                if file.readinto(packed.data) != packed.nbytes:
                    raise UsageError(f"{self.path} ends within {name}: it is truncated", hint=_AGAIN)
                rows[...] = gguf.dequantize(packed, kind)
        return found


def read_header(path: Path) -> GGUFFile:
    """The keys and the places of the tensors of a file. Raises UsageError for one that is damaged, whose tensors are of
    a kind that is not read, or for another format; what it says it has is compared with its length first."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Header(path, data).read()
    except ValueError as error:  # mmap's, of an empty file
        raise UsageError(f"{path} is empty", hint=_AGAIN) from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error


class _Header:
    """Reads a header from its start to its end. Every length is checked before anything of it is allocated."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path, self._data, self._at = path, data, 0
        self._end = min(len(data), MOST_HEADER)

    def read(self) -> GGUFFile:
        if self._take(4, "the magic number") != b"GGUF":
            raise UsageError(f"{self._path} is not a GGUF file: it does not begin with GGUF")
        if (version := self._number("I", "the version")) not in VERSIONS:
            raise UsageError(f"{self._path} is GGUF of version {version}; versions 2 and 3, little endian, are read")
        # The least that one of them takes: a name's length, then a type and a value, or a shape, a kind and an offset.
        tensors = self._count(8 + 4 + 4 + 8, "tensors")
        count = self._count(8 + 4 + 1, "keys")
        if tensors > MOST_TENSORS:
            raise self._damaged(f"it says that it has {tensors} tensors; at most {MOST_TENSORS} are read")
        keys: dict[str, object] = {}
        for _ in range(count):
            name = self._text("a key's name")
            if name in keys:
                raise self._damaged(f"the key {name} is there twice")
            keys[name] = self._value(name)
        return GGUFFile(self._path, MappingProxyType(keys), MappingProxyType(self._places(tensors, keys)))

    def _places(self, count: int, keys: Mapping[str, object]) -> dict[str, Stored]:
        """The tensors; their offsets count from the end of the header."""
        alignment = keys.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise self._damaged(f"general.alignment is {alignment!r}, which is not a power of two")
        found: dict[str, Stored] = {}
        for _ in range(count):
            stored = self._tensor(alignment)
            if stored.name in found:
                raise self._damaged(f"the tensor {stored.name} is there twice")
            found[stored.name] = stored
        start, size = -(-self._at // alignment) * alignment, len(self._data)
        placed = {n: Stored(n, s.shape, s.kind, start + s.offset, s.nbytes) for n, s in found.items()}
        end, before = start, "the header"
        for stored in sorted(placed.values(), key=lambda stored: (stored.offset, stored.nbytes)):
            if stored.offset + stored.nbytes > size:
                raise self._damaged(
                    f"{stored.name} is to end at byte {stored.offset + stored.nbytes}, and the file has {size}"
                )
            if stored.offset < end:
                raise self._damaged(f"{stored.name} and {before} are to share bytes from {stored.offset} on")
            end, before = stored.offset + stored.nbytes, stored.name
        return placed

    def _tensor(self, alignment: int) -> Stored:
        name = self._text("a tensor's name")
        rank = self._number("I", f"the rank of {name}")
        if not 1 <= rank <= MOST_DIMENSIONS:
            raise self._damaged(f"{name} has {rank} dimensions; it must be from 1 to {MOST_DIMENSIONS}")
        shape = tuple(self._number("Q", f"the shape of {name}") for _ in range(rank))[::-1]
        kind, block, size = self._kind(name, self._number("I", f"the type of {name}"))
        if 0 in shape or shape[-1] % block:
            raise self._damaged(f"{name} is {kind} of shape {list(shape)}: rows must be whole blocks of {block}")
        offset = self._number("Q", f"the offset of {name}")
        if offset % alignment:
            raise self._damaged(f"{name} has the offset {offset}, which is not a multiple of {alignment}")
        return Stored(name, shape, kind, offset, prod(shape) // block * size)

    def _kind(self, name: str, number: int) -> tuple[str, int, int]:
        """The kind of a tensor's numbers: its name, how many are a block, and the bytes of one."""
        gguf = _library(self._path)
        names = {int(kind): str(kind.name) for kind in gguf.GGMLQuantizationType}
        if number not in names:
            raise self._damaged(f"{name} is of a type with the number {number}, which is none")
        kind = names[number]
        if kind not in KINDS:
            raise UsageError(
                f"{self._path}: {name} is stored as {kind}, which is not read here",
                hint=f"take a file of {', '.join(KINDS)}",
            )
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(number)]
        return kind, int(block), int(size)

    def _value(self, name: str) -> object:
        kind = self._number("I", f"the type of {name}")
        if kind == _STRING:
            return self._text(name)
        if kind == _ARRAY:
            return self._array(name)
        return self._numbers(kind, 1, name)[0].item()

    def _array(self, name: str) -> Array | tuple[str, ...]:
        kind = self._number("I", f"the type of {name}")
        if kind != _STRING:
            return self._numbers(kind, self._count(self._type(kind, name).itemsize, f"values of {name}"), name)
        return tuple(self._text(name) for _ in range(self._count(8, f"texts of {name}")))

    def _numbers(self, kind: int, count: int, name: str) -> Array:
        dtype = self._type(kind, name)
        return np.frombuffer(self._take(count * dtype.itemsize, name), dtype)

    def _type(self, kind: int, name: str) -> np.dtype[Any]:
        if kind not in _NUMBERS:
            raise self._damaged(f"{name} has values of type {kind}, which is none that is read")
        return _NUMBERS[kind]

    def _count(self, least: int, what: str) -> int:
        """How many there are of what takes at least so many bytes each."""
        count = self._number("Q", f"the number of {what}")
        if count * least > self._end - self._at:
            raise self._damaged(f"it says that it has {count} {what}; there is no room for them")
        return count

    def _text(self, what: str) -> str:
        try:
            return str(self._take(self._count(1, f"bytes of {what}"), what), "utf-8")
        except UnicodeDecodeError as error:
            raise self._damaged(f"{what} is not UTF-8 text") from error

    def _number(self, code: str, what: str) -> int:
        return cast("int", struct.unpack("<" + code, self._take(struct.calcsize("<" + code), what))[0])

    def _take(self, count: int, what: str) -> bytes:
        end = self._at + count
        if end > self._end:
            whole = f"it ends within {what}" if end > len(self._data) else f"its header has over {MOST_HEADER} bytes"
            raise self._damaged(whole)
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def _damaged(self, why: str) -> UsageError:
        return UsageError(f"{self._path} is damaged: {why}", hint=_AGAIN)


def _library(path: Path) -> Any:
    try:
        import gguf
    except ImportError as error:
        raise UsageError(f"{path} needs the `gguf` package", hint="pip install gguf") from error
    return gguf
