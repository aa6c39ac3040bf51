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
    s, here, lane = w.step, w.here, w.lane
    units, set_ = s.units[0 if head else 1], layer % 2
    slots = units // s.rows
    first = layer * s.steps(head=head) + s.steps(head=head) - 2 * slots
    of_norm = w.sums_of_norm()
    w.save(w.tiles(first, units // ROWS, w.normed(w.gain_2, of_norm), s.bits, of_norm), set_, of_norm.made())
    w.meet()
    norm, hidden = w.norm(set_, units // ROWS), list[Any]()
    for batch in range(-(-units // WARP)):
        unit = (lane + batch * WARP).minimum(units - 1) - batch * WARP
        terms = w.of_fc.values(batch)
        hidden.append(gelu(w.result(w.row_total(set_, unit + batch * WARP), norm, terms)))
    own = w.warp * COLUMNS
    put_units(w.pairs, own, hidden, lane, s.bits)
    arch.instruction("warp_sync")
    sums = [[cute.scalar(0.0)] * 4 for _ in range(4)]
    for i in range(slots):
        operand = unit_operand(w.pairs, own, i * s.rows, lane, s.bits)
        here.full.wait(first + slots + i)
        add_units(here.ring, here.chunk(first + slots + i) + own, lane, operand, sums, s.bits)
        w.arrive(first + slots + i)
    _add_up(w, layer, pair_of_units(sums, lane))


def own_column(w: Warps) -> Any:
    """The column whose sum a lane of the first 8 adds up over the cluster."""
    return w.here.rank * (w.step.width // w.step.cluster) + _told_column(w) + w.lane // 4 % 2


def _told_column(w: Warps) -> Any:
    """The first of two columns of the block's that a lane reads."""
    return w.warp * ROWS + w.lane % 4 * 2


def _add_up(w: Warps, layer: Any, pair: list[Any]) -> None:
    """The block's sums of the lane's pair of columns, added up by the cluster, and then to the other clusters'."""
    s, here, lane = w.step, w.here, w.lane
    each, own = s.width // s.cluster // 2, w.warp * WARP + unit_pair(lane)  # pairs of a block, the lane's pair
    w.tell(here.columns, (here.rank * each + own % each) * 2, own // each, layer, *pair)
    found = w.words(COLUMNS_TOLD, here.columns, lane // 4 * (2 * each) + _told_column(w), 2, layer)
    (mine,) = across(fold(found, lane, (4,)), 16, 8)
    if not s.folded:
        mine = mine * w.out_scale[0]
    with cute.when(cute.less(lane, 8)):
        w.add(layer, 1, own_column(w), mine)
