"""Layouts of the same memory in elements of another width."""

from __future__ import annotations

import math
from typing import Any

from .layout import Layout, leaves
from .leaves import LayoutError, ceil_div, is_static
from .tuples import like


def recast_layout(layout: Layout, new_bits: int, old_bits: int) -> Layout:
    """A layout of elements of `old_bits` as one of elements of `new_bits`. Raises LayoutError if one is cut."""
    up, down = factors(new_bits, old_bits)
    return downcast(upcast(layout, up), down)


def factors(new_bits: int, old_bits: int) -> tuple[int, int]:
    """How many elements become one, and how many then become of it. Raises LayoutError for elements without bits."""
    if new_bits < 1 or old_bits < 1:
        raise LayoutError(f"elements have at least 1 bit, not {min(new_bits, old_bits)}")
    shared = math.gcd(new_bits, old_bits)
    return new_bits // shared, old_bits // shared


def upcast(layout: Layout, factor: int) -> Layout:
    """`factor` elements become one. Raises LayoutError if a mode would be cut."""
    return _nested([_up(extent, stride, factor, layout) for extent, stride in leaves(layout)], layout)


def downcast(layout: Layout, factor: int) -> Layout:
    """One element becomes `factor`, side by side. Raises LayoutError unless one mode has stride 1: it holds them."""
    if factor == 1:
        return layout
    beside = [stride for _, stride in leaves(layout) if isinstance(stride, int) and abs(stride) == 1]
    if beside != [1]:
        raise LayoutError(
            f"{layout}: where an element becomes {factor}, they need one mode of stride 1 to lie in, and there "
            + ("are several" if beside.count(1) > 1 else "is one of stride -1" if beside else "is none")
        )
    return _nested([_down(extent, stride, factor) for extent, stride in leaves(layout)], layout)


def _up(extent: Any, stride: Any, factor: int, layout: Layout) -> tuple[Any, Any]:
    if factor == 1 or stride == 0:
        return extent, stride
    if not is_static(stride):
        return extent, stride // factor
    if abs(stride) % factor and factor % abs(stride):
        raise LayoutError(f"{layout}: a stride of {stride} neither divides {factor} nor is a multiple of it")
    if -factor < stride < 0 and extent != 1:
        raise LayoutError(f"{layout}: steps of {stride} cut the elements of {factor}")
    elements = ceil_div(factor, abs(stride))  # of this mode in one new element
    if is_static(extent) and extent % elements and elements % extent:
        raise LayoutError(f"{layout}: {factor} elements of one do not fit a mode of {extent}:{stride}")
    sign = -1 if stride < 0 else 1
    return ceil_div(extent, elements), sign * ceil_div(abs(stride), factor)


def _down(extent: Any, stride: Any, factor: int) -> tuple[Any, Any]:
    if is_static(stride) and stride == 1:
        return extent * factor, stride
    return extent, stride * factor


def _nested(pairs: list[tuple[Any, Any]], layout: Layout) -> Layout:
    shape = like((extent for extent, _ in pairs), layout.shape)
    return Layout(shape, like((stride for _, stride in pairs), layout.shape))
