"""A loop that does nothing but add up products of tiles along K, as one product of whole panels of the two matrices.

`for k: acc += A[i, k] x B[k, j]` is how matrix products are written, and step by step most of its time is Python's.
The products of the steps are added in the loop's order. Only without the sanitizer, which looks at every access.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..analysis.fields import Tile, enum, flag, integers, short_name, tile_of, view_type
from ..memory import views
from ..memory.memory import Trap
from ..memory.views import TileView
from ..numbers.chains import CHAIN, products
from ..numbers.elements import Array
from .codegen import Emitter, region_block

Place = tuple[TileView, int]  # a view, and its fixed index
MOST = 1 << 18  # elements of the products that are held at once: 1 MB, so that they stay in a cache


@dataclass(frozen=True)
class _Load:
    """A tile of a matrix. `along`: the dimension of K; `fixed`: the index of the other one; `zero`: see `views`;
    `turned`: rows become columns behind it."""

    op: Any
    along: int
    fixed: SSAValue
    zero: bool
    turned: bool = False

    def panel(self, view: TileView, steps: tuple[int, int], fixed: int, *, cut: bool) -> Array:
        """The tiles of all these steps, side by side; see `views.panel`."""
        try:
            found = views.panel(view, self.along, steps, fixed, zero=self.zero, cut=cut)
        except Trap as trap:
            trap.op = self.op
            raise
        return found.T if self.turned else found

    @property
    def sums_rows(self) -> bool:
        """Whether K is the dimension of rows in a product."""
        return (self.along == 0) != self.turned


@dataclass(frozen=True)
class _Loop:
    """`products`: for each value that the loop carries, which of the loads are multiplied for it."""

    loads: Sequence[_Load]
    products: Sequence[tuple[int, int]]


def find(emitter: Emitter, op: Any) -> _Loop | None:
    """The products of a `for`, if there is nothing else in it."""
    block = region_block(op.regions[0])
    induction, *carried = block.args
    *body, last = block.ops
    if flag(op, "unsignedCmp") or short_name(last) != "continue" or emitter.ref(op.operands[2]) != "1":
        return None
    inside: set[SSAValue] = {*block.args, *(result for each in body for result in each.results)}
    loads: dict[SSAValue, _Load] = {}
    made: dict[SSAValue, tuple[SSAValue, SSAValue, SSAValue]] = {}
    for each in body:
        if (load := _load(emitter, each, induction, inside)) is not None:
            loads[each.results[0]] = load
        elif short_name(each) == "permute" and each.operands[0] in loads and integers(each, "permutation") == (1, 0):
            loads[each.results[0]] = replace(loads.pop(each.operands[0]), turned=True)
        elif short_name(each) == "mmaf" and each.results[0] not in emitter.seen:
            made[each.results[0]] = (each.operands[0], each.operands[1], each.operands[2])
        else:
            return None
    places = {value: number for number, value in enumerate(loads)}
    found: list[tuple[int, int]] = []
    for value, argument in zip(last.operands, carried, strict=True):
        if value not in made:
            return None
        left, right, before = made.pop(value)
        if before is not argument or left not in loads or right not in loads:
            return None
        if loads[left].sums_rows or not loads[right].sums_rows:
            return None
        found.append((places[left], places[right]))
    return _Loop(tuple(loads.values()), found) if found and not made else None


def _load(emitter: Emitter, op: Any, induction: SSAValue, inside: set[SSAValue]) -> _Load | None:
    """A load of a tile of two dimensions, whose index is the loop's in one of them; nobody asks for its token."""
    if short_name(op) != "load_view_tko" or enum(op, "memory_ordering_semantics") != "weak":
        return None
    kind, index = view_type(op.view), list(op.index)
    if kind.sparse_dim is not None or kind.packed is not None or kind.steps != kind.tile or len(index) != 2:
        return None
    along = index.index(induction) if induction in index else 0
    fixed = index[1 - along]
    if index[along] is not induction or fixed in inside or op.view in inside or op.results[1].uses.get_length():
        return None
    return _Load(op, along, fixed, kind.padding is None and emitter.zero)


def emit(emitter: Emitter, op: Any, loop: _Loop) -> None:
    """One call in place of the loop."""
    accumulators = region_block(op.regions[0]).args[1:]
    names = [emitter.ref(argument) for argument in accumulators]
    places = ", ".join(f"({emitter.ref(each.op.view)}, {emitter.ref(each.fixed)})" for each in loop.loads)
    run = emitter.bind(_run(loop, [tile_of(argument) for argument in accumulators]))
    low, high = (emitter.ref(value) for value in op.operands[:2])
    emitter.line(f"{', '.join(names)}, = {run}({low}, {high}, ({', '.join(names)},), ({places},))")


def _run(loop: _Loop, tiles: Sequence[Tile]) -> Callable[..., list[Array]]:
    """The loop as a function of its bounds, the sums before it, and the view and fixed index of each load."""
    depths = [view_type(each.op.view).tile[each.along] for each in (loop.loads[left] for left, _ in loop.products)]
    most = min(
        max(1, MOST * CHAIN // math.prod((*tile.shape, depth))) for tile, depth in zip(tiles, depths, strict=True)
    )

    def multiply(low: int, high: int, before: Sequence[Any], places: Sequence[Place]) -> list[Array]:
        sums = [np.array(np.broadcast_to(acc, tile.shape)) for acc, tile in zip(before, tiles, strict=True)]
        at_once = most if all(view.array is not None for view, _ in places) else 1
        for first in range(low, high, at_once):
            steps = first, min(first + at_once, high)
            shorter = _panels(loop, places, steps, cut=True)
            padded: list[Array] = []
            for acc, tile, depth, (left, right) in zip(sums, tiles, depths, loop.products, strict=True):
                parts = _products(shorter[left], shorter[right], depth)
                if parts is None or (parts.shape[1:] != tile.shape and not np.isfinite(parts).all()):
                    padded = padded or _panels(loop, places, steps, cut=False)
                    parts = products(padded[left], padded[right], depth)
                _add(acc, parts, tile.element.round)
        return sums

    return multiply


def _panels(loop: _Loop, places: Sequence[Place], steps: tuple[int, int], *, cut: bool) -> list[Array]:
    """What the loads give in these steps. `cut`: without the zeros around a tensor, if all padding is zeros."""
    pairs = list(zip(loop.loads, places, strict=True))
    cut = cut and all(load.zero or view.fill == 0 for load, (view, _) in pairs)
    return [load.panel(view, steps, fixed, cut=cut) for load, (view, fixed) in pairs]


def _products(left: Array, right: Array, depth: int) -> Array | None:
    """The products of panels that may be cut; None if that does not say what the padded ones make: one of them has
    nothing, or they are cut to different lengths along K."""
    return products(left, right, depth) if left.size and right.size and left.shape[1] == right.shape[0] else None


def _add(acc: Array, parts: Array, round_: Any) -> None:
    """Adds parts (Z, M, N) to as many rows and columns of `acc`, one part after the other. The others add zeros, unless
    a part is not finite: 0 x infinity is NaN."""
    here = acc[: parts.shape[1], : parts.shape[2]]
    if round_ is None:
        parts[0] += here
        np.add.reduce(parts, axis=0, out=here)
        return
    for part in parts:
        here += part
        acc[...] = round_(acc)
