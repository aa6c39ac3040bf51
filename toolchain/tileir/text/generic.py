"""MLIR's generic form of an operation: `"cuda_tile.addf"(%a, %b) <{properties}> ({regions}) {attributes} : type`.

The properties are those that the dialect declares, spelled as MLIR spells attributes. They may stand in either pair of
braces. The type is that of a function from the operands to the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, UnitAttr
from xdsl.dialects.builtin import i32 as builtin_i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..bytecode.layout import layout
from ..dialect import attrs
from ..dialect import types as t
from ..dialect.base import LATEST, TileOp
from ..dialect.control import EntryOp, GlobalOp
from ..dialect.ops import ALIASES, OPS
from .attributes import Number, Symbol, Value
from .formats import ENUMS, FORMATS, default
from .lexer import Token
from .parser import SPELLINGS, Parser

SEGMENTS = "operandSegmentSizes"
UNUSED = ("res_attrs", "resultSegmentSizes")  # printed by MLIR, without a meaning in Tile IR
TOP_LEVEL: dict[str, type[EntryOp | GlobalOp]] = {"entry": EntryOp, "global": GlobalOp}


def generic(p: Parser) -> Operation:
    """An operation in generic form."""
    token = p.kind("string", "an operation's name in quotes")
    name = p.unquote(token.text, token).removeprefix("cuda_tile.")
    name = ALIASES.get(name, name)
    p.expect("(")
    operands = p.listed(p.value, ")")
    given: dict[str, Value] = {}
    if p.accept("<"):
        given |= p.dictionary()
        p.expect(">")
    regions = p.listed(lambda: _region(p), ")") if p.accept("(") else []
    if p.token.text == "{":
        given |= p.dictionary()
    p.expect(":")
    kind = p.function_type()
    for value, wanted in zip(operands, kind.inputs.data, strict=False):
        p.check_types([value], wanted, token)
    if len(operands) != len(kind.inputs.data):
        p.fail(f"{len(operands)} operands, but {len(kind.inputs.data)} operand types", token)
    if name in TOP_LEVEL:
        return _top_level(p, TOP_LEVEL[name], given, regions, token)
    if name not in OPS:
        p.fail(f"no operation {name!r}", token)
    properties = _properties(p, OPS[name], name, given, token)
    return _made(p, OPS[name], operands, kind, properties, regions, token)


SPELLINGS["generic"] = generic


def _region(p: Parser) -> Region:
    p.expect("{")
    if p.accept("}"):
        return Region()
    arguments = p.block_arguments()
    block = Block(arg_types=[kind for _, kind in arguments])
    with p.scope(zip((name for name, _ in arguments), block.args, strict=True)):
        while not p.accept("}"):
            if p.token.kind == "block":
                p.fail("a region of Tile IR has one block")
            block.add_op(p.operation())
    return Region(block)


def _made(
    p: Parser,
    op: type[TileOp],
    operands: list[SSAValue],
    kind: FunctionType,
    properties: dict[str, Attribute],
    regions: list[Region],
    token: Token,
) -> Operation:
    definition = op.get_irdl_definition()
    if len(regions) != len(definition.regions):
        p.fail(f"{op.name} has {len(definition.regions)} regions, {len(regions)} are given", token)
    sizes = properties.get(SEGMENTS)
    if SEGMENTS in definition.properties and not isinstance(sizes, DenseArrayBase):
        p.fail(f"{op.name} needs {SEGMENTS}: how many operands each of its groups has", token)
    if isinstance(sizes, DenseArrayBase) and (
        len(sizes) != len(definition.operands) or sum(sizes.get_values()) != len(operands)
    ):
        p.fail(f"{SEGMENTS} does not fit {len(operands)} operands in {len(definition.operands)} groups", token)
    return op.create(operands=operands, result_types=kind.outputs.data, properties=properties, regions=regions)


def _top_level(
    p: Parser, op: type[EntryOp | GlobalOp], given: Mapping[str, Value], regions: list[Region], token: Token
) -> Operation:
    kinds: dict[str, type[Attribute]] = {
        "sym_name": attrs.StrAttr,
        "function_type": FunctionType,
        "optimization_hints": attrs.HintsAttr,
        "value": attrs.DenseAttr,
        "alignment": attrs.IntAttr,
        "constant": UnitAttr,
    }
    found: dict[str, Attribute] = {}
    for name, value in given.items():
        if name == "sym_visibility":
            if value == "private":
                found["private"] = UnitAttr()
        elif name == "arg_attrs" and op is EntryOp:
            dictionaries = [p.dictionary_of(item, token) for item in _items(value)]
            if any(one.data for one in dictionaries):
                found[name] = attrs.AttrsAttr(tuple(dictionaries))
        elif name in kinds and name in op.get_irdl_definition().properties:
            found[name] = _converted(p, value, kinds[name], name, token)
        elif name not in UNUSED:
            p.fail(f"{op.name} has no property {name!r}", token)
    if op is GlobalOp:
        found.setdefault("alignment", attrs.IntAttr(0))
    wanted = {"sym_name", "value"} if op is GlobalOp else {"sym_name", "function_type"}
    if lacking := wanted - found.keys():
        p.fail(f"{op.name} lacks its {min(lacking)}", token)
    if len(regions) != (0 if op is GlobalOp else 1) or not all(region.blocks for region in regions):
        p.fail(f"{op.name} has {'no region' if op is GlobalOp else 'one region with its operations'}", token)
    return op.create(properties=found, regions=regions)


def _properties(
    p: Parser, op: type[TileOp], name: str, given: Mapping[str, Value], token: Token
) -> dict[str, Attribute]:
    form = layout(op, LATEST)
    kinds = {field.name: field.kind for field in (*form.attributes, *form.flags) if field.kind is not None}
    found: dict[str, Attribute] = {}
    for key, value in given.items():
        known = key if key in kinds else f"{key}_"
        if key == SEGMENTS:
            found[key] = DenseArrayBase.from_list(builtin_i32, [_whole(p, size, token) for size in _items(value)])
        elif known in kinds:
            found[known] = _converted(p, value, kinds[known], known, token)
        elif key not in UNUSED:
            p.fail(f"{op.name} has no property {key!r}", token)
    for word in FORMATS.get(name, "").split():
        if word[0] == "~" and word[1:] not in found:
            value = default(name, word[1:])
            assert isinstance(value, Attribute)
            found[word[1:]] = value
    if lacking := [f.name for f in form.attributes if not f.optional and not f.group and f.name not in found]:
        p.fail(f"{op.name} lacks its {lacking[0]}", token)
    return found


def _items(value: Value) -> list[Value]:
    return value if isinstance(value, list) else [value]


def _whole(p: Parser, value: Value, token: Token) -> int:
    if not isinstance(value, Number) or value.kind not in ("int", "hex"):
        p.fail("expected a whole number", token)
    return int(value.text, 0)


def _converted(p: Parser, value: Value, kind: type[Attribute], name: str, token: Token) -> Attribute:
    """An attribute in the form in which the dialect keeps it."""
    if name in ENUMS and isinstance(value, Number):  # some enumerations are printed as their numbers
        enumeration: Any = ENUMS[name]
        words = list(enumeration.enum_type)
        at = _whole(p, value, token)
        if not 0 <= at < len(words):
            p.fail(f"{name} = {at} is not from 0 to {len(words) - 1}", token)
        return enumeration(words[at])
    match kind, value:
        case attrs.IntAttr, Number():
            return attrs.IntAttr(_whole(p, value, token))
        case attrs.BoolAttr, bool():
            return attrs.BoolAttr(value)
        case attrs.StrAttr, str():
            return attrs.StrAttr(value)
        case attrs.StrAttr, Symbol():
            return attrs.StrAttr(value.name)
        case attrs.IntsAttr, list():
            return attrs.IntsAttr(tuple(_whole(p, item, token) for item in value))
        case attrs.BoolsAttr, list() if all(isinstance(item, bool) for item in value):
            return attrs.BoolsAttr(tuple(item is True for item in value))
        case attrs.AttrsAttr, list():
            return attrs.AttrsAttr(tuple(p.number_of(item) for item in value))
        case _, Attribute() if isinstance(value, kind) and value not in t.SCALARS:
            return value
        case _:
            raise p.source.error(token.at, f"{name} cannot have this value")
