"""Swizzles and composed layouts: offsets whose bits are mixed, so that threads meet different memory banks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from . import tuples
from .compose import composition
from .coordinates import crd2idx
from .layout import Layout, coalesce, size
from .leaves import Dynamic, LayoutError
from .numbers import tuple_add
from .tuples import IntTuple

WIDTH = 32  # bits of an offset
_TEXT = re.compile(r"S<\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*>")


@dataclass(frozen=True)
class Swizzle:
    """XORs `bits` bits of an offset, from bit `base`, with those that lie `shift` higher (or lower if negative).

    Written `S<bits,base,shift>`. It is its own inverse. Raises LayoutError if the two
    fields overlap, or do not fit an offset's bits.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0:
            raise LayoutError(f"{self}: bits and base are not negative")
        if abs(self.shift) < self.bits:
            raise LayoutError(f"{self}: the shift is less than the number of bits, so the fields overlap")
        if self.bits + self.base + abs(self.shift) > WIDTH:
            raise LayoutError(f"{self}: the upper field ends beyond {WIDTH} bits")

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"

    @classmethod
    def parse(cls, text: str) -> Swizzle:
        """The swizzle in `S<bits,base,shift>`. Raises LayoutError."""
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise LayoutError(f"{text!r} is no swizzle: write S<bits,base,shift>")
        return cls(*map(int, found.groups()))

    def __call__(self, offset: Any) -> Any:
        if isinstance(offset, Dynamic):
            return offset.swizzled(self.bits, self.base, self.shift)
        mask = ((1 << self.bits) - 1) << self.base
        if self.shift >= 0:
            return offset ^ ((offset & (mask << self.shift)) >> self.shift)
        return offset ^ ((offset & mask) << -self.shift)


@dataclass(frozen=True)
class ComposedLayout:
    """The function c -> inner(offset + outer(c)), written `inner o offset o outer`. Its shape is that of `outer`."""

    inner: Swizzle | Layout
    offset: Any
    outer: Layout

    def __str__(self) -> str:
        return f"{self.inner} o {tuples.text(self.offset)} o {self.outer}"

    def __call__(self, coordinate: IntTuple) -> Any:
        return self.inner(tuple_add(self.offset, crd2idx(coordinate, self.outer)))

    @classmethod
    def parse(cls, text: str) -> ComposedLayout:
        """The layout in `inner o offset o outer`. Raises LayoutError."""
        parts = re.split(r"\s+o\s+", text.strip())
        if len(parts) != 3:
            raise LayoutError(f"{text!r}: a composed layout is written `inner o offset o outer`")
        inner = Swizzle.parse(parts[0]) if parts[0].startswith("S<") else Layout.parse(parts[0])
        return cls(inner, tuples.parse(parts[1]), Layout.parse(parts[2]))

    @property
    def shape(self) -> IntTuple:
        return self.outer.shape


def compose(outer: ComposedLayout | Layout, inner: Layout | int | tuple[Any, ...]) -> ComposedLayout | Layout:
    """`composition` for both kinds of layout: a composed one keeps its inner part and its offset."""
    if isinstance(outer, Layout):
        return composition(outer, inner)
    return ComposedLayout(outer.inner, outer.offset, composition(outer.outer, inner))


def coalesced(layout: ComposedLayout, profile: IntTuple = None) -> ComposedLayout:
    """A composed layout whose outer part is coalesced."""
    return ComposedLayout(layout.inner, layout.offset, coalesce(layout.outer, profile))


def bank_conflicts(layout: Layout | ComposedLayout, threads: Layout, element_bytes: int, width: int = 4) -> int:
    """How many times the busiest of 32 banks is used when these threads each reach one element at once; 1 is none.

    Banks are `width` bytes wide; threads that meet in the same bank and word share one access. Source: CUDA C++
    Programming Guide, "Shared Memory".
    """
    if element_bytes > width:
        raise LayoutError(f"an element of {element_bytes} bytes is wider than a bank")
    words: dict[int, set[int]] = {}
    for thread in range(size(threads)):
        word = layout(threads(thread)) * element_bytes // width
        words.setdefault(word % 32, set()).add(word)
    return max(map(len, words.values()))
