"""Tile IR bytecode to a module of the dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, UnitAttr, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..dialect import attrs, debug
from ..dialect import types as t
from ..dialect.base import V13_5, VERSIONS, Version
from ..dialect.control import DebugInfo, EntryOp, GlobalOp, ModuleOp
from ..dialect.ops import BY_OPCODE
from .attributes import AttributeReader
from .codec import ENUMS, read_enum, read_type
from .debug import read_debug
from .encoding import Reader
from .layout import Field, Layout, layout

T = TypeVar("T")
MAGIC = b"\x7fTileIR\x00"
SECTION_END, STRINGS, FUNCTIONS, DEBUG, CONSTANTS, TYPES, GLOBALS, PRODUCER = range(8)
ENTRY_POINT, HAS_HINTS = 0x02, 0x04
MAX_DEPTH = 64  # of nested regions: damaged data that nests deeper would exhaust the stack


def read(data: bytes, *, name: str = "<bytecode>") -> ModuleOp:
    """The module in `data`, a Tile IR bytecode file of version 13.1 to 13.5. `name` is for error messages.

    Raises BytecodeError with the byte offset if the data is damaged, truncated or of another version.
    """
    sections, version = _sections(Reader(data, name=name))
    for needed, what in ((FUNCTIONS, "functions"), (TYPES, "types"), (STRINGS, "strings")):
        if needed not in sections:
            raise Reader(data, name=name).fail(f"no section of {what}")
    return _ModuleReader(sections, version).module()


def is_bytecode(data: bytes) -> bool:
    """True if `data` begins with the magic bytes of Tile IR bytecode."""
    return data[: len(MAGIC)] == MAGIC


def version_of(data: bytes, *, name: str = "<bytecode>") -> Version:
    """The bytecode version of a file. Raises BytecodeError if it is not Tile IR bytecode."""
    return _version(Reader(data, name=name))


def _version(reader: Reader) -> Version:
    if not is_bytecode(reader.data):
        raise reader.fail("this is not Tile IR bytecode: it does not begin with \\x7fTileIR")
    reader.bytes(len(MAGIC))
    version = (reader.byte(), reader.byte())
    tag = reader.bytes(2)  # a tag marks a preview of the version
    if version not in VERSIONS:
        known = ", ".join(f"{a}.{b}" for a, b in VERSIONS)
        raise reader.fail(f"bytecode version {version[0]}.{version[1]}; this reader knows {known}", len(MAGIC))
    if any(tag):
        raise reader.fail(
            f"bytecode version {version[0]}.{version[1]} with the tag {tag.hex()} is a preview of that version; "
            f"this reader knows only released versions"
        )
    return version


def _sections(reader: Reader) -> tuple[dict[int, Reader], Version]:
    version = _version(reader)
    found: dict[int, Reader] = {}
    while (tag := reader.byte()) != SECTION_END:
        kind = tag & 0x7F
        if kind > PRODUCER or kind in found:
            raise reader.fail(f"section {kind} is unknown or appears twice", reader.at - 1)
        length = reader.varint()
        if tag & 0x80:
            alignment = reader.varint()
            if alignment not in (1, 2, 4, 8, 16):
                raise reader.fail(f"a section cannot be aligned to {alignment} bytes")
            reader.pad(alignment)
        found[kind] = reader.inside(length, f"section {kind}")
    if reader.at < reader.end:
        raise reader.fail(f"{reader.end - reader.at} bytes after the last section")
    return found, version


class _ModuleReader:
    """Reads the sections of one file."""

    def __init__(self, sections: dict[int, Reader], version: Version) -> None:
        self.sections, self.version = sections, version
        self.raw = {kind: self._table(kind, width) for kind, width in ((STRINGS, 4), (TYPES, 4), (CONSTANTS, 8))}
        self.strings = [self._text(raw) for raw in self.raw[STRINGS]]
        self.constants = [self._constant(raw) for raw in self.raw[CONSTANTS]]
        self.types: list[Attribute] = []
        for raw in self.raw[TYPES]:
            item = Reader(raw, name=f"{sections[TYPES].name}: type {len(self.types)}")
            self.types.append(read_type(item, self.types, version))
        self.attributes = AttributeReader(self.type_at, self.string_at)

    def _table(self, kind: int, width: int) -> list[bytes]:
        section = self.sections.get(kind)
        return (
            [] if section is None else section.table(width, {STRINGS: "strings", TYPES: "types"}.get(kind, "constants"))
        )

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.sections[STRINGS].fail(f"the string {raw!r} is not UTF-8") from error

    def _constant(self, raw: bytes) -> bytes:
        item = Reader(raw, name=f"{self.sections[CONSTANTS].name}: constant")
        return item.bytes(item.varint())

    # Table look-ups

    def string_at(self, reader: Reader) -> str:
        return self._at(reader, self.strings, "string")

    def type_at(self, reader: Reader) -> Attribute:
        return self._at(reader, self.types, "type")

    def tile_at(self, reader: Reader) -> t.TileType:
        at = reader.at
        found = self.type_at(reader)
        if not isinstance(found, t.TileType):
            raise reader.fail(f"{t.spell(found)} where a tile type is expected", at)
        return found

    def _at(self, reader: Reader, table: Sequence[T], what: str) -> T:
        at = reader.at
        index = reader.varint()
        if index >= len(table):
            raise reader.fail(f"{what} {index} of {len(table)}", at)
        return table[index]

    # The module

    def module(self) -> ModuleOp:
        debug_section = self.sections.get(DEBUG)
        places = read_debug(debug_section, self.strings) if debug_section else None
        body = Block()
        if GLOBALS in self.sections:
            reader = self.sections[GLOBALS]
            for _ in range(reader.count("globals")):
                body.add_op(self._global(reader))
        reader = self.sections[FUNCTIONS]
        first: list[int] = []
        for _ in range(reader.count("functions")):
            entry, debug_index = self._function(reader)
            first.append(debug_index)
            body.add_op(entry)
            if places is not None and debug_index:
                if debug_index > len(places.starts):
                    raise reader.fail(
                        f"{entry.symbol}: part {debug_index} of {len(places.starts)} of the debug section"
                    )
                _locate(entry, places.places(debug_index - 1))
        properties: dict[str, Attribute] = {"sym_name": attrs.StrAttr("kernels")}
        if (producer := self.sections.get(PRODUCER)) is not None:
            properties["producer"] = attrs.StrAttr(self.string_at(producer))
        module = ModuleOp.create(properties=properties, regions=[Region(body)])
        module.debug_info = DebugInfo(
            version=self.version,
            strings=tuple(self.strings),
            types=tuple(self.types),
            constants=tuple(self.constants),
            section=b"" if debug_section is None else debug_section.data[debug_section.start : debug_section.end],
            per_function=tuple(first),
        )
        return module

    def _global(self, reader: Reader) -> GlobalOp:
        symbol = self.string_at(reader)
        kind = self.tile_at(reader)
        raw = self._at(reader, self.constants, "constant")
        properties: dict[str, Attribute] = {
            "sym_name": attrs.StrAttr(symbol),
            "value": self._dense(reader, raw, kind),
            "alignment": attrs.IntAttr(reader.varint()),
        }
        if self.version >= (13, 3):
            if reader.byte():
                properties["private"] = UnitAttr()
            if reader.varint():
                properties["constant"] = UnitAttr()
        return GlobalOp.create(properties=properties)

    def _function(self, reader: Reader) -> tuple[EntryOp, int]:
        symbol = self.string_at(reader)
        at = reader.at
        signature = self.type_at(reader)
        if not isinstance(signature, FunctionType):
            raise reader.fail(f"{symbol}: {t.spell(signature)} is not a function type", at)
        flags = reader.byte()
        if not flags & ENTRY_POINT:
            raise reader.fail(f"{symbol} is not an entry point", reader.at - 1)
        debug_index = reader.varint()
        properties: dict[str, Attribute] = {"sym_name": attrs.StrAttr(symbol), "function_type": signature}
        if flags & HAS_HINTS or self.version >= V13_5:
            hints = self.attributes.hints(reader, tagged=True)
            if hints.data or self.version < V13_5:  # since 13.5 they are always written: none at all are not there
                properties["optimization_hints"] = hints
        if self.version >= V13_5 and (arguments := self._arguments(reader, symbol, len(signature.inputs))):
            properties["arg_attrs"] = arguments
        code = reader.inside(reader.varint(), f"the code of {symbol}")
        block = Block(arg_types=signature.inputs.data)
        values: list[SSAValue] = list(block.args)
        while code.at < code.end:
            block.add_op(self._operation(code, values, 0))
        return EntryOp.create(properties=properties, regions=[Region(block)]), debug_index

    def _arguments(self, reader: Reader, symbol: str, parameters: int) -> attrs.AttrsAttr | None:
        """What is said of each parameter of an entry; None if nothing is."""
        at = reader.at
        found = self.attributes.any(reader)
        if not isinstance(found, attrs.AttrsAttr) or not all(isinstance(one, attrs.DictAttr) for one in found.data):
            raise reader.fail(f"{symbol}: the attributes of its parameters are not an array of dictionaries", at)
        if len(found.data) not in (0, parameters):
            raise reader.fail(f"{symbol}: {len(found.data)} dictionaries for {parameters} parameters", at)
        return found if found.data else None

    # Operations

    def _operation(self, reader: Reader, values: list[SSAValue], depth: int) -> Operation:
        at = reader.at
        opcode = reader.varint()
        cls = BY_OPCODE.get(opcode)
        if cls is None or self.version < cls.SINCE:
            raise reader.fail(f"no operation of bytecode {self.version[0]}.{self.version[1]} has opcode {opcode}", at)
        form = layout(cls, self.version)
        count = reader.count("results") if form.results_counted else form.results
        results = [self.type_at(reader) for _ in range(count)]
        results += [t.token] * form.later_results
        flags = reader.varint() if form.flags else 0
        present = {field.name for i, field in enumerate(form.flags) if flags >> i & 1}
        if flags >> len(form.flags):
            raise reader.fail(f"{cls.name}: unknown flags {flags:#x}", at)
        properties: dict[str, Attribute] = {
            f.name: UNIT for f in form.flags if f.kind is UnitAttr and f.name in present
        }
        for field in form.attributes:
            if not field.optional or field.name in present or field.group:
                properties[field.name] = self._attribute(reader, field, results)
        properties.update({n: v for n, v in cls.DEFAULTS.items() if n not in properties})
        operands, sizes = self._operands(reader, form, present, values)
        self._check_one_each(reader, at, form, properties, sizes)
        if form.segmented:
            later = len(cls.get_irdl_definition().operands) - len(sizes)  # groups of newer versions, the last ones
            properties["operandSegmentSizes"] = _segments((*sizes, *(0,) * later))
        regions: list[Region] = []
        if form.regions:
            if reader.count("regions") != form.regions:
                raise reader.fail(f"{cls.name} has {form.regions} regions", at)
            regions = [self._region(reader, values, depth + 1) for _ in range(form.regions)]
        op = cls.create(operands=operands, result_types=results, properties=properties, regions=regions)
        values.extend(op.results[:count])
        return op

    def _operands(
        self, reader: Reader, form: Layout, present: set[str], values: list[SSAValue]
    ) -> tuple[list[SSAValue], list[int]]:
        operands: list[SSAValue] = []
        sizes: list[int] = []
        variadic = any(f.variadic for f in form.operands)
        total = reader.count("operands") if variadic and not form.segmented else 0
        for field in form.operands:
            if field.variadic:
                size = reader.count("operands") if form.segmented else total - len(operands)
                if size < 0:
                    raise reader.fail(f"{form.op.name}: {total} operands are too few")
            else:
                size = int(not field.optional or field.name in present)
            operands.extend(self._at(reader, values, "value") for _ in range(size))
            sizes.append(size)
        return operands, sizes

    def _check_one_each(
        self, reader: Reader, at: int, form: Layout, properties: dict[str, Attribute], sizes: list[int]
    ) -> None:
        """Checks that a property has one flag for each operand of its group, and drops it if no flag is set."""
        for field in form.attributes:
            if field.group is None:
                continue
            flags = properties[field.name]
            assert isinstance(flags, attrs.BoolsAttr)
            count = sizes[[f.name for f in form.operands].index(field.group)]
            if len(flags.data) != count:
                raise reader.fail(f"{form.op.name}: {len(flags.data)} {field.name} for {count} of {field.group}", at)
            if not any(flags.data):
                del properties[field.name]

    def _region(self, reader: Reader, values: list[SSAValue], depth: int) -> Region:
        if depth > MAX_DEPTH:
            raise reader.fail(f"regions nested deeper than {MAX_DEPTH}")
        if (blocks := reader.count("blocks")) > 1:
            raise reader.fail(f"a region of {blocks} blocks")
        if not blocks:
            return Region()
        outside = len(values)
        block = Block(arg_types=[self.type_at(reader) for _ in range(reader.count("block arguments"))])
        values.extend(block.args)
        for _ in range(reader.count("operations")):
            block.add_op(self._operation(reader, values, depth))
        del values[outside:]
        return Region(block)

    def _attribute(self, reader: Reader, field: Field, results: Sequence[Attribute]) -> Attribute:
        kind = field.kind
        if kind in ENUMS:
            return read_enum(reader, kind, self.version)
        match kind:
            case attrs.IntAttr:
                return attrs.IntAttr(reader.varint())
            case attrs.BoolAttr:
                return attrs.BoolAttr(bool(reader.byte()))
            case attrs.StrAttr:
                return attrs.StrAttr(self.string_at(reader))
            case attrs.IntsAttr:
                return attrs.IntsAttr(reader.ints(4, "numbers"))
            case attrs.BoolsAttr:
                return attrs.BoolsAttr(tuple(map(bool, reader.ints(1, "flags"))))
            case attrs.HintsAttr:
                return self.attributes.hints(reader)
            case attrs.AttrsAttr:
                return self.attributes.numbers(reader)
            case attrs.DenseAttr:
                raw = self._at(reader, self.constants, "constant")
                if not isinstance(results[0], t.TileType):
                    raise reader.fail(f"a constant cannot have type {t.spell(results[0])}")
                return self._dense(reader, raw, results[0])
            case _:
                return self.attributes.predicate(reader)

    def _dense(self, reader: Reader, raw: bytes, kind: t.TileType) -> attrs.DenseAttr:
        if kind.element_type not in t.SCALARS:
            raise reader.fail(f"a constant cannot have type {t.spell(kind)}")
        if not attrs.is_dense(raw, kind):
            raise reader.fail(f"{len(raw)} bytes cannot be a constant of type {t.spell(kind)}")
        return attrs.DenseAttr(raw, kind)


UNIT = UnitAttr()
_SEGMENTS: dict[tuple[int, ...], DenseArrayBase] = {}


def _segments(sizes: tuple[int, ...]) -> DenseArrayBase:
    found = _SEGMENTS.get(sizes)
    if found is None:
        found = _SEGMENTS[sizes] = DenseArrayBase.from_list(i32, sizes)
    return found


def _locate(entry: EntryOp, places: Sequence[debug.Place | None]) -> None:
    """Attach places, which debug information lists in the order of the file, the entry first."""
    for op, place in zip(entry.walk(), places, strict=False):
        if place is not None:
            debug.attach(op, place)
