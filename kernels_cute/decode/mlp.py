"""The MLP of a layer: a block's hidden units, and their part of the sums of the residual stream."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from .lanes import COLUMNS, ROWS, WARP, across, fold, gelu
from .plan import COLUMNS_TOLD
from .products import add_units, pair_of_units, put_units, unit_operand, unit_pair
from .warps import Warps


def mlp(w: Warps, layer: Any, *, head: bool) -> None:
    with w.lane_again():
        _mlp(w, layer, head=head)


def _mlp(w: Warps, layer: Any, *, head: bool) -> None:
    s, lane = w.step, w.lane
    units, set_ = s.units[0 if head else 1], layer % 2
    slots = units // s.rows
    first = layer * s.steps(head=head) + s.steps(head=head) - 2 * slots
    of_norm = w.sums_of_norm()
    w.save_products(first, units // ROWS, w.normed(w.gain_2, of_norm), set_, of_norm)
    w.meet()
    norm, hidden = w.norm(set_, units // ROWS), list[Any]()
    for batch in range(-(-units // WARP)):
        unit = (lane + batch * WARP).minimum(units - 1) - batch * WARP
        terms = w.of_fc.values(batch)
        hidden.append(gelu(w.result(w.row_total(set_, unit + batch * WARP), norm, terms)))
    _add_up(w, layer, pair_of_units(_sums_of_units(w, first + slots, units, hidden), lane))


def _sums_of_units(w: Warps, first: Any, units: int, hidden: list[Any]) -> list[list[Any]]:
    """What hidden units give the warp's columns, as `add_units` has it. `first`: their first slot."""
    s, here, lane, own = w.step, w.here, w.lane, w.warp * COLUMNS
    sums = [[cute.scalar(0.0)] * 4 for _ in range(4)]
    held = cute.make_fragment(16, "f32")  # the same, in a loop

    def add(number: Any, unit: Any) -> None:
        operand = unit_operand(w.pairs, own, unit, lane, s.bits)
        here.full.wait(number)
        add_units(here.ring, here.chunk(number) + own, lane, operand, sums, s.bits)
        w.arrive(number)

    if s.turns > 1:
        cute.fill(held, 0.0)
    for begin in range(0, units, COLUMNS):  # so many have a place
        put_units(w.pairs, own, hidden[begin // WARP : (begin + COLUMNS) // WARP], lane, s.bits)
        arch.instruction("warp_sync")
        number, count = first + begin // s.rows, min(COLUMNS, units - begin) // s.rows
        if s.turns == 1:
            for i in range(count):
                add(number + i, i * s.rows)
            continue
        for i in cute.range_(count):
            sums[:] = [[held[4 * j + k] for k in range(4)] for j in range(4)]
            add(number + i, i * s.rows)
            for k in range(16):
                held[k] = sums[k // 4][k % 4]
        sums[:] = [[held[4 * j + k] for k in range(4)] for j in range(4)]
    return sums


def own_column(w: Warps) -> Any:
    """The column whose sum a lane of the first ones adds up over the cluster."""
    return w.here.rank * (w.step.width // w.step.cluster) + _told_column(w) + w.lane // _of_a_block(w) % 2


def _of_a_block(w: Warps) -> int:
    """Lanes that read a block's columns."""
    return WARP // w.step.cluster


def _told_column(w: Warps) -> Any:
    """The first of two columns of the block's that a lane reads."""
    each = _of_a_block(w)
    return w.warp * (2 * each) + w.lane % each * 2


def _add_up(w: Warps, layer: Any, pair: list[Any]) -> None:
    """The block's sums of the lane's pair of columns, added up by the cluster, and then to the other clusters'."""
    s, here, lane = w.step, w.here, w.lane
    each, own = s.width // s.cluster // 2, w.warp * WARP + unit_pair(lane)  # pairs of a block, the lane's pair
    w.tell(here.columns, (here.rank * each + own % each) * 2, own // each, layer, *pair)
    lanes = _of_a_block(w)
    found = w.words(COLUMNS_TOLD, here.columns, lane // lanes * (2 * each) + _told_column(w), 2, layer)
    (mine,) = across(fold(found, lane, (lanes,)), *(mask for mask in (16, 8) if mask > lanes))
    if not s.folded:
        mine = mine * w.out_scale[0]
    with cute.when(cute.less(lane, 2 * lanes)):
        w.add(layer, 1, own_column(w), mine)
