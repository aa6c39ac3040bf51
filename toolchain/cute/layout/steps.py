"""Steps through the modes of a layout: what a mode of another layout meets there, and where several carry.

An index counts through the modes of a layout as through the digits of a number, and the last one has no end. A step is
a layout of these digits only while no digit overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .layout import Layout, coalesce, from_leaves, leaves
from .leaves import LayoutError, ceil_div, is_static, smaller

Modes = Sequence[tuple[Any, Any]]  # sizes and strides
Reach = list[Any]  # the last step's index in each mode, with the step's sign; None if it is not known


def endless(layout: Layout) -> Modes:
    """The fewest modes that map every index as the layout does, also those beyond its size."""
    *first, (size, stride) = leaves(layout) or [(1, 0)]
    # A last mode of size 1 counts beyond the layout's size, so it stays: any other size keeps it.
    return leaves(coalesce(from_leaves([*first, (2 if size == 1 else size, stride)])))


def walk(modes: Modes, left: Any, step: Any) -> tuple[Layout, Reach]:
    """`left` steps through modes: the layout of what they meet, and how far they go.

    A negative step goes the same way as a positive one and gives negative offsets. Raises LayoutError for steps that
    leave a mode unevenly.
    """
    sign = -1 if is_static(step) and step < 0 else 1
    step = step * sign
    made, reach = list[tuple[Any, Any]](), Reach()

    def take(count: Any, stride: Any) -> None:
        made.append((count, step * sign * stride))

    def reaches(count: Any) -> None:
        reach.append((count - 1) * step * sign if is_static(count, step) else None)

    for extent, stride in modes[:-1]:
        reached = ceil_div(extent, step)  # the steps that stay within this mode
        if left == 1 or reached == 1:
            if left != 1 and is_static(step, extent) and step % extent:
                raise _uneven(step, extent)
            reach.append(0)
            step = ceil_div(step, extent)
            continue
        taken = smaller(left, reached)
        if is_static(left, taken) and left != taken and (left % taken or (is_static(step, extent) and extent % step)):
            raise _uneven(step, extent)
        take(taken, stride)
        reaches(taken)
        left, step = left // taken, ceil_div(step, extent)
    reaches(left)
    if not made or left != 1:
        take(left, modes[-1][1])
    return from_leaves(made), reach


def refuse_carries(modes: Modes, reaches: Sequence[Reach]) -> None:
    """Raises LayoutError if the sum of several walks overflows a mode, where each alone stays within it."""
    rising = [[step for step in mode if step and step > 0] for mode in zip(*reaches, strict=True)]
    falling = [[-step for step in mode if step and step < 0] for mode in zip(*reaches, strict=True)]
    moved = [mode for mode in range(len(modes)) if reaches and (rising[mode] or falling[mode])]
    if any(rising) and any(falling) and len(moved) > 1:
        raise LayoutError("steps up and steps down meet in different modes, and borrow from one another")
    for steps in (rising, falling):
        carried = 0
        for (extent, stride), (_, after), mine in zip(modes, modes[1:], steps, strict=False):
            greatest = sum(mine) + carried
            carried = greatest // extent if is_static(extent) else 0
            if carried and not (is_static(stride, after) and after == extent * stride):
                raise LayoutError(f"its modes together carry from a mode of {extent}:{stride} into the next, {after}")


def _uneven(step: Any, extent: Any) -> LayoutError:
    return LayoutError(f"steps of {step} do not fit a mode of {extent}")
