"""Tagged attributes in bytecode: a tag before the value says of which kind it is."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute, TypeAttribute

from toolchain.errors import BytecodeError

from ..dialect.attrs import (
    AttrsAttr,
    BoolAttr,
    BoundedAttr,
    DictAttr,
    DivByAttr,
    HintsAttr,
    NumberAttr,
    SameElementsAttr,
    StrAttr,
)
from ..dialect.types import FLOATS, INTEGERS, SCALARS, i32, spell
from .encoding import Reader, float_bits, ints, signed_varint, varint

INTEGER, FLOAT, BOOL, TYPE, STRING, ARRAY, DIV_BY, SAME_ELEMENTS, DICTIONARY, HINTS, BOUNDED = (
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0A, 0x0B, 0x0C,
)  # fmt: skip
MAX_DEPTH = 64  # of arrays and dictionaries in each other


class AttributeReader:
    """Reads tagged attributes; `type_at` and `string_at` look up the tables (and check the index)."""

    def __init__(self, type_at: Callable[[Reader], Attribute], string_at: Callable[[Reader], str]) -> None:
        self.type_at, self.string_at = type_at, string_at

    def any(self, reader: Reader, depth: int = 0) -> Attribute:
        """Any attribute, by its tag."""
        if depth > MAX_DEPTH:
            raise reader.fail(f"attributes nested deeper than {MAX_DEPTH}")
        at = reader.at
        match reader.varint():
            case tag if tag in (INTEGER, FLOAT):
                reader.at = at
                return self.number(reader)
            case tag if tag == BOOL:
                return BoolAttr(bool(reader.byte()))
            case tag if tag == TYPE:
                return self.type_at(reader)
            case tag if tag == STRING:
                return StrAttr(self.string_at(reader))
            case tag if tag == ARRAY:
                return AttrsAttr(tuple(self.any(reader, depth + 1) for _ in range(reader.count("attributes"))))
            case tag if tag == DICTIONARY:
                pairs = [(self.string_at(reader), self.any(reader, depth + 1)) for _ in range(reader.count("names"))]
                return DictAttr(tuple(pairs))
            case tag if tag == HINTS:
                return self.hints(reader)
            case _:
                reader.at = at
                return self.predicate(reader)

    def number(self, reader: Reader) -> NumberAttr:
        """An integer or float with its type, kept by its bits."""
        at = reader.at
        tag = reader.varint()
        if tag not in (INTEGER, FLOAT):
            raise reader.fail(f"attribute {tag:#x} where a number is expected", at)
        kind = self.type_at(reader)
        if kind not in (INTEGERS if tag == INTEGER else FLOATS):
            raise reader.fail(f"a number cannot have type {spell(kind)}", at)
        width = SCALARS[kind][1]
        if tag == INTEGER:
            bits = reader.varint()
        else:
            bits = reader.byte() if width <= 8 else reader.float_bits()
        if not 0 <= bits < 1 << width:
            raise reader.fail(f"{bits:#x} is wider than {SCALARS[kind][0]}", at)
        return NumberAttr(bits, kind)

    def numbers(self, reader: Reader) -> AttrsAttr:
        """An array of numbers without a tag of its own."""
        return AttrsAttr(tuple(self.number(reader) for _ in range(reader.count("attributes"))))

    def predicate(self, reader: Reader) -> Attribute:
        """The predicate of an `assume` operation."""
        at = reader.at
        match reader.varint():
            case tag if tag == DIV_BY:
                divisor, flags = reader.varint(), self._flags(reader)
                every = reader.signed_varint() if flags & 1 else None
                return DivByAttr(divisor, every, reader.signed_varint() if flags & 2 else None)
            case tag if tag == BOUNDED:
                flags = self._flags(reader)
                low = reader.signed_varint() if flags & 1 else None
                return BoundedAttr(low, reader.signed_varint() if flags & 2 else None)
            case tag if tag == SAME_ELEMENTS:
                return SameElementsAttr(reader.ints(8, "group sizes"))
            case tag:
                raise reader.fail(f"attribute {tag:#x} does not fit here", at)

    def _flags(self, reader: Reader) -> int:
        """A byte whose two lowest bits say which of two optional numbers follow."""
        flags = reader.byte()
        if flags > 3:
            raise reader.fail(f"unknown flags {flags:#x}", reader.at - 1)
        return flags

    def hints(self, reader: Reader, *, tagged: bool = False) -> HintsAttr:
        """Compiler hints by architecture. The hints of an entry have a tag, those of an operation do not."""
        at = reader.at
        if tagged and reader.varint() != HINTS:
            raise reader.fail("optimization hints are expected here", at)
        found: list[tuple[str, tuple[tuple[str, int | bool], ...]]] = []
        for _ in range(reader.count("architectures")):
            architecture = self.string_at(reader)
            at = reader.at
            if reader.varint() != DICTIONARY:
                raise reader.fail(f"the hints for {architecture} are not a dictionary", at)
            pairs = [(self.string_at(reader), self._hint(reader)) for _ in range(reader.count("hints"))]
            found.append((architecture, tuple(pairs)))
        return HintsAttr(tuple(found))

    def _hint(self, reader: Reader) -> int | bool:
        at = reader.at
        match reader.varint():
            case tag if tag == INTEGER:
                self.type_at(reader)
                return reader.varint()
            case tag if tag == BOOL:
                return bool(reader.byte())
            case tag:
                raise reader.fail(f"attribute {tag:#x} is not the value of a hint", at)


class AttributeWriter:
    """Writes tagged attributes. `type_index` and `string_index` give the index of an item, and add it if it is new."""

    def __init__(self, type_index: Callable[[Attribute], int], string_index: Callable[[str], int]) -> None:
        self.type_index, self.string_index = type_index, string_index

    def any(self, value: Attribute) -> bytes:
        """Any attribute, with its tag. Raises BytecodeError for one that has no form in bytecode."""
        match value:
            case NumberAttr():
                return self.number(value)
            case BoolAttr():
                return varint(BOOL) + bytes((value.data,))
            case StrAttr():
                return varint(STRING) + varint(self.string_index(value.data))
            case AttrsAttr():
                return varint(ARRAY) + varint(len(value.data)) + b"".join(map(self.any, value.data))
            case DictAttr():
                pairs = (varint(self.string_index(name)) + self.any(item) for name, item in value.data)
                return varint(DICTIONARY) + varint(len(value.data)) + b"".join(pairs)
            case HintsAttr():
                return self.hints(value, tagged=True)
            case TypeAttribute():
                return varint(TYPE) + varint(self.type_index(value))
            case DivByAttr() | BoundedAttr() | SameElementsAttr():
                return self.predicate(value)
            case _:
                raise BytecodeError(f"the attribute {value} has no form in bytecode")

    def number(self, value: NumberAttr) -> bytes:
        kind = varint(self.type_index(value.type))
        if value.type in INTEGERS:
            return varint(INTEGER) + kind + varint(value.bits)
        bits = bytes((value.bits,)) if SCALARS[value.type][1] <= 8 else float_bits(value.bits)
        return varint(FLOAT) + kind + bits

    def numbers(self, values: AttrsAttr) -> bytes:
        items = [self.number(v) for v in values.data if isinstance(v, NumberAttr)]
        return varint(len(items)) + b"".join(items)

    def predicate(self, value: Attribute) -> bytes:
        match value:
            case DivByAttr():
                flags = (value.every is not None) | (value.along is not None) << 1
                rest = b"".join(signed_varint(v) for v in (value.every, value.along) if v is not None)
                return varint(DIV_BY) + varint(value.divisor) + bytes((flags,)) + rest
            case BoundedAttr():
                flags = (value.lb is not None) | (value.ub is not None) << 1
                rest = b"".join(signed_varint(v) for v in (value.lb, value.ub) if v is not None)
                return varint(BOUNDED) + bytes((flags,)) + rest
            case SameElementsAttr():
                return varint(SAME_ELEMENTS) + ints(value.data, 8)
            case _:
                raise TypeError(f"{type(value).__name__} is not a predicate of assume")

    def hints(self, value: HintsAttr, *, tagged: bool = False) -> bytes:
        out = bytearray(varint(HINTS) if tagged else b"")
        out += varint(len(value.data))
        for architecture, pairs in value.data:
            out += varint(self.string_index(architecture)) + varint(DICTIONARY) + varint(len(pairs))
            for key, hint in pairs:
                out += varint(self.string_index(key))
                if isinstance(hint, bool):
                    out += varint(BOOL) + bytes((hint,))
                else:
                    out += varint(INTEGER) + varint(self.type_index(i32)) + varint(hint)
        return bytes(out)
