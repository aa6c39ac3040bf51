"""A module of the dialect to Tile IR bytecode. Deterministic: tables are in the order of first use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from toolchain.errors import BytecodeError, UsageError

from .. import location
from ..dialect import attrs
from ..dialect import types as t
from ..dialect.base import V13_3, V13_5, VERSIONS, TileOp, Version
from ..dialect.control import DebugInfo, EntryOp, GlobalOp, ModuleOp
from ..dialect.debug import scoped_places
from .attributes import AttributeWriter
from .codec import ENUM_BYTES, ENUM_SINCE, ENUMS, type_since, write_type
from .debug import DebugWriter, empty_debug
from .encoding import ints, padding, table, varint
from .layout import Field, Layout, layout
from .reader import (
    CONSTANTS,
    DEBUG,
    ENTRY_POINT,
    FUNCTIONS,
    GLOBALS,
    HAS_HINTS,
    MAGIC,
    PRODUCER,
    SECTION_END,
    STRINGS,
    TYPES,
    read,
)

K = TypeVar("K")


def parse_version(text: str) -> Version:
    """(13, 3) of "13.3". Raises UsageError for a version that this writer does not know."""
    known = {f"{a}.{b}": (a, b) for a, b in VERSIONS}
    if text not in known:
        raise UsageError(f"bytecode version {text!r} cannot be written", hint=f"one of {', '.join(known)}")
    return known[text]


def write(module: ModuleOp, version: str = "13.3", *, debug_info: bool = False) -> bytes:
    """The bytecode of a module. Raises BytecodeError, naming the operation, if that version lacks something it uses.

    Without `debug_info` the bytecode contains no path, file name or line. With it, a module that was read from bytecode
    of the same version is written to the same bytes. Of a module from text each operation's place is written: what its
    `loc(...)` says, otherwise where it stands in the text.
    """
    target = parse_version(version)
    kept = module.debug_info if debug_info else None
    if kept is not None and kept.version != target:
        raise UsageError(
            f"debug information of bytecode {kept.version[0]}.{kept.version[1]} cannot be kept in {version}",
            hint="write the same version, or drop the debug information",
        )
    return _ModuleWriter(target, kept, located=debug_info).write(module)


def strip_debug(data: bytes, *, name: str = "<bytecode>") -> bytes:
    """The same program without debug information, tables in the order of first use."""
    module = read(data, name=name)
    assert module.debug_info is not None
    major, minor = module.debug_info.version
    return write(module, f"{major}.{minor}")


class _Table(Generic[K]):
    """Items in the order of first use, after the items of `known`."""

    def __init__(self, known: Iterable[K] = ()) -> None:
        self.items: dict[K, int] = {}
        for item in known:
            self.index(item)

    def index(self, item: K) -> int:
        return self.items.setdefault(item, len(self.items))


class _ModuleWriter:
    def __init__(self, version: Version, kept: DebugInfo | None, *, located: bool) -> None:
        self.version, self.kept, self.located = version, kept, located
        self.at: Operation | None = None  # what is written now
        self.strings: _Table[str] = _Table(kept.strings if kept else ())
        self.constants: _Table[bytes] = _Table(kept.constants if kept else ())
        self.types: dict[Attribute, int] = {}
        self.type_items: list[bytes] = []
        for known in kept.types if kept else (t.i1, t.i32):  # the compiler's own writer begins with these two
            self.type_index(known)
        self.attributes = AttributeWriter(self.type_index, self.strings.index)

    def type_index(self, value: Attribute) -> int:
        """The index of a type. If it is new, it is added after the types that it refers to."""
        found = self.types.get(value)
        if found is None:
            if type_since(value) > self.version:
                what = f"type {t.spell(value)}"
                if self.at is not None:
                    raise self._lacks(self.at, what)
                raise BytecodeError(f"bytecode {self.version[0]}.{self.version[1]} has no {what}")
            item = write_type(value, self.type_index, self.version)
            found = self.types[value] = len(self.type_items)
            self.type_items.append(item)
        return found

    def write(self, module: ModuleOp) -> bytes:
        functions = bytearray()
        globals_ = bytearray()
        entries = list(module.entries.values())
        counts: list[int] = []
        functions += varint(len(entries))
        for number, entry in enumerate(entries):
            self.at = entry
            functions += self._function(entry, self.kept.per_function[number] if self.kept else number + 1)
            counts.append(sum(1 for _ in entry.walk()))
        variables = [op for op in module.body.block.ops if isinstance(op, GlobalOp)]
        for op in variables:
            self.at = op
            globals_ += self._global(op)
        debug = self.kept.section if self.kept else self._debug(module) if self.located else empty_debug(counts)
        sections = [(FUNCTIONS, 8, bytes(functions))]
        if variables:
            sections.append((GLOBALS, 1, varint(len(variables)) + bytes(globals_)))
        raw = [varint(len(c)) + c for c in self.constants.items]
        sections += [
            (CONSTANTS, 8, table(raw, 8)),
            (DEBUG, 8, debug),
            (TYPES, 4, table(self.type_items, 4)),
            *self._producer(module),
            (
                STRINGS,
                4,
                table([s.encode(errors="replace") for s in self.strings.items], 4),
            ),  # a file's name may be odd
        ]
        out = bytearray(MAGIC + bytes(self.version) + bytes(2))
        for kind, alignment, content in sections:
            if kind == DEBUG and self.kept and not content:
                continue  # the file had no debug section
            out += bytes((kind | (0x80 if alignment > 1 else 0),)) + varint(len(content))
            if alignment > 1:
                out += varint(alignment)
                out += padding(len(out), alignment)
            out += content
        out += bytes((SECTION_END,))
        return bytes(out)

    def _debug(self, module: ModuleOp) -> bytes:
        places = scoped_places(module)
        functions = [[places[op] for op in entry.walk()] for entry in module.entries.values()]
        return DebugWriter(self.strings.index, self.version).section(functions)

    def _producer(self, module: ModuleOp) -> list[tuple[int, int, bytes]]:
        """The section that names the tool which made the module. Older bytecode has none, and nothing depends on it."""
        if module.producer is None or self.version < V13_3:
            return []
        return [(PRODUCER, 1, varint(self.strings.index(module.producer.data)))]

    def _function(self, entry: EntryOp, debug_index: int) -> bytes:
        hints = entry.optimization_hints
        arguments = entry.arg_attrs
        if self.version >= V13_5:  # from here on both are always written
            hints, arguments = hints or attrs.HintsAttr(()), arguments or attrs.AttrsAttr(())
        elif arguments is not None and any(one.data for one in arguments.data if isinstance(one, attrs.DictAttr)):
            raise self._lacks(entry, "attributes of parameters")
        flags = ENTRY_POINT | (HAS_HINTS if hints is not None and self.version < V13_5 else 0)
        head = varint(self.strings.index(entry.symbol)) + varint(self.type_index(entry.function_type))
        head += bytes((flags,)) + varint(debug_index)
        if hints is not None:
            head += self.attributes.hints(hints, tagged=True)
        if self.version >= V13_5:
            head += self.attributes.any(arguments or attrs.AttrsAttr(()))
        block = entry.body.block
        numbers: dict[SSAValue, int] = {argument: i for i, argument in enumerate(block.args)}
        code = bytearray()
        self._block(block, code, numbers, len(numbers))
        return head + varint(len(code)) + bytes(code)

    def _block(self, block: Block, code: bytearray, numbers: dict[SSAValue, int], following: int) -> int:
        """Writes the operations of a block, whose first result has number `following`. Returns how many there are."""
        count = 0
        for op in block.ops:
            self._operation(op, code, numbers, following)
            for result in self._results(op):
                numbers[result] = following
                following += 1
            count += 1
        return count

    def _operation(self, op: Operation, code: bytearray, numbers: dict[SSAValue, int], following: int) -> None:
        if not isinstance(op, TileOp):
            raise BytecodeError(f"{op.name} is not an operation of Tile IR")
        self.at = op
        if self.version < op.SINCE:
            raise self._lacks(op, "such operation")
        form = layout(type(op), self.version)
        self._check_absent(op)
        code += varint(op.OPCODE)
        results = self._results(op)
        if form.results_counted:
            code += varint(len(results))
        for result in results:
            code += varint(self.type_index(result.type))
        sizes = _group_sizes(op, form)
        if form.flags:
            present = (bool(sizes[f.name]) if f.kind is None else f.name in op.properties for f in form.flags)
            code += varint(sum(bit << i for i, bit in enumerate(present)))
        for field in form.attributes:
            value = op.properties.get(field.name)
            if value is None and field.group:
                value = attrs.BoolsAttr((False,) * sizes[field.group])
            if value is not None:
                if field.kind in ENUMS and ENUM_SINCE.get(value, self.version) > self.version:
                    raise self._lacks(op, str(getattr(value, "data", value)))
                code += self._attribute(field, value)
            elif not field.optional:
                raise BytecodeError(f"{op.name} lacks its {field.name}")
        if not form.segmented and any(f.variadic for f in form.operands):
            code += varint(len(op.operands))
        at = 0
        for field in form.operands:
            size = sizes[field.name]
            if field.variadic and form.segmented:
                code += varint(size)
            for operand in op.operands[at : at + size]:
                code += varint(numbers[operand])
            at += size
        if form.regions:
            code += varint(len(op.regions))
            for region in op.regions:
                self._region(region, code, numbers, following)

    def _results(self, op: Operation) -> Sequence[OpResult]:
        """The results that this version has."""
        later = layout(type(op), self.version).later_results if isinstance(op, TileOp) else 0
        return op.results[: len(op.results) - later]

    def _region(self, region: Region, code: bytearray, numbers: dict[SSAValue, int], following: int) -> None:
        code += varint(len(region.blocks))
        for block in region.blocks:
            code += varint(len(block.args))
            for argument in block.args:
                code += varint(self.type_index(argument.type))
                numbers[argument] = following
                following += 1
            inner = bytearray()
            count = self._block(block, inner, numbers, following)
            code += varint(count) + inner

    def _attribute(self, field: Field, value: Attribute) -> bytes:
        if field.kind in ENUMS:
            return bytes((ENUM_BYTES[value],))
        match value:
            case attrs.IntAttr():
                return varint(value.data)
            case attrs.BoolAttr():
                return bytes((value.data,))
            case attrs.StrAttr():
                return varint(self.strings.index(value.data))
            case attrs.IntsAttr():
                return ints(value.data, 4)
            case attrs.BoolsAttr():
                return ints(value.data, 1)
            case attrs.HintsAttr():
                return self.attributes.hints(value)
            case attrs.AttrsAttr():
                return self.attributes.numbers(value)
            case attrs.DenseAttr():
                return varint(self.constants.index(value.raw))
            case _:
                return self.attributes.predicate(value)

    def _check_absent(self, op: TileOp) -> None:
        """Raises BytecodeError if a field that this version lacks differs from the value that the version implies."""
        for name, since in op.FIELDS_SINCE.items():
            if since <= self.version:
                continue
            value = getattr(op, name)
            if isinstance(value, OpResult):
                value = value if value.uses else None
            if name in op.DEFAULTS:
                absent = value == op.DEFAULTS[name]
            else:
                absent = value is None or value == () or (isinstance(value, attrs.BoolsAttr) and not any(value.data))
            if not absent:
                raise self._lacks(op, name)

    def _global(self, op: GlobalOp) -> bytes:
        out = varint(self.strings.index(op.sym_name.data)) + varint(self.type_index(op.value.type))
        out += varint(self.constants.index(op.value.raw)) + varint(op.alignment.data)
        if self.version >= (13, 3):
            return out + bytes((op.private is not None,)) + varint(int(op.constant is not None))
        if op.private is not None or op.constant is not None:
            raise self._lacks(op, "private and constant globals")
        return out

    def _lacks(self, op: Operation, what: str) -> BytecodeError:
        place = location.get(op)
        where = f"{place}: " if place else ""
        return BytecodeError(f"{where}{op.name}: bytecode {self.version[0]}.{self.version[1]} has no {what}")


def _group_sizes(op: TileOp, form: Layout) -> dict[str, int]:
    """How many operands each group has."""
    if form.segmented:
        segments = op.properties["operandSegmentSizes"]
        assert isinstance(segments, DenseArrayBase)
        names = [name for name, _ in op.get_irdl_definition().operands]
        return {name: int(size) for name, size in zip(names, segments.get_values(), strict=True)}
    fixed = sum(not f.variadic for f in form.operands)
    return {f.name: len(op.operands) - fixed if f.variadic else 1 for f in form.operands}
