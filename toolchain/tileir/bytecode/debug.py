"""The debug section of bytecode: the source location of each operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from ..dialect import debug
from ..dialect.base import V13_5, Version
from .encoding import Reader, padding, table, varint

UNKNOWN, COMPILE_UNIT, FILE, LEXICAL_BLOCK, LOCATION, SUBPROGRAM, CALL_SITE = range(7)
MAX_DEPTH = 64  # of calls and scopes in each other


class DebugReader:
    """Places by function. An index counts the table's items from 1; 0 is no place."""

    def __init__(self, starts: Sequence[int], indices: Sequence[int], items: Sequence[bytes], strings: Sequence[str]):
        self.starts, self.indices, self.items, self.strings = starts, indices, items, strings
        self.known: dict[int, debug.Place | debug.Node | None] = {0: None}

    def places(self, function: int) -> list[debug.Place | None]:
        """The place of the function itself, then those of its operations in file order."""
        bounds = [*self.starts, len(self.indices)]
        found = [self._item(i, 0) for i in self.indices[bounds[function] : bounds[function + 1]]]
        return [place if isinstance(place, debug.PLACES) else None for place in found]

    def _item(self, index: int, depth: int) -> debug.Place | debug.Node | None:
        """The item of an index; None for what is unknown or cannot be read."""
        if index not in self.known:
            self.known[index] = None  # what names itself is damage
            if 0 < index <= len(self.items) and depth < MAX_DEPTH:
                self.known[index] = self._read(index, depth + 1)
        return self.known[index]

    def _read(self, index: int, depth: int) -> debug.Place | debug.Node | None:
        item = Reader(self.items[index - 1], name=f"debug attribute {index}")

        def node() -> debug.Place | debug.Node | None:
            return self._item(item.varint(), depth)

        def text() -> str:
            number = item.varint()
            return self.strings[number] if number < len(self.strings) else ""

        match item.byte():
            case tag if tag == FILE:
                return debug.File(text(), text())
            case tag if tag == COMPILE_UNIT:
                file = node()
                return debug.CompileUnit(file) if isinstance(file, debug.File) else None
            case tag if tag == SUBPROGRAM:
                file, line, name, linkage_name, unit = node(), item.varint(), text(), text(), node()
                if not isinstance(file, debug.File) or not isinstance(unit, debug.CompileUnit):
                    return None
                return debug.Subprogram(
                    file, line, name, linkage_name, unit, item.varint()
                )  # 13.5: unused flags follow
            case tag if tag == LEXICAL_BLOCK:
                scope, file = node(), node()
                if not isinstance(scope, debug.Subprogram | debug.LexicalBlock) or not isinstance(file, debug.File):
                    return None
                return debug.LexicalBlock(scope, file, item.varint(), item.varint())
            case tag if tag == LOCATION:
                scope = node()
                place = debug.Location(text(), item.varint(), item.varint())
                return debug.Scoped(place, scope) if isinstance(scope, debug.Subprogram | debug.LexicalBlock) else place
            case tag if tag == CALL_SITE:
                callee, caller = node(), node()
                if not isinstance(callee, debug.PLACES):
                    return None
                return debug.CallSite(callee, caller) if isinstance(caller, debug.PLACES) else callee
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


class DebugWriter:
    """Collects the debug section: `string_index` gives (and if need be makes) the index of a string."""

    def __init__(self, string_index: Callable[[str], int], version: Version) -> None:
        self.string_index, self.version = string_index, version
        self.items: dict[debug.Place | debug.Node, int] = {}
        self.encoded: list[bytes] = []

    def section(self, functions: Sequence[Sequence[debug.Place]]) -> bytes:
        """The section. `functions`: for each function its own place and those of its operations, as they stand."""
        indices = [[self._place(place) for place in places] for places in functions]
        flat = [index for part in indices for index in part]
        return _section([len(part) for part in indices], flat, self.encoded)

    def _place(self, place: debug.Place) -> int:
        found = canonical(place)
        return 0 if found is None else self._index(found)

    def _index(self, item: debug.Place | debug.Node) -> int:
        """The index of an item, after those that it names."""
        if item not in self.items:
            encoded = self._encoded(item)
            self.encoded.append(encoded)
            self.items[item] = len(self.encoded)
        return self.items[item]

    def _encoded(self, item: debug.Place | debug.Node) -> bytes:
        match item:
            case debug.File():
                parts = FILE, self.string_index(item.name), self.string_index(item.directory)
            case debug.CompileUnit():
                parts = COMPILE_UNIT, self._index(item.file)
            case debug.Subprogram():
                names = self.string_index(item.name), self.string_index(item.linkage_name)
                file, unit = self._index(item.file), self._index(item.compile_unit)
                flags = (0,) if self.version >= V13_5 else ()  # which mean nothing yet
                parts = SUBPROGRAM, file, item.line, *names, unit, item.scope_line, *flags
            case debug.LexicalBlock():
                parts = LEXICAL_BLOCK, self._index(item.scope), self._index(item.file), item.line, item.column
            case debug.Scoped():
                file, line, column = item.position
                parts = LOCATION, self._index(item.scope), self.string_index(file), line, column
            case debug.CallSite():
                parts = CALL_SITE, self._index(item.callee), self._index(item.caller)
            case _:
                raise TypeError(f"{type(item).__name__} has no form in bytecode")
        return b"".join(map(varint, parts))


def canonical(place: debug.Place | None) -> debug.Scoped | debug.CallSite | None:
    """What bytecode can keep of a place: a position inside a scope, or a call of one from another. None: nothing."""
    match place:
        case debug.Scoped():
            return place
        case debug.Named():
            return canonical(place.place)
        case debug.Fused():
            return next((found for inner in place.places if (found := canonical(inner))), None)
        case debug.CallSite():
            callee, caller = canonical(place.callee), canonical(place.caller)
            return debug.CallSite(callee, caller) if callee and caller else None
        case _:
            return None


def empty_debug(operations: Sequence[int]) -> bytes:
    """A debug section without locations. `operations`: for each function, the number of its operations plus one for
    itself."""
    return _section(operations, [0] * sum(operations), [])


def _section(operations: Sequence[int], indices: Sequence[int], items: Sequence[bytes]) -> bytes:
    out = bytearray(varint(len(operations)))
    out += padding(len(out), 4)
    start = 0
    for count in operations:
        out += start.to_bytes(4, "little")
        start += count
    out += varint(start)
    out += padding(len(out), 8)
    out += b"".join(index.to_bytes(8, "little") for index in indices)
    # Padding counts from the start of the table; that start is aligned, because 8-byte entries precede it. The compiler
    # requires one item in the table, so without any there is an empty one that nothing refers to.
    return bytes(out) + table(items or [b"\x00"], 4)
