"""The debug section of bytecode: the source location of each operation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..dialect.location import Location
from .encoding import Reader, padding, table, varint

FILE, LOCATION, CALL_SITE = 0x02, 0x04, 0x06


class DebugReader:
    """The source locations of each function."""

    def __init__(self, starts: Sequence[int], indices: Sequence[int], items: Sequence[bytes], strings: Sequence[str]):
        self.starts, self.indices, self.items, self.strings = starts, indices, items, strings

    def locations(self, function: int) -> list[Location | None]:
        """The location of the function itself, then those of its operations in file order."""
        bounds = [*self.starts, len(self.indices)]
        return [self._location(i) for i in self.indices[bounds[function] : bounds[function + 1]]]

    def _location(self, index: int, depth: int = 0) -> Location | None:
        if not 0 < index <= len(self.items) or depth > 16:  # index 0: no location
            return None
        item = Reader(self.items[index - 1], name=f"debug attribute {index}")
        match item.byte():
            case tag if tag == LOCATION:
                item.varint()  # the scope
                file, line, column = item.varint(), item.varint(), item.varint()
                return Location(self.strings[file], line, column) if file < len(self.strings) else None
            case tag if tag == CALL_SITE:  # where the innermost inlined code stands
                return self._location(item.varint(), depth + 1)
            case _:
                return None


def read_debug(section: Reader, strings: Sequence[str]) -> DebugReader:
    """The debug section. Raises BytecodeError if it is damaged."""
    functions = section.count("functions")
    section.pad(4)
    starts = [int.from_bytes(section.bytes(4), "little") for _ in range(functions)]
    count = section.count("operations")
    section.pad(8)
    indices = [int.from_bytes(section.bytes(8), "little") for _ in range(count)]
    if any(a > b for a, b in pairwise([*starts, count])):
        raise section.fail("the offsets of the functions' parts of the debug section do not increase")
    return DebugReader(starts, indices, section.table(4, "debug attributes"), strings)


def empty_debug(operations: Sequence[int]) -> bytes:
    """A debug section without locations. `operations`: for each function, the number of its operations plus one for
    itself. The compiler requires one item in the table, so there is an empty one that nothing refers to."""
    out = bytearray(varint(len(operations)))
    out += padding(len(out), 4)
    start = 0
    for count in operations:
        out += start.to_bytes(4, "little")
        start += count
    out += varint(start)
    out += padding(len(out), 8)
    out += bytes(8 * start)
    # Padding counts from the start of the table; that start is aligned, because 8-byte entries precede it.
    return bytes(out) + table([b"\x00"], 4)
