"""Random cases: an operation and its operands, which are layouts, shapes and numbers.

Sizes of 1, strides of 0, negative strides, steps along coordinates and numbers that only a kernel knows are frequent.
Cases come in groups that combine few operands in all ways: a compiler of C++ then meets most types more than once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolchain.cute import layout as ours
from toolchain.cute.layout import Basis, Layout
from toolchain.cute.layout.tuples import IntTuple, flatten

from .known import Known

SIZES = (1, 1, 2, 2, 3, 4, 4, 6, 8)
STRIDES = (0, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 48, -1, -2, -8)
FACTORS = (2, 4)  # elements that become one


@dataclass(frozen=True)
class Case:
    """`operation` of OPERATIONS, and its operands."""

    operation: str
    operands: tuple[Any, ...]

    @property
    def kinds(self) -> list[str]:
        """What is special about its numbers, of `size 1`, `stride 0`, `negative`, `E<i>` and `?`."""
        layouts = [operand for operand in self.operands if isinstance(operand, Layout)]
        strides = [leaf for layout in layouts for leaf in flatten(layout.stride)]
        numbers = [leaf.scale if isinstance(leaf, Basis) else leaf for leaf in strides]
        found = {
            "size 1": any(isinstance(leaf, int) and leaf == 1 for layout in layouts for leaf in flatten(layout.shape)),
            "stride 0": any(isinstance(number, int) and number == 0 for number in numbers),
            "negative": any(isinstance(number, int) and number < 0 for number in numbers),
            "E<i>": any(isinstance(stride, Basis) for stride in strides),
            "?": any(isinstance(leaf, Known) for operand in self.operands for leaf in _leaves(operand)),
        }
        return [kind for kind, there in found.items() if there]

    def __str__(self) -> str:
        return f"{self.operation}({', '.join(map(str, self.operands))})"


def _leaves(operand: Any) -> Iterator[Any]:
    parts = (operand.shape, operand.stride) if isinstance(operand, Layout) else operand
    for leaf in flatten(parts):
        yield leaf.scale if isinstance(leaf, Basis) else leaf


@dataclass(frozen=True)
class Operation:
    """`cpp`: the expression of CuTe, with `{0}`, `{1}` for operands. `operands`: makers of each. `ours`: the function
    of the algebra. `unknown`: CuTe takes numbers that are not known. `weight`: its share of the cases."""

    cpp: str
    ours: Callable[..., Any]
    operands: tuple[Callable[[random.Random], Any], ...]
    unknown: bool = True
    weight: int = 2


def shape(draw: random.Random, depth: int = 1, modes: int = 3) -> IntTuple:
    """A nested shape of small sizes."""
    if depth < 0 or (depth == 0 and draw.random() < 0.75):
        return draw.choice(SIZES)
    return tuple(shape(draw, depth - 1) for _ in range(draw.randint(1, modes)))


def layout(draw: random.Random) -> Layout:
    """Any layout; half have strides that count, so that most operations can use them."""
    made = shape(draw) if draw.random() < 0.9 else draw.choice(SIZES)
    return Layout(made, _strides(draw, made))


def flat_layout(draw: random.Random) -> Layout:
    """A layout without nesting."""
    made = tuple(draw.choice(SIZES) for _ in range(draw.randint(1, 3)))
    return Layout(made, _strides(draw, made))


def _strides(draw: random.Random, made: IntTuple) -> IntTuple:
    return _counted(draw, made) if draw.random() < 0.5 else _any(draw, made)


def _any(draw: random.Random, made: IntTuple) -> IntTuple:
    return tuple(_any(draw, part) for part in made) if isinstance(made, tuple) else draw.choice(STRIDES)


def _counted(draw: random.Random, made: IntTuple) -> IntTuple:
    """Strides that grow in some order, with a few gaps, zeros and signs."""
    sizes = flatten(made)
    order = draw.sample(range(len(sizes)), len(sizes)) if draw.random() < 0.5 else range(len(sizes))
    strides, step = [0] * len(sizes), draw.choice((1, 1, 1, 2))
    for mode in order:
        strides[mode] = step * draw.choice((1, 1, 1, 1, 1, 1, 0, -1))
        step *= sizes[mode] * draw.choice((1, 1, 1, 2))
    return _nest(strides, made)


def _nest(strides: list[int], made: IntTuple) -> IntTuple:
    return tuple(_nest(strides, part) for part in made) if isinstance(made, tuple) else strides.pop(0)


def injection(draw: random.Random) -> Layout:
    """A layout that maps no two indices alike, as a left inverse needs it."""
    while True:
        made = layout(draw)
        if len(set(made.offsets())) == ours.size(made):
            return made


def tensor(draw: random.Random) -> Layout:
    """A layout of two modes, as a matrix has them."""
    made = (shape(draw, 0, 2), shape(draw, 0, 2))
    return Layout(made, _strides(draw, made))


def coordinates(draw: random.Random) -> Layout:
    """A layout whose strides step along the two modes of a matrix."""
    sizes = tuple(draw.choice(SIZES) for _ in range(draw.randint(1, 3)))
    return Layout(sizes, tuple(Basis(draw.choice((1, 1, 1, 2, 4, 3)), (draw.randint(0, 1),)) for _ in sizes))


def identity(draw: random.Random) -> Layout:
    """A layout of at most three modes whose offsets are coordinates: each mode steps along its own."""
    return ours.make_identity_layout(tuple(shape(draw, 0, 2) for _ in range(draw.randint(1, 3))))


def any_layout(draw: random.Random) -> Layout:
    """A layout of offsets, or of coordinates."""
    return layout(draw) if draw.random() < 0.7 else identity(draw)


def tile(draw: random.Random) -> tuple[int, ...]:
    """Sizes for two modes."""
    return (draw.choice(SIZES), draw.choice(SIZES))


def target(draw: random.Random) -> IntTuple:
    """A size or a shape that a layout is to fill."""
    return draw.choice((draw.randint(1, 64), shape(draw, 1)))


def grown(draw: random.Random) -> tuple[int, ...]:
    """A shape of three sizes that most blocks divide."""
    return tuple(draw.choice((8, 12, 24, 48)) for _ in range(3))


def index(draw: random.Random) -> int:
    """An index, also beyond a layout's size."""
    return draw.randint(0, 120)


def factor(draw: random.Random) -> int:
    """How many elements become one."""
    return draw.choice(FACTORS)


OPERATIONS: Mapping[str, Operation] = {
    "composition": Operation("composition({0}, {1})", ours.composition, (any_layout, layout), weight=8),
    "composition along coordinates": Operation(
        "composition({0}, {1})", ours.composition, (tensor, coordinates), weight=6
    ),
    "composition with a tile": Operation("composition({0}, {1})", ours.composition, (tensor, tile)),
    "coalesce": Operation("coalesce({0})", ours.coalesce, (any_layout,), weight=1),
    "filter": Operation("filter({0})", ours.filter_layout, (layout,), weight=1),
    "complement": Operation("complement({0}, {1})", ours.complement, (layout, target), weight=3),
    "right_inverse": Operation("right_inverse({0})", ours.right_inverse, (layout,), unknown=False, weight=1),
    "left_inverse": Operation("left_inverse({0})", ours.left_inverse, (injection,), unknown=False, weight=1),
    "logical_divide": Operation("logical_divide({0}, {1})", ours.logical_divide, (any_layout, layout), weight=3),
    "logical_divide by a tile": Operation("logical_divide({0}, {1})", ours.logical_divide, (tensor, tile)),
    "zipped_divide": Operation("zipped_divide({0}, {1})", ours.zipped_divide, (tensor, tile), weight=1),
    "tiled_divide": Operation("tiled_divide({0}, {1})", ours.tiled_divide, (tensor, tile), weight=1),
    "flat_divide": Operation("flat_divide({0}, {1})", ours.flat_divide, (tensor, tile), weight=1),
    "logical_product": Operation("logical_product({0}, {1})", ours.logical_product, (layout, layout), weight=3),
    "zipped_product": Operation("zipped_product({0}, {1})", ours.zipped_product, (tensor, tile), weight=1),
    "tiled_product": Operation("tiled_product({0}, {1})", ours.tiled_product, (tensor, tile), weight=1),
    "flat_product": Operation("flat_product({0}, {1})", ours.flat_product, (tensor, tile), weight=1),
    "blocked_product": Operation("blocked_product({0}, {1})", ours.blocked_product, (layout, flat_layout)),
    "raked_product": Operation("raked_product({0}, {1})", ours.raked_product, (layout, flat_layout)),
    "tile_to_shape": Operation("tile_to_shape({0}, {1})", ours.tile_to_shape, (flat_layout, grown)),
    "cosize": Operation("cosize({0})", ours.cosize, (any_layout,), weight=1),
    "crd2idx": Operation("crd2idx({0}, {1})", ours.crd2idx, (index, any_layout), weight=3),
    "idx2crd": Operation("idx2crd({0}, {1})", ours.idx2crd, (index, shape), weight=3),
    "upcast": Operation("upcast<decltype({1})::value>({0})", ours.upcast, (layout, factor), weight=1),
    "downcast": Operation("downcast<decltype({1})::value>({0})", ours.downcast, (layout, factor), weight=1),
}  # fmt: skip


def unknown(draw: random.Random, operand: Any) -> Any:
    """An operand some of whose sizes and strides only a kernel knows. A number below zero stays: those are not."""

    def leaf(value: Any) -> Any:
        if isinstance(value, Basis):
            return Basis(leaf(value.scale), value.path)
        return Known.of(value) if value >= 0 and draw.random() < 0.5 else value

    def each(nested: IntTuple) -> IntTuple:
        return tuple(map(each, nested)) if isinstance(nested, tuple) else leaf(nested)

    return Layout(each(operand.shape), each(operand.stride)) if isinstance(operand, Layout) else each(operand)


def groups(draw: random.Random, size: int, *, dynamic: float = 0.35) -> Iterator[list[Case]]:
    """Groups of about `size` cases, without end: each of one operation, some with numbers that are not known."""
    names = list(OPERATIONS)
    weights = [OPERATIONS[name].weight for name in names]
    while True:
        name = draw.choices(names, weights)[0]
        operation = OPERATIONS[name]
        hidden = operation.unknown and draw.random() < dynamic
        count = size if len(operation.operands) == 1 else round(size**0.5)
        pools: list[list[Any]] = []
        for maker in operation.operands:
            drawn = [maker(draw) for _ in range(count)]
            keep = maker is factor
            pools.append([operand if keep or not hidden else unknown(draw, operand) for operand in drawn])
        if len(pools) == 1:
            yield [Case(name, (operand,)) for operand in pools[0]]
        else:
            yield [Case(name, (first, second)) for first in pools[0] for second in pools[1]]
