"""Layout: a shape and strides, which together map a coordinate to an offset.

Source of the definitions: NVIDIA's CuTe IR, "Layout algebra". A layout is a function of an integer (column-major over
its shape) and of any coordinate that nests no deeper than its shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from . import tuples
from .evaluate import offset, offsets
from .leaves import Basis, LayoutError, Path, is_static
from .tuples import IntTuple, compact, congruent, flatten, like, product


@dataclass(frozen=True)
class Layout:
    """`shape` and `stride` are nested alike. Without strides the layout is column-major and has no gaps.

    Raises LayoutError if the two are not nested alike, or if a size is not positive.
    """

    shape: IntTuple
    stride: IntTuple = None

    def __post_init__(self) -> None:
        if self.stride is None:
            object.__setattr__(self, "stride", compact(self.shape))
        if not congruent(self.shape, self.stride):
            raise LayoutError(f"{self}: shape and stride are not nested alike")
        if any(isinstance(size, int) and size < 1 for size in flatten(self.shape)):
            raise LayoutError(f"{self}: a size is less than 1")

    def __str__(self) -> str:
        return f"{tuples.text(self.shape)}:{tuples.text(self.stride)}"

    def __call__(self, coordinate: IntTuple) -> Any:
        """The offset of a coordinate, or of an index; a tuple if a stride steps along a coordinate."""
        return offset(coordinate, self.shape, self.stride)

    def offsets(self) -> list[Any]:
        """The offset of each index, in order. The sizes are known."""
        return offsets(self.shape, self.stride)

    def __len__(self) -> int:
        return tuples.rank(self.shape)

    def __getitem__(self, mode: int) -> Layout:
        """A mode. A layout of one leaf is its own mode 0."""
        if isinstance(self.shape, tuple):
            return Layout(self.shape[mode], self.stride[mode])
        if mode not in (0, -1):
            raise IndexError(f"{self} has no mode {mode}")
        return self

    def __iter__(self) -> Iterator[Layout]:
        return (self[mode] for mode in range(len(self)))

    @classmethod
    def parse(cls, written: str) -> Layout:
        """The layout in a text such as `(4,(2,?)):(2,(1,8))`, or of a shape alone. Raises LayoutError."""
        shape, colon, stride = written.partition(":")
        return cls(tuples.parse(shape), tuples.parse(stride) if colon else None)


def make_layout(*modes: Layout) -> Layout:
    """A layout of these modes: `4:1` and `2:4` are `(4,2):(1,4)`."""
    return Layout(tuple(mode.shape for mode in modes), tuple(mode.stride for mode in modes))


def leaves(layout: Layout) -> list[tuple[Any, Any]]:
    """The size and the stride of each leaf."""
    return list(zip(flatten(layout.shape), flatten(layout.stride), strict=True))


def from_leaves(pairs: list[tuple[Any, Any]]) -> Layout:
    """A flat layout of sizes and strides. One pair gives a layout without parentheses."""
    if len(pairs) == 1:
        return Layout(*pairs[0])
    return Layout(tuple(size for size, _ in pairs), tuple(stride for _, stride in pairs))


def size(layout: Layout) -> Any:
    """The number of coordinates."""
    return product(layout.shape)


def cosize(layout: Layout) -> Any:
    """How many offsets lie from the least to the greatest, both counted: what an allocation needs.

    Of strides along coordinates, the product of what each coordinate takes. Raises LayoutError for a layout that adds
    a number and a coordinate.
    """
    split = [(stride.path, stride.scale) if isinstance(stride, Basis) else ((), stride) for _, stride in leaves(layout)]
    steps = [(path, abs(step)) for path, step in split]
    last: dict[Path, Any] = {}
    for extent, (path, step) in zip(flatten(layout.shape), steps, strict=True):
        if step != 0:
            last[path] = last.get(path, 0) + (extent + -1) * step
    refuse_sums(last, layout)
    return product(tuple(greatest + 1 for greatest in last.values()))


def refuse_sums(paths: Iterable[Path], layout: Layout) -> None:
    """Raises LayoutError if a layout steps along a coordinate and along a part of it, or along an offset."""
    if any(a != b and a == b[: len(a)] for a in paths for b in paths):
        raise LayoutError(f"{layout} adds a number and a coordinate")


def flat(layout: Layout) -> Layout:
    """The same modes without nesting. A layout of one leaf stays as it is."""
    if not isinstance(layout.shape, tuple):
        return layout
    return Layout(flatten(layout.shape), flatten(layout.stride))


def coalesce(layout: Layout, profile: IntTuple = None) -> Layout:
    """The layout with the fewest modes that maps every index alike.

    Modes of size 1 go, and a mode that continues the one before it is joined to it. Modes with numbers that are not
    known stay. `profile`: a tuple coalesces each of the first modes by itself, and leaves the others as they are.
    Raises LayoutError if it has more modes than the layout.
    """
    if isinstance(profile, tuple):
        if len(profile) > len(layout):
            raise LayoutError(f"{layout} has fewer modes than {tuples.text(profile)}")
        modes, rest = list(layout), list(layout)[len(profile) :]
        return make_layout(*(coalesce(mode, part) for mode, part in zip(modes, profile, strict=False)), *rest)
    pairs = leaves(layout)
    if len(pairs) == 1:
        return Layout(*pairs[0])
    joined: list[tuple[Any, Any]] = []
    for extent, stride in pairs:
        if extent == 1:
            continue
        if joined and _continues(joined[-1], stride, extent):
            joined[-1] = (joined[-1][0] * extent, joined[-1][1])
        else:
            joined.append((extent, stride))
    if not joined and pairs:
        return Layout(1, 0)
    return from_leaves(joined)


def _continues(before: tuple[Any, Any], stride: Any, extent: Any) -> bool:
    return is_static(*before, stride, extent) and stride == before[0] * before[1]


def filter_zeros(layout: Layout) -> Layout:
    """Modes of stride 0 become modes of size 1; the nesting stays."""
    kept = (1 if stride == 0 else extent for extent, stride in leaves(layout))
    return Layout(like(kept, layout.shape), layout.stride)


def filter_layout(layout: Layout) -> Layout:
    """Without modes of stride 0 or size 1, coalesced."""
    return coalesce(filter_zeros(layout))


def group_modes(layout: Layout, begin: int, end: int) -> Layout:
    """Modes begin to end - 1 as one mode. Raises LayoutError if there are no such modes."""
    if not 0 <= begin < end <= len(layout):
        raise LayoutError(f"{layout} has no modes {begin} to {end - 1}")
    modes = list(layout)
    return make_layout(*modes[:begin], make_layout(*modes[begin:end]), *modes[end:])


def select(layout: Layout, *modes: int) -> Layout:
    """These modes, in this order. Raises LayoutError if there is no such mode."""
    if odd := [mode for mode in modes if not 0 <= mode < len(layout)]:
        raise LayoutError(f"{layout} has no mode {odd[0]}")
    return make_layout(*(layout[mode] for mode in modes))
