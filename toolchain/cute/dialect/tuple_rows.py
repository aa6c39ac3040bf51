"""The operations on tuples and coordinates: parts, sizes, arithmetic, conversions between the kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import layout as algebra
from ..layout import Layout, LayoutError
from ..layout import tuples as nested
from .algebra import MODES, ONE, Infer, OpForm, outer, same
from .types import (
    ComposedLayoutType,
    CoordType,
    CuteType,
    IntTupleType,
    LayoutType,
    ShapeType,
    StrideType,
    TileType,
)


def _chosen(kind: CuteType, modes: Sequence[int]) -> Any:
    """A part, from the outside in. Raises LayoutError where there is none, also within a single number."""
    made = outer(kind)
    for number, mode in enumerate(modes):
        shape = made.shape if isinstance(made, Layout) else made
        if number and not isinstance(shape, tuple):
            raise LayoutError(f"{kind} has no part {list(modes)}: {list(modes[:number])} is one number")
        if not 0 <= mode < nested.rank(shape):
            raise LayoutError(f"{kind} has no part {list(modes)}: {mode} is not in [0, {nested.rank(shape)})")
        made = made[mode] if isinstance(shape, tuple) else made
    return made


def _size(kinds: Sequence[Any], modes: Sequence[int]) -> CuteType:
    made = _chosen(kinds[0], modes)
    return IntTupleType(nested.product(made.shape if isinstance(made, Layout) else made))


def _cosize(kinds: Sequence[Any], modes: Sequence[int]) -> CuteType:
    kind = kinds[0]
    if isinstance(kind, ComposedLayoutType) and isinstance(kind.data.inner, Layout):
        raise LayoutError(f"{kind}: how far its inner layout reaches is not defined; under a swizzle it is")
    return IntTupleType(algebra.cosize(_chosen(kind, modes)))


def _get(kinds: Sequence[Any], modes: Sequence[int]) -> CuteType:
    kind, made = kinds[0], _chosen(kinds[0], modes)
    return same(kind, made) if isinstance(made, Layout) and not isinstance(kind, TileType) else type(kind)(made)


def _select(kinds: Sequence[Any], modes: Sequence[int]) -> CuteType:
    kind = kinds[0]
    if isinstance(made := outer(kind), Layout):
        return same(kind, algebra.select(made, *modes))
    return type(kind)(tuple(kind.data[m] for m in modes))


def _product(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    return type(kinds[0])(nested.product(kinds[0].data))


def _product_each(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    parts = kinds[0].data if isinstance(kinds[0].data, tuple) else (kinds[0].data,)
    return type(kinds[0])(tuple(nested.product(part) for part in parts))


def _ceil_div(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    covered = algebra.divide_up_by_tile if isinstance(kinds[1], TileType) else algebra.divide_up
    return type(kinds[0])(covered(kinds[0].data, kinds[1].data))


def _crd2idx(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    where = Layout(kinds[1].data) if isinstance(kinds[1], ShapeType) else kinds[1].data
    return IntTupleType(where(kinds[0].data))


def _evaluated(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    where, layout = kinds[0].data, kinds[1].data
    return IntTupleType(layout(nested.transform(algebra.zero_if_open, where)))


def _next(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    """The leaves wrap from left to right; the last one does not."""
    where, shape = kinds[0].data, kinds[1].data
    if not nested.congruent(where, shape) or None in nested.flatten(where):
        raise LayoutError(f"{nested.text(where)} and {nested.text(shape)} are not nested alike")
    leaves, extents = nested.flatten(where), nested.flatten(shape)
    made, carry = list[Any](), 1
    for number, (leaf, extent) in enumerate(zip(leaves, extents, strict=True)):
        moved = leaf + carry if carry != 0 else leaf
        if number + 1 == len(leaves):
            made.append(moved)
            break
        # 1 if it reached the end, else 0: a quotient, so that a kernel computes it too
        carry = moved // extent if carry != 0 else 0
        made.append(moved % extent if carry != 0 else moved)
    return CoordType(nested.like(iter(made), where))


def _rank(*, append: bool) -> Infer:
    """Modes of the second operand at an end of the first, up to a number of modes; there may be as many already."""

    def filled(parts: list[Any], filler: Any, rank: int) -> list[Any]:
        added = [filler] * (rank - len(parts))
        return [*parts, *added] if append else [*added, *parts]

    def infer(kinds: Sequence[Any], numbers: Sequence[int]) -> CuteType:
        kind, filler = kinds
        if numbers[0] < 1:
            raise LayoutError(f"{numbers[0]} is no number of modes")
        if isinstance(layout := outer(kind), Layout):
            if not isinstance(filler, LayoutType):
                raise LayoutError(f"a layout is filled with a layout, not with {filler}")
            return same(kind, algebra.make_layout(*filled(list(layout), filler.data, numbers[0])))
        if not isinstance(kind, TUPLES) or type(filler) is not type(kind):
            raise LayoutError("it takes two layouts, or two tuples of one kind")
        parts = list(kind.data) if isinstance(kind.data, tuple) else [kind.data]
        return type(kind)(tuple(filled(parts, filler.data, numbers[0])))

    return infer


def _to(kind: type[CuteType], *sources: type[CuteType]) -> Infer:
    def infer(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
        if not isinstance(kinds[0], sources):
            raise LayoutError(f"it takes {' or '.join(source.name for source in sources)}, not {kinds[0]}")
        return kind(kinds[0].data)

    return infer


def _rank_of(kinds: Sequence[Any], modes: Sequence[int]) -> CuteType:
    made = _chosen(kinds[0], modes)
    return IntTupleType(nested.rank(made.shape if isinstance(made, Layout) else made))


def _depth_of(kinds: Sequence[Any], modes: Sequence[int]) -> CuteType:
    made = _chosen(kinds[0], modes)
    return IntTupleType(nested.depth(made.shape if isinstance(made, Layout) else made))


TUPLES = (IntTupleType, ShapeType, StrideType, CoordType)
COUNTED = (IntTupleType, ShapeType)
NUMBERS, ANY = ("int_tuple or shape",), ("layout or tuple",)
TUPLE_ROWS: dict[str, OpForm] = {
    "get": OpForm(
        ANY, "The mode with these numbers, from the outside in.", _get, MODES, plain=True,
        kinds=((*TUPLES, TileType, LayoutType, ComposedLayoutType),),
    ),
    "select": OpForm(("layout, memref or tuple",), "The modes with these numbers.", _select, MODES, plain=True),
    "size": OpForm(ANY, "The number of elements, of the whole or of a mode.", _size, MODES),
    "cosize": OpForm(("layout",), "The largest offset plus 1, of the whole or of a mode.", _cosize, MODES),
    "rank": OpForm(ANY, "The number of modes.", _rank_of, MODES),
    "depth": OpForm(ANY, "How deep the modes are nested; 0 for a number.", _depth_of, MODES),
    "tuple_product": OpForm(NUMBERS, "The product of all leaves, of the same kind.", _product, kinds=(COUNTED,)),
    "tuple_product_each": OpForm(
        NUMBERS, "The product of the leaves of each mode, of the same kind.", _product_each, kinds=(COUNTED,)
    ),
    "crd2idx": OpForm(
        ("coord", "layout or shape"), "The offset of a coordinate in a layout.", _crd2idx, kinds=((CoordType,), None)
    ),
    "layout_eval": OpForm(
        ("coord", "layout or composed_layout"), "The value of a layout at a coordinate; for strides along modes, a "
        "coordinate.", _evaluated, kinds=((CoordType,), (LayoutType, ComposedLayoutType)),
    ),
    "idx2crd": OpForm(
        ("int_tuple", "shape"), "The coordinate of an index in a shape, column-major.",
        lambda k, _: CoordType(algebra.idx2crd(k[0].data, k[1].data)),
    ),
    "increment_coord": OpForm(
        ("coord", "shape"), "The next coordinate, column-major. Its last number does not wrap.", _next
    ),
    "tuple_add": OpForm(
        ("int_tuple or shape", "the same"), "Adds leaf by leaf. Modes that one has more stay as they are.",
        lambda k, _: type(k[0])(algebra.tuple_add(k[0].data, k[1].data)), kinds=(COUNTED, COUNTED), alike=True,
    ),
    "tuple_sub": OpForm(
        ("int_tuple or shape", "the same"), "Subtracts leaf by leaf. Modes that one has more stay as they are.",
        lambda k, _: type(k[0])(algebra.tuple_sub(k[0].data, k[1].data)), kinds=(COUNTED, COUNTED), alike=True,
    ),
    "shape_div": OpForm(
        ("shape", "shape"), "Divides a shape by a shape, from its first leaves on.",
        lambda k, _: ShapeType(algebra.shape_div(k[0].data, k[1].data)),
    ),
    "ceil_div": OpForm(
        ("int_tuple or shape", "int_tuple, shape or tile"), "Divides leaf by leaf and rounds up: how many tiles "
        "cover it.", _ceil_div, kinds=(COUNTED, (*COUNTED, TileType)),
    ),
    "append_to_rank": OpForm(
        ("layout or tuple", "layout or tuple"), "Appends the second operand until there are so many modes.",
        _rank(append=True), ONE, infers=True,
    ),
    "prepend_to_rank": OpForm(
        ("layout or tuple", "layout or tuple"), "Prepends the second operand until there are so many modes.",
        _rank(append=False), ONE, infers=True,
    ),
    "to_int_tuple": OpForm(
        ("shape, stride, coord or int_tuple",), "The same numbers as an int_tuple.",
        _to(IntTupleType, ShapeType, StrideType, CoordType, IntTupleType), plain=True,
    ),
    "to_shape": OpForm(("int_tuple",), "The same numbers as a shape.", _to(ShapeType, IntTupleType), plain=True),
    "to_stride": OpForm(("int_tuple",), "The same numbers as a stride.", _to(StrideType, IntTupleType), plain=True),
    "to_coord": OpForm(("int_tuple",), "The same numbers as a coordinate.", _to(CoordType, IntTupleType), plain=True),
}  # fmt: skip
