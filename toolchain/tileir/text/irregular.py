"""Parsing the operations that the table of formats cannot describe. Those with regions are in structured.py."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from ..dialect import attrs
from ..dialect import types as t
from ..dialect.base import TileOp
from ..dialect.memory import MultimemLoadReduceViewTkoOp, MultimemStoreViewTkoOp
from .attributes import PREDICATES
from .parser import Parser, spelled


def string(p: Parser) -> attrs.StrAttr:
    token = p.kind("string", "a string")
    return attrs.StrAttr(p.unquote(token.text, token))


# Constants and assumptions


@spelled("constant")
def _constant(p: Parser, op: type[TileOp]) -> TileOp:
    value = p.dense()
    return p.create(op, {}, [value.type], {"value": value})


@spelled("permute")
def _permute(p: Parser, op: type[TileOp]) -> TileOp:
    source = p.value()
    permutation = attrs.IntsAttr(p.bracketed())
    p.expect(":")
    typed(p, [source])
    p.expect("->")
    return p.create(op, {"source": [source]}, [p.type()], {"permutation": permutation})


@spelled("assume")
def _assume(p: Parser, op: type[TileOp]) -> TileOp:
    predicate = _predicate(p)
    p.expect(",")
    value = p.value()
    p.expect(":")
    typed(p, [value])
    return p.create(op, {"value": [value]}, [value.type], {"predicate": predicate})


def _predicate(p: Parser) -> Attribute:
    """What is promised: `div_by<16>`, or any attribute that is one of these."""
    token = p.token
    if token.kind != "attr_alias":
        return p.predicate(p.word_of(PREDICATES, "predicate"))
    found = p.attribute()
    if not isinstance(found, attrs.DivByAttr | attrs.BoundedAttr | attrs.SameElementsAttr):
        p.fail(f"expected one of {', '.join(PREDICATES)}", token)
    return found


@spelled("assert")
def _assert(p: Parser, op: type[TileOp]) -> TileOp:
    condition = p.value()
    p.expect(",")
    message = string(p)
    p.expect(":")
    typed(p, [condition])
    return p.create(op, {"condition": [condition]}, [], {"message": message})


@spelled("get_global")
def _get_global(p: Parser, op: type[TileOp]) -> TileOp:
    name = attrs.StrAttr(p.symbol())
    p.expect(":")
    return p.create(op, {}, [p.type()], {"global_name": name})


def typed(p: Parser, values: Sequence[SSAValue]) -> None:
    """Reads one type for each of these values and checks that the value has it."""
    for i, value in enumerate(values):
        if i:
            p.expect(",")
        token = p.token
        p.check_types([value], p.type(), token)


# Memory


@spelled("make_tensor_view")
def _make_tensor_view(p: Parser, op: type[TileOp]) -> TileOp:
    start = p.token
    base = p.value()
    sizes: dict[str, list[SSAValue | int]] = {}
    for name in ("shape", "strides"):
        p.expect(",")
        p.expect(name)
        p.expect("=")
        p.expect("[")
        sizes[name] = p.listed(lambda: p.value() if p.token.kind == "value" else p.integer(), "]")
    p.expect(":")
    dynamic = [v for group in sizes.values() for v in group if isinstance(v, SSAValue)]
    token = p.token
    kind = p.type()
    if isinstance(kind, t.TileType):  # of the base, if its pointer has a ptr_attr, or of the sizes
        if isinstance(kind.element_type, t.PtrType):
            p.check_types([base], kind, token)
            if dynamic:
                p.expect(",")
                token = p.token
                p.check_types(dynamic, p.type(), token)
        else:
            p.check_types(dynamic, kind, token)
        p.expect("->")
        token = p.token
        kind = p.type()
    if not isinstance(kind, t.TensorViewType):
        p.fail(f"expected a tensor_view, found {t.spell(kind)}", token)
    for name, wanted in (("shape", kind.shape), ("strides", kind.strides)):
        given = tuple(t.DYNAMIC if isinstance(v, SSAValue) else v for v in sizes[name])
        if given != wanted:
            p.fail(f"{name} = [{_sizes(given)}], but {t.spell(kind)} has [{_sizes(wanted)}]", start)
    groups = {
        "base": [base],
        "dynamicShape": [v for v in sizes["shape"] if isinstance(v, SSAValue)],
        "dynamicStrides": [v for v in sizes["strides"] if isinstance(v, SSAValue)],
    }
    return p.create(op, groups, [kind], {})


def _sizes(sizes: Sequence[int]) -> str:
    return ", ".join("?" if size == t.DYNAMIC else str(size) for size in sizes)


def _ordering(p: Parser) -> dict[str, Attribute]:
    found = {"memory_ordering_semantics": p.enum("memory_ordering_semantics")}
    if p.token.kind == "word":
        found["memory_scope"] = p.enum("memory_scope")
    return found


def _token(p: Parser) -> list[SSAValue]:
    """`token = %t`, or nothing."""
    if not p.accept("token"):
        return []
    p.expect("=")
    return [p.value()]


def _token_and_hints(p: Parser, properties: dict[str, Attribute], *, bounded: bool = False) -> list[SSAValue]:
    """`token = %t` and hints, each optional. With `bounded`, `inbounds` may follow: which indices are inside."""
    token = _token(p)
    if p.accept("optimization_hints"):
        p.expect("=")
        properties["optimization_hints"] = p.hints()
    if bounded:
        _inbounds(p, properties)
    return token


def _inbounds(p: Parser, properties: dict[str, Attribute]) -> None:
    """`inbounds = [true, false]`, or nothing."""
    if not p.accept("inbounds"):
        return
    p.expect("=")
    p.expect("[")
    flags = p.listed(lambda: p.word_of(("true", "false"), "inbounds flag") == "true", "]")
    if any(flags):
        properties["inbounds"] = attrs.BoolsAttr(tuple(flags))


def _more(p: Parser) -> list[SSAValue]:
    """The values that follow, each preceded by a comma."""
    found: list[SSAValue] = []
    while p.accept(","):
        found.append(p.value())
    return found


@spelled("load_ptr_tko")
def _load_ptr(p: Parser, op: type[TileOp]) -> TileOp:
    properties = _ordering(p)
    values = [p.value(), *_more(p)]
    if len(values) > 3:
        p.fail("a load takes pointers, a mask and a padding value")
    token = _token_and_hints(p, properties)
    p.expect(":")
    typed(p, values)
    results = _tile_and_token(p)
    tile = results[0]  # of two operands the second is the mask, unless only a padding value has its type
    unmasked = isinstance(tile, t.TileType) and tile.element_type != t.i1 and [v.type for v in values[1:]] == [tile]
    first = 1 if unmasked else 2
    groups = {"source": values[:1], "mask": values[1:first], "paddingValue": values[first:], "token": token}
    return p.create(op, groups, results, properties)


@spelled("store_ptr_tko")
def _store_ptr(p: Parser, op: type[TileOp]) -> TileOp:
    properties = _ordering(p)
    values = [p.value(), *_more(p)]
    if not 2 <= len(values) <= 3:
        p.fail("a store takes pointers, a value and perhaps a mask")
    token = _token_and_hints(p, properties)
    p.expect(":")
    typed(p, values)
    groups = {"destination": values[:1], "value": values[1:2], "mask": values[2:], "token": token}
    return p.create(op, groups, _token_result(p), properties)


def _tile_and_token(p: Parser) -> list[Attribute]:
    p.expect("->")
    tile = p.type()
    p.expect(",")
    _token_type(p)
    return [tile, t.token]


def _token_result(p: Parser) -> list[Attribute]:
    p.expect("->")
    _token_type(p)
    return [t.token]


def _token_type(p: Parser) -> None:
    token = p.token
    if p.type() != t.token:
        p.unexpected("'token'", token)


def _indices(p: Parser) -> list[SSAValue]:
    p.expect("[")
    return p.listed(p.value, "]")


def _index_types(p: Parser, index: Sequence[SSAValue], *, token: bool = False) -> None:
    """The types of the indices: `, tile<i32>` for all of them, or one type for each; then with `token` its type."""
    if not index:
        return
    p.expect(",")
    first = p.token
    kinds = [p.type()]
    while p.accept(","):
        kinds.append(p.type())
    if token and kinds.pop() != t.token:
        p.fail("the type of the token stands behind those of the indices", first)
    if len(kinds) not in (1, len(index)):
        p.fail(f"{len(index)} indices need one type or {len(index)}, not {len(kinds)}", first)
    for value, kind in zip(index, kinds * len(index) if len(kinds) == 1 else kinds, strict=False):
        p.check_types([value], kind, first)


@spelled("load_view_tko")
def _load_view(p: Parser, op: type[TileOp]) -> TileOp:
    properties = _ordering(p)
    view = p.value()
    index = _indices(p)
    token = _token_and_hints(p, properties, bounded=True)
    p.expect(":")
    typed(p, [view])
    _index_types(p, index)
    return p.create(op, {"view": [view], "index": index, "token": token}, _tile_and_token(p), properties)


@spelled("memory_fence_alias_tko")
def _fence(p: Parser, op: type[TileOp]) -> TileOp:
    return p.create(op, {"token": [p.value()]}, [t.token], {})


@spelled("gdc_launch_dependents_tko", "gdc_wait_tko")
def _gdc(p: Parser, op: type[TileOp]) -> TileOp:
    return p.create(op, {"token": _token(p)}, _token_result(p), {})


@spelled("store_view_tko")
def _store_view(p: Parser, op: type[TileOp]) -> TileOp:
    properties = _ordering(p)
    tile = p.value()
    p.expect(",")
    view = p.value()
    index = _indices(p)
    token = _token_and_hints(p, properties, bounded=True)
    p.expect(":")
    typed(p, [tile, view])
    _index_types(p, index)
    groups = {"tile": [tile], "view": [view], "index": index, "token": token}
    return p.create(op, groups, _token_result(p), properties)


@spelled("atomic_red_view_tko")
def _atomic_red_view(p: Parser, op: type[TileOp]) -> TileOp:
    properties = _ordering(p)
    view = p.value()
    index = _indices(p)
    p.expect(",")
    properties["mode"] = p.enum("mode")
    p.expect(",")
    value = p.value()
    token = _token_and_hints(p, properties, bounded=True)
    p.expect(":")
    typed(p, [value, view])
    _index_types(p, index)
    groups = {"view": [view], "index": index, "value": [value], "token": token}
    return p.create(op, groups, _token_result(p), properties)


@spelled("multimem_load_reduce_view_tko", "multimem_reduce_view_tko", "multimem_store_view_tko")
def _multimem(p: Parser, op: type[TileOp]) -> TileOp:
    loads = op is MultimemLoadReduceViewTkoOp
    properties = _ordering(p)
    values = [p.value()]
    if not loads:
        p.expect(",")
        values.append(p.value())
    index = _indices(p)
    token = _token(p)
    _inbounds(p, properties)
    if op is not MultimemStoreViewTkoOp:
        properties["reduction"] = _reduction(p)
    p.expect(":")
    typed(p, values)
    _index_types(p, index, token=bool(token))
    groups = {"view": values[:1], "index": index, "token": token}
    if loads:
        return p.create(op, groups, _tile_and_token(p), properties)
    return p.create(op, {**groups, "tile": values[1:]}, _token_result(p), properties)


def _reduction(p: Parser) -> Attribute:
    """`attributes {reduction = #cuda_tile.multimem_reduction_kind<max>}`, or nothing for a sum."""
    if not p.accept("attributes"):
        return attrs.MultimemReductionAttr(attrs.MultimemReduction.ADD)
    token = p.token
    given = p.dictionary()
    found = given.get("reduction")
    if len(given) != 1 or not isinstance(found, attrs.MultimemReductionAttr):
        p.fail("expected {reduction = #cuda_tile.multimem_reduction_kind<...>}", token)
    return found


@spelled("atomic_rmw_tko")
def _atomic_rmw(p: Parser, op: type[TileOp]) -> TileOp:
    properties = _ordering(p)
    pointers = p.value()
    p.expect(",")
    properties["mode"] = p.enum("mode")
    p.expect(",")
    values = [pointers, p.value(), *_more(p)]
    token = _token_and_hints(p, properties)
    p.expect(":")
    typed(p, values)
    groups = {"pointers": values[:1], "arg": values[1:2], "mask": values[2:], "token": token}
    return p.create(op, groups, _tile_and_token(p), properties)


@spelled("atomic_cas_tko")
def _atomic_cas(p: Parser, op: type[TileOp]) -> TileOp:
    properties = _ordering(p)
    pointers = p.value()
    p.expect(",")
    compare = p.value()
    p.expect(",")
    value = p.value()
    mask = _more(p)
    token = _token_and_hints(p, properties)
    p.expect(":")
    kinds_start = p.token
    typed(p, [pointers, compare, *mask])  # the new value has the type of the compared one
    p.check_types([value], compare.type, kinds_start)
    groups = {"pointers": [pointers], "cmp": [compare], "val": [value], "mask": mask, "token": token}
    return p.create(op, groups, _tile_and_token(p), properties)


@spelled("print_tko")
def _print(p: Parser, op: type[TileOp]) -> TileOp:
    old = p.tokens[p.position - 1].text.endswith("print")  # as cuda-tile 13.1 has it: without a token
    properties: dict[str, Attribute] = {"str": string(p)}
    values = _more(p)
    token = _token_and_hints(p, properties)
    if values:
        p.expect(":")
        typed(p, values)
    results = [t.token] if old else _token_result(p)
    return p.create(op, {"args": values, "token": token}, results, properties)
