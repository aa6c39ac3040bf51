"""Parsing the operations with regions, and the terminators of regions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Region, SSAValue

from ..dialect import attrs
from ..dialect import types as t
from ..dialect.base import TileOp
from ..numbers import parse_number
from .irregular import typed
from .lexer import Token
from .literals import DEFAULT_TYPES
from .parser import Parser, spelled


@spelled("return", "break", "continue", "yield")
def _terminator(p: Parser, op: type[TileOp]) -> TileOp:
    values = p.values()
    if values:
        p.expect(":")
        typed(p, values)
    return p.create(op, {"values": values}, [], {})


def _carried(p: Parser) -> tuple[list[Token], list[SSAValue]]:
    """`iter_values(%a = %b, ...)`, or nothing."""
    if not p.accept("iter_values"):
        return [], []
    p.expect("(")

    def pair() -> tuple[Token, SSAValue]:
        name = p.kind("value", "a value name")
        p.expect("=")
        return name, p.value()

    pairs = p.listed(pair, ")")
    return [name for name, _ in pairs], [value for _, value in pairs]


def _results(p: Parser) -> list[Attribute]:
    """`-> (types)`, or nothing."""
    if not p.accept("->"):
        return []
    p.expect("(")
    return p.listed(p.type, ")")


@spelled("for")
def _for(p: Parser, op: type[TileOp]) -> TileOp:
    properties: dict[str, Attribute] = {"unsignedCmp": UnitAttr()} if p.accept("unsigned") else {}
    index = p.kind("value", "the loop's index")
    p.expect("in")
    p.expect("(")
    low = p.value()
    p.expect("to")
    high = p.value()
    p.expect(",")
    p.expect("step")
    step = p.value()
    p.expect(")")
    p.expect(":")
    token = p.token
    kind = p.type()
    p.check_types([low, high, step], kind, token)
    names, carried = _carried(p)
    results = _check_carried(p, carried, _results(p))
    body = p.region([index, *names], [kind, *results], implied="continue")
    groups = {"lowerBound": [low], "upperBound": [high], "step": [step], "initValues": carried}
    return p.create(op, groups, results, properties, [body])


def _check_carried(p: Parser, carried: Sequence[SSAValue], results: list[Attribute]) -> list[Attribute]:
    if len(carried) != len(results):
        p.fail(f"{len(carried)} values are carried, but {len(results)} result types are given")
    for value, kind in zip(carried, results, strict=True):
        p.check_types([value], kind, p.token)
    return results


@spelled("loop")
def _loop(p: Parser, op: type[TileOp]) -> TileOp:
    names, carried = _carried(p)
    kinds: list[Attribute] = []
    results: list[Attribute] = []
    if p.accept(":"):
        token = p.token
        kinds = [p.type()]
        while p.accept(","):
            kinds.append(p.type())
        if not carried and p.token.text != "->":  # a loop that carries nothing has the types of its results here
            kinds, results = [], kinds
        if len(kinds) != len(carried):
            p.fail(f"{len(carried)} carried values need as many types, not {len(kinds)}", token)
        for value, kind in zip(carried, kinds, strict=True):
            p.check_types([value], kind, token)
        if p.accept("->"):
            results = [p.type()]
            while p.accept(","):
                results.append(p.type())
    elif carried:
        p.unexpected("':' and the types of the carried values")
    body = p.region(names, kinds, implied="continue")
    return p.create(op, {"initValues": carried}, results, {}, [body])


@spelled("if")
def _if(p: Parser, op: type[TileOp]) -> TileOp:
    condition = p.value()
    results = _results(p)
    implied = None if results else "yield"
    then = p.region(implied=implied)
    otherwise = p.region(implied=implied) if p.accept("else") else Region()
    return p.create(op, {"condition": [condition]}, results, {}, [then, otherwise])


@spelled("reduce", "scan")
def _fold(p: Parser, op: type[TileOp]) -> TileOp:
    values = p.values()
    p.expect("dim")
    p.expect("=")
    properties: dict[str, Attribute] = {"dim": attrs.IntAttr(p.integer())}
    if op.name.endswith("scan"):
        p.expect("reverse")
        p.expect("=")
        properties["reverse"] = attrs.BoolAttr(p.word_of(("true", "false"), "direction") == "true")
    p.expect("identities")
    p.expect("=")
    p.expect("[")
    properties["identities"] = attrs.AttrsAttr(tuple(p.listed(lambda: _identity(p), "]")))
    p.expect(":")
    typed(p, values)
    p.expect("->")
    results = [p.type()]
    while p.accept(","):
        results.append(p.type())
    p.expect("(")

    arguments = p.listed(p.typed_name, ")")
    body = p.region([name for name, _ in arguments], [kind for _, kind in arguments])
    return p.create(op, {"inputs": values}, results, properties, [body])


def _identity(p: Parser) -> Attribute:
    """A number and its type."""
    literal = p.take()
    token = p.token
    if token.text in (",", "]") and literal.kind in DEFAULT_TYPES:
        kind: Attribute = DEFAULT_TYPES[literal.kind]
    else:
        p.expect(":")
        token = p.token
        kind = p.type()
    if kind not in t.SCALARS:
        p.fail(f"an identity cannot have type {t.spell(kind)}", token)
    try:
        return attrs.NumberAttr(parse_number(literal.text, literal.kind, kind), kind)
    except ValueError as error:
        p.fail(str(error), literal)
