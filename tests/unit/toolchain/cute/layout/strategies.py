"""Layouts for tests of properties: small, so that every index can be tried."""

from __future__ import annotations

from hypothesis import strategies as st

from toolchain.cute.layout import Basis, Layout

SIZES = st.sampled_from((1, 2, 3, 4))


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2) -> object:
    if depth == 0 or draw(st.booleans()):
        return draw(SIZES)
    return tuple(draw(shapes(depth - 1)) for _ in range(draw(st.integers(1, 2))))


def _strided(draw: st.DrawFn, shape: object, least: int) -> object:
    if isinstance(shape, tuple):
        return tuple(_strided(draw, part, least) for part in shape)
    return draw(st.integers(least, 20))


@st.composite
def layouts(draw: st.DrawFn, least: int = 0) -> Layout:
    """Any layout of at most two levels, with strides from `least` on that may overlap."""
    shape = draw(shapes())
    return Layout(shape, _strided(draw, shape, least))


@st.composite
def bijections(draw: st.DrawFn) -> Layout:
    """A flat layout that reaches each offset below its size once: a column-major one with its modes permuted."""
    sizes = draw(st.lists(SIZES, min_size=1, max_size=3))
    order = draw(st.permutations(range(len(sizes))))
    strides, step = [0] * len(sizes), 1
    for mode in order:
        strides[mode] = step
        step *= sizes[mode]
    return Layout(tuple(sizes), tuple(strides))


@st.composite
def injections(draw: st.DrawFn) -> Layout:
    """A flat layout that maps no two indices alike, with holes between its modes."""
    sizes = draw(st.lists(SIZES, min_size=1, max_size=3))
    order = draw(st.permutations(range(len(sizes))))
    strides, step = [0] * len(sizes), 1
    for mode in order:
        step *= draw(st.integers(1, 3))
        strides[mode] = step
        step *= sizes[mode]
    return Layout(tuple(sizes), tuple(strides))


COORDINATES = ((0,), (1, 0), (1, 1), (2,))


@st.composite
def coordinate_injections(draw: st.DrawFn, largest_gap: int = 3) -> Layout:
    """A layout of coordinates that maps no two indices alike, with holes along each. Some are not stepped along."""
    sizes = draw(st.lists(SIZES, min_size=1, max_size=4))
    ends, strides = dict.fromkeys(COORDINATES, 1), dict[int, Basis]()
    for mode in draw(st.permutations(range(len(sizes)))):
        path = draw(st.sampled_from(COORDINATES))
        scale = ends[path] * draw(st.integers(1, largest_gap))
        strides[mode], ends[path] = Basis(scale, path), scale * sizes[mode]
    return Layout(tuple(sizes), tuple(strides[mode] for mode in range(len(sizes))))
