"""Composed layouts: the part at a coordinate, and elements of another width."""

from __future__ import annotations

from typing import Any

from . import tuples
from .compose import composition
from .coordinates import dice, slice_and_offset
from .layout import Layout, leaves, make_layout
from .leaves import LayoutError, is_static
from .numbers import tuple_add
from .recast import factors, recast_layout
from .swizzle import ComposedLayout, Swizzle
from .tuples import IntTuple, flatten


def slice_composed(layout: ComposedLayout, coordinate: IntTuple) -> ComposedLayout | Layout:
    """The modes that a coordinate leaves open; what its numbers reach goes into the offset.

    Under a swizzle, what the numbers reach outside of the bits that it mixes is left out, as from a slice of a plain
    layout. If the open modes do not reach both bits of any pair that the swizzle mixes, the result is a plain layout:
    an open bit then adds a number that the bits of the offset decide, `?` if these are not known. Source: CuTe.
    Raises LayoutError if the coordinate does not fit, and for a swizzle over numbers that are not known.
    """
    made, offset = slice_and_offset(layout.outer, coordinate)
    if isinstance(layout.inner, Layout):
        return ComposedLayout(layout.inner, tuple_add(layout.offset, offset), made)
    if not is_static(*flatten((layout.outer.shape, layout.outer.stride))):
        raise LayoutError(f"{layout}: which bits its parts reach is not known")
    if None not in flatten(coordinate):
        raise LayoutError(f"the coordinate {tuples.text(coordinate)} leaves no mode of {layout} open")
    closed = dice(layout.outer, coordinate)
    if closed.shape == ():
        return ComposedLayout(layout.inner, layout.offset, made)
    return _mixed(layout.inner, tuple_add(layout.offset, offset), _bits(closed) | _known(layout.offset), made)


def _mixed(swizzle: Swizzle, offset: Any, fixed: int, opened: Layout) -> ComposedLayout | Layout:
    """c -> swizzle(offset + opened(c)), less what the offset adds outside of the mixed bits. `fixed`: the bits that
    the offset may have."""
    reached = _bits(opened)
    if reached & (_known(offset) if is_static(offset) else fixed):
        return ComposedLayout(swizzle, offset, opened)  # they carry into one another
    upper = ((1 << swizzle.bits) - 1) << (swizzle.base + abs(swizzle.shift))
    lower = upper >> abs(swizzle.shift)
    active = reached & (upper | lower)
    if active & ~swizzle(active):
        return ComposedLayout(swizzle, _field(offset, swizzle, swizzle.base) + _field(
            offset, swizzle, swizzle.base + abs(swizzle.shift)), opened)  # fmt: skip
    return composition(_unmixed(swizzle, offset), opened)


def _unmixed(swizzle: Swizzle, offset: Any) -> Layout:
    """What each bit of an index adds under a swizzle, given the other bits."""
    low, high = [], []
    for bit in range(swizzle.bits):
        near, far = swizzle.base + bit, swizzle.base + bit + abs(swizzle.shift)
        source, target = (far, near) if swizzle.shift > 0 else (near, far)
        # A bit that is mixed into counts down where the other one is set; the other one takes it along.
        flipped = (1 << target) - _bit(offset, source) * (2 << target)
        along = (1 << source) + (1 << target) - _bit(offset, target) * (2 << target)
        low.append(Layout(2, flipped if target == near else along))
        high.append(Layout(2, flipped if target == far else along))
    first, middle = 1 << swizzle.base, swizzle.base + swizzle.bits
    last = swizzle.base + swizzle.bits + abs(swizzle.shift)
    between = Layout(1 << (abs(swizzle.shift) - swizzle.bits), 1 << middle)
    return make_layout(Layout(first, 1), *low, between, *high, Layout(1, 1 << last))


def _bit(offset: Any, number: int) -> Any:
    return offset // (1 << number) % 2


def _field(offset: Any, swizzle: Swizzle, first: int) -> Any:
    """The bits of a field of a swizzle, where they are."""
    return offset // (1 << first) % (1 << swizzle.bits) * (1 << first)


def _bits(layout: Layout) -> int:
    """The bits that its offsets have. All that it could reach if its strides are no powers of two."""
    reached = 0
    for extent, stride in leaves(layout):
        if extent != 1 and stride != 0:
            power = stride > 0 and stride & (stride - 1) == 0
            reached |= stride * ((1 << (extent - 1).bit_length()) - 1) if power else (1 << 40) - 1
    return reached


def _known(offset: Any) -> int:
    return offset if isinstance(offset, int) else 0


def recast_composed(layout: ComposedLayout, new_bits: int, old_bits: int) -> ComposedLayout:
    """A composed layout of elements of `old_bits` as one of elements of `new_bits`. Raises LayoutError if one is
    cut."""
    up, down = factors(new_bits, old_bits)
    offset = layout.offset
    if isinstance(offset, tuple) or (is_static(offset) and offset % up):
        raise LayoutError(f"{layout}: its offset of {tuples.text(offset)} is no whole number of elements of {new_bits}")
    inner = layout.inner
    if isinstance(inner, Swizzle):
        inner = _recast_swizzle(inner, up, down)
    else:
        inner = recast_layout(inner, new_bits, old_bits)
    return ComposedLayout(inner, offset // up * down, recast_layout(layout.outer, new_bits, old_bits))


def _recast_swizzle(swizzle: Swizzle, up: int, down: int) -> Swizzle:
    """Raises LayoutError if it mixes bits within an element, or if an element is no power of two."""
    if up & (up - 1) or down & (down - 1) or (1 << swizzle.base) % up:
        raise LayoutError(f"{swizzle} would mix the bits of an element")
    base = swizzle.base - (up.bit_length() - 1) + (down.bit_length() - 1)
    return Swizzle(swizzle.bits, base, swizzle.shift)
