"""Random operands: layouts, shapes and numbers.

Sizes of 1, strides of 0, negative strides, steps along coordinates and numbers that only a kernel knows are frequent.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from toolchain.cute.layout import Basis, Layout, make_identity_layout, size
from toolchain.cute.layout.tuples import IntTuple, flatten

from .known import Known

SIZES = (1, 1, 2, 2, 3, 4, 4, 6, 8)
STRIDES = (0, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 48, -1, -2, -8)
FACTORS = (2, 4)  # elements that become one


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
        if len(set(made.offsets())) == size(made):
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
    return make_identity_layout(tuple(shape(draw, 0, 2) for _ in range(draw.randint(1, 3))))


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


def unknown(draw: random.Random, operand: Any) -> Any:
    """An operand some of whose sizes and strides only a kernel knows. A number below zero stays: those are not."""

    return _each(lambda value: Known.of(value) if value >= 0 and draw.random() < 0.5 else value, operand)


def renumbered(draw: random.Random, operand: Any) -> Any:
    """The operand with other numbers where they are not known: its type in C++ is the same."""

    def other(value: Any) -> Any:
        return Known.of(draw.choice(SIZES) * draw.choice((1, 1, 2, 5))) if isinstance(value, Known) else value

    return _each(other, operand)


def _each(function: Callable[[Any], Any], operand: Any) -> Any:
    """A function of every number of an operand."""
    if isinstance(operand, Layout):
        return Layout(_each(function, operand.shape), _each(function, operand.stride))
    if isinstance(operand, tuple):
        return tuple(_each(function, part) for part in operand)
    return Basis(function(operand.scale), operand.path) if isinstance(operand, Basis) else function(operand)
