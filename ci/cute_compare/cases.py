"""Random cases: an operation and its operands, which are layouts, shapes and numbers.

Sizes of 1, strides of 0, negative strides, steps along coordinates and numbers that only a kernel knows are frequent.
Cases come in groups that combine few operands in all ways: a compiler of C++ then meets most types more than once.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolchain.cute import layout as ours
from toolchain.cute.layout import Basis, Layout
from toolchain.cute.layout.tuples import flatten, text

from .known import Known
from .operands import (
    any_layout,
    coordinates,
    factor,
    flat_layout,
    grown,
    index,
    injection,
    layout,
    renumbered,
    shape,
    target,
    tensor,
    tile,
    unknown,
)

SMALL = 225  # cases of a group that takes g++ most of 1.5 GB


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
        operands = (str(one) if isinstance(one, Layout) else text(one) for one in self.operands)
        return f"{self.operation}({', '.join(operands)})"


def _leaves(operand: Any) -> Iterator[Any]:
    parts = (operand.shape, operand.stride) if isinstance(operand, Layout) else operand
    for leaf in flatten(parts):
        yield leaf.scale if isinstance(leaf, Basis) else leaf


@dataclass(frozen=True)
class Operation:
    """`cpp`: the expression of CuTe, with `{0}`, `{1}` for operands. `operands`: makers of each. `ours`: the function
    of the algebra. `unknown`: CuTe takes numbers that are not known. `weight`: its share of the groups. `size`: cases
    of a group; products take g++ so much memory that they come in small ones."""

    cpp: str
    ours: Callable[..., Any]
    operands: tuple[Callable[[random.Random], Any], ...]
    unknown: bool = True
    weight: int = 2
    size: int = 1600


OPERATIONS: Mapping[str, Operation] = {
    "composition": Operation("composition({0}, {1})", ours.composition, (any_layout, layout), weight=8),
    "composition along coordinates": Operation(
        "composition({0}, {1})", ours.composition, (tensor, coordinates), weight=6
    ),
    "composition with a tile": Operation("composition({0}, {1})", ours.composition, (tensor, tile)),
    "coalesce": Operation("coalesce({0})", ours.coalesce, (any_layout,), weight=1, size=SMALL),
    "filter": Operation("filter({0})", ours.filter_layout, (layout,), weight=1, size=SMALL),
    "complement": Operation("complement({0}, {1})", ours.complement, (layout, target), weight=3),
    "right_inverse": Operation(
        "right_inverse({0})", ours.right_inverse, (layout,), unknown=False, weight=1, size=SMALL
    ),
    "left_inverse": Operation(
        "left_inverse({0})", ours.left_inverse, (injection,), unknown=False, weight=1, size=SMALL
    ),
    "logical_divide": Operation("logical_divide({0}, {1})", ours.logical_divide, (any_layout, layout), weight=3),
    "logical_divide by a tile": Operation("logical_divide({0}, {1})", ours.logical_divide, (tensor, tile)),
    "zipped_divide": Operation("zipped_divide({0}, {1})", ours.zipped_divide, (tensor, tile), weight=1),
    "tiled_divide": Operation("tiled_divide({0}, {1})", ours.tiled_divide, (tensor, tile), weight=1),
    "flat_divide": Operation("flat_divide({0}, {1})", ours.flat_divide, (tensor, tile), weight=1),
    "logical_product": Operation(
        "logical_product({0}, {1})", ours.logical_product, (layout, layout), weight=3, size=SMALL
    ),
    "zipped_product": Operation("zipped_product({0}, {1})", ours.zipped_product, (tensor, tile), weight=1, size=SMALL),
    "tiled_product": Operation("tiled_product({0}, {1})", ours.tiled_product, (tensor, tile), weight=1, size=SMALL),
    "flat_product": Operation("flat_product({0}, {1})", ours.flat_product, (tensor, tile), weight=1, size=SMALL),
    "blocked_product": Operation("blocked_product({0}, {1})", ours.blocked_product, (layout, flat_layout), size=SMALL),
    "raked_product": Operation("raked_product({0}, {1})", ours.raked_product, (layout, flat_layout), size=SMALL),
    "tile_to_shape": Operation("tile_to_shape({0}, {1})", ours.tile_to_shape, (flat_layout, grown), size=SMALL),
    "cosize": Operation("cosize({0})", ours.cosize, (any_layout,), weight=1, size=SMALL),
    "crd2idx": Operation("crd2idx({0}, {1})", ours.crd2idx, (index, any_layout), weight=3),
    "idx2crd": Operation("idx2crd({0}, {1})", ours.idx2crd, (index, shape), weight=3),
    "upcast": Operation("upcast<decltype({1})::value>({0})", ours.upcast, (layout, factor), weight=1, size=SMALL),
    "downcast": Operation("downcast<decltype({1})::value>({0})", ours.downcast, (layout, factor), weight=1, size=SMALL),
}


VALUES = 5  # of the unknown numbers, for each combination of operands


def groups(draw: random.Random, *, share: float = 1.0, dynamic: float = 0.5) -> Iterator[list[Case]]:
    """Groups of cases, without end: each of one operation, about `dynamic` of them with numbers that are not known.
    `share`: of the size that an operation names."""
    names = list(OPERATIONS)
    weights = [OPERATIONS[name].weight for name in names]
    while True:
        name = draw.choices(names, weights)[0]
        operation = OPERATIONS[name]
        hidden = operation.unknown and draw.random() < dynamic
        wanted = max(1, round(operation.size * share / (VALUES if hidden else 1)))
        count = wanted if len(operation.operands) == 1 else round(wanted**0.5)
        pools: list[list[Any]] = []
        for maker in operation.operands:
            drawn = [maker(draw) for _ in range(count)]
            pools.append([unknown(draw, operand) if hidden and maker is not factor else operand for operand in drawn])
        cases = [Case(name, operands) for operands in itertools.product(*pools)]
        if hidden:
            for case in list(cases):
                cases += [
                    Case(name, tuple(renumbered(draw, operand) for operand in case.operands))
                    for _ in range(VALUES - 1 if "?" in case.kinds else 0)
                ]
        yield cases
