"""Whether two results are the same function."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from toolchain.cute.layout import Basis, Layout, LayoutError, complement, make_layout
from toolchain.cute.layout.compose import modes_along, step_through
from toolchain.cute.layout.tuples import congruent, flatten

from .cases import OPERATIONS, Case
from .cpp import Raw
from .known import number, settled

SAME, DIFFERENT, ROUNDED = "same", "different", "same, another rest"
OURS, THEIRS, BOTH = "refused by us", "refused by CuTe", "refused by both"
ANOTHER = "another inverse"  # of a layout that maps several indices alike, both are right
UNKEPT = "a condition unkept"  # on a number that is not known: told it, we refuse
MOST = 4096  # indices that are tried of a result, evenly spread


def ours(case: Case, *, known: bool = False) -> Any:
    """Our result with its values, or None if the algebra refuses. A division by a number that is 0 is refused too.
    `known`: the algebra is told every number."""
    operands = [_told(operand) for operand in case.operands] if known else case.operands
    try:
        made = OPERATIONS[case.operation].ours(*operands)
    except (LayoutError, ZeroDivisionError):
        return None
    return Raw(settled(made.shape), settled(made.stride)) if isinstance(made, Layout) else settled(made)


def _told(operand: Any) -> Any:
    return Layout(settled(operand.shape), settled(operand.stride)) if isinstance(operand, Layout) else settled(operand)


def verdict(case: Case, mine: Any, theirs: Any) -> str:
    """Compares our result of a case with CuTe's; None is a refusal."""
    if mine is None or theirs is None:
        return BOTH if mine is theirs else OURS if mine is None else THEIRS
    if not (isinstance(mine, Raw) and isinstance(theirs, Raw)):
        return SAME if _plain(mine) == _plain(theirs) else DIFFERENT
    if same(mine, theirs):
        return SAME
    # A rest that is rounded up has another size where the modes of a shape are joined before.
    if not congruent(theirs.shape, theirs.stride):
        return DIFFERENT
    if "divide" in case.operation and _same_start(mine, theirs):
        return ROUNDED
    if case.operation == "right_inverse" and _inverts(mine, case.operands[0]) and _inverts(theirs, case.operands[0]):
        return ANOTHER
    return UNKEPT if "?" in case.kinds and not _kept(case) else DIFFERENT


def _inverts(inverse: Raw, layout: Layout) -> bool:
    digits = _digits(inverse)
    return all(layout(_offset(digits, index).get((), 0)) == index for index in range(_size(digits)))


def _kept(case: Case) -> bool:
    """Whether the unknown numbers keep the conditions of a composition: its steps through their values are legal."""
    if "divide" not in case.operation and "composition" not in case.operation:
        return ours(case, known=True) is not None
    outer, inner = case.operands
    pairs = zip(outer, inner, strict=False) if isinstance(inner, tuple) else [(outer, inner)]
    try:
        for mode, tile in pairs:
            steps = tile if isinstance(tile, Layout) else Layout(tile)
            if "divide" in case.operation:
                steps = make_layout(steps, complement(steps, mode.shape))
            along = {
                path: [(number(size), settled(stride)) for size, stride in modes]
                for path, modes in modes_along(mode, steps).items()
            }
            step_through(along, _told(steps))
    except LayoutError:
        return False
    return True


def _plain(offset: Any) -> Any:
    """A coordinate without the zeros at its end; a coordinate of zeros is 0, and 2@1 is (0,2)."""
    if isinstance(offset, Basis):
        inner: Any = offset.scale
        for mode in reversed(offset.path):
            inner = (*[0] * mode, inner)
        return _plain(inner)
    if not isinstance(offset, tuple):
        return offset
    parts = list(map(_plain, offset))
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts) if parts else 0


def same(a: Raw, b: Raw) -> bool:
    """Whether two layouts have one size and map every index alike."""
    if not congruent(b.shape, b.stride):
        return False
    first, second = _digits(a), _digits(b)
    if first == second:
        return True
    size = _size(first)
    if size != _size(second):
        return False
    indices = range(0, size, 1 + size // MOST)
    return all(_offset(first, index) == _offset(second, index) for index in indices)


Digits = list[tuple[int, Any]]


def _digits(layout: Raw) -> Digits:
    """The sizes and strides from left to right, without sizes of 1, joined where one continues another."""
    made: Digits = []
    for size, stride in zip(flatten(layout.shape), flatten(layout.stride), strict=True):
        if size == 1:
            continue
        if made and made[-1][0] > 0 and stride == made[-1][1] * made[-1][0]:
            made[-1] = (made[-1][0] * size, made[-1][1])
        else:
            made.append((size, stride))
    return made


def _size(digits: Digits) -> int:
    made = 1
    for size, _ in digits:
        made *= max(size, 0)
    return made


def _offset(digits: Digits, index: int) -> dict[tuple[int, ...], int]:
    """By coordinate; an offset stands at the empty path. Zeros are left out."""
    made: dict[tuple[int, ...], int] = {}
    for size, stride in digits:
        path, scale = (stride.path, stride.scale) if isinstance(stride, Basis) else ((), stride)
        made[path] = made.get(path, 0) + index % size * scale
        index //= size
    return {path: value for path, value in made.items() if value}


def _same_start(a: Raw, b: Raw) -> bool:
    """Whether two layouts agree where both are defined, mode by mode: each has the tile and as much of the rest."""
    modes = [_modes(a), _modes(b)]
    if len(modes[0]) != len(modes[1]):
        return False
    sizes = [min(_size(x), _size(y)) for x, y in zip(*modes, strict=True)]
    places = itertools.product(*(range(0, size, 1 + size // 64) for size in sizes))
    return all(_sum(modes[0], place) == _sum(modes[1], place) for place in itertools.islice(places, MOST))


def _modes(layout: Raw) -> list[Digits]:
    if not isinstance(layout.shape, tuple):
        return [_digits(layout)]
    return [_digits(Raw(shape, stride)) for shape, stride in zip(layout.shape, layout.stride, strict=True)]


def _sum(modes: Sequence[Digits], place: Sequence[int]) -> dict[tuple[int, ...], int]:
    made: dict[tuple[int, ...], int] = {}
    for digits, index in zip(modes, place, strict=True):
        for path, value in _offset(digits, index).items():
            made[path] = made.get(path, 0) + value
    return {path: value for path, value in made.items() if value}
