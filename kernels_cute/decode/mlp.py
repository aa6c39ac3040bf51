"""The MLP of a layer: a block's hidden units, and their part of the sums of the residual stream."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute

from .lanes import CHUNK, ROWS, WARP, across, floats, fold, gelu, of_lane
from .plan import RANKS
from .warps import Warps


def mlp(w: Warps, layer: Any, *, head: bool) -> None:
    s, here, lane = w.step, w.here, w.lane
    units, set_ = s.units[0 if head else 1], layer % 2
    tiles = units // ROWS
    first = layer * s.steps(head=head) + s.steps(head=head) - 2 * tiles
    mine = [(lane + batch).minimum(units - 1) for batch in range(0, units, WARP)]
    w.save(w.tiles(first, tiles, w.operand([w.x[0], w.x[1]])), set_, w.squares())
    w.meet()
    scale = w.scale(set_, tiles)
    hidden = [
        gelu(w.row_total(set_, batch, unit - batch * WARP).fma(scale, w.fc_bias[batch]))
        for batch, unit in enumerate(mine)
    ]
    made = [cute.scalar(0.0)] * CHUNK
    for i in range(tiles):
        number = first + tiles + i
        here.full.wait(number)
        for down in (0, 4):
            unit = i * ROWS + down
            factor = of_lane(hidden[unit // WARP], lane // 8 + unit % WARP)
            at = here.chunk(number) + (lane // 8 + down) * (s.width // CHUNK) + w.warp * CHUNK + w.chunk
            made = [one.fma(factor, so_far) for one, so_far in zip(floats(here.ring, at), made, strict=True)]
        w.arrive(number)
    _add_up(w, layer, fold(made, lane, (16, 8)))


def _add_up(w: Warps, layer: Any, pair: list[Any]) -> None:
    """The block's sums of the lane's pair of columns, added up by the cluster, and then to the other clusters'."""
    s, here, lane = w.step, w.here, w.lane
    each = s.width // RANKS // 2  # pairs of a block
    w.tell(here.columns, (here.rank * each + w.own % each) * 2, w.own // each, layer, *pair)
    column = w.warp * ROWS + lane % 4 * 2
    found = w.words(here.columns, lane // 4 * (2 * each) + column, 2, layer)
    mine = across(fold(found, lane, (4,))[0], 16, 8)
    with cute.when(cute.less(lane, 8)):
        w.add(layer, 1, here.rank * (2 * each) + column + lane // 4, mine)
