"""Numbers and tables as Tile IR bytecode stores them.

Source: the binary format section of the Tile IR specification. A varint is LEB128; a signed varint is zigzag coded;
lists are a count and fixed-width little-endian integers. A table is a count, the offset of each item, and the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from toolchain.errors import BytecodeError

PAD = b"\xcb"


class Reader:
    """A cursor over part of a file. Every read checks the end; errors name the byte offset in the file."""

    def __init__(self, data: bytes, start: int = 0, end: int | None = None, *, name: str = "<bytecode>") -> None:
        self.data, self.start, self.at, self.name = data, start, start, name
        self.end = len(data) if end is None else end

    def fail(self, message: str, at: int | None = None) -> BytecodeError:
        """The error to raise: `message` with the file and the byte offset."""
        return BytecodeError(f"{self.name}: byte {self.at if at is None else at:#x}: {message}")

    def byte(self) -> int:
        if self.at >= self.end:
            raise self.fail("the data ends here, but more bytes are needed")
        self.at += 1
        return self.data[self.at - 1]

    def bytes(self, count: int) -> bytes:
        if count > self.end - self.at:
            raise self.fail(f"{count} bytes are needed here, but only {self.end - self.at} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self, width: int = 64) -> int:
        """The next varint, an error if it has more than `width` bits."""
        at, end, data = self.at, self.end, self.data
        if at < end and data[at] < 0x80:  # the fast path: nearly all varints take one byte
            self.at = at + 1
            return data[at]
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> width:
                    raise self.fail(f"a varint above {width} bits", at)
                return value
            shift += 7
            if shift >= width:
                raise self.fail(f"a varint above {width} bits", at)

    def signed_varint(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def float_bits(self) -> int:
        """The bits of a float of more than 8 bits, taken as a signed number of 64. cuTile 1.7 takes those of f64 as
        unsigned, so that a negative one has 65 bits: both forms are read."""
        value = self.varint(65)
        return (value >> 1) ^ (-(value & 1) & ((1 << 64) - 1))

    def count(self, what: str) -> int:
        """The length of a list whose items take at least one byte each. A length above the number of bytes left is an
        error, so that damaged data cannot demand a huge list."""
        at = self.at
        value = self.varint()
        if value > self.end - self.at:
            raise self.fail(f"{value} {what} cannot fit into {self.end - self.at} bytes", at)
        return value

    def ints(self, width: int, what: str) -> tuple[int, ...]:
        count = self.count(what)
        raw = self.bytes(count * width)
        return tuple(int.from_bytes(raw[i : i + width], "little", signed=True) for i in range(0, len(raw), width))

    def pad(self, alignment: int) -> None:
        """Skips to a multiple of `alignment` from the start of the section."""
        while self.at % alignment:
            self.byte()

    def inside(self, length: int, what: str) -> Reader:
        """A new cursor over the next `length` bytes; this one continues after them."""
        at = self.at
        if length > self.end - at:
            raise self.fail(f"{what} of {length} bytes, but {self.end - at} are left")
        self.at += length
        return Reader(self.data, at, self.at, name=self.name)

    def table(self, width: int, what: str) -> list[bytes]:
        """All items of a table whose offsets have `width` bytes; the section holds nothing else."""
        count = self.count(what)
        self.pad(width)
        offsets = [int.from_bytes(self.bytes(width), "little") for _ in range(count)]
        base = self.at
        size = self.end - base
        bounds = [*offsets, size]
        if any(a > b for a, b in pairwise(bounds)) or (offsets and offsets[0] != 0):
            raise self.fail(f"the offsets of the {what} do not increase from 0 to {size}", base)
        return [self.data[base + a : base + b] for a, b in pairwise(bounds)]


def varint(value: int) -> bytes:
    if 0 <= value < 0x80:
        return bytes((value,))
    if not 0 <= value < 1 << 64:
        raise BytecodeError(f"{value} cannot be written: a varint is from 0 to 2^64 - 1")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed_varint(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else ~(value << 1))


def float_bits(bits: int) -> bytes:
    """The bits of a float of more than 8 bits, taken as a signed number of 64."""
    return signed_varint(bits - (bits >> 63 << 64))


def ints(values: Sequence[int], width: int) -> bytes:
    try:
        return varint(len(values)) + b"".join(v.to_bytes(width, "little", signed=True) for v in values)
    except OverflowError as error:
        raise BytecodeError(f"{list(values)} cannot be written in {8 * width} bits each") from error


def padding(length: int, alignment: int) -> bytes:
    return PAD * (-length % alignment)


def table(items: Iterable[bytes], width: int) -> bytes:
    """A table whose offsets have `width` bytes."""
    items = list(items)
    head = varint(len(items))
    offsets = bytearray()
    position = 0
    for item in items:
        offsets += position.to_bytes(width, "little")
        position += len(item)
    return b"".join((head, padding(len(head), width), bytes(offsets), *items))
