"""The MLP of a layer of eight texts: a block's hidden units, to its cluster, and the columns that it makes of all."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute

from ..decode.lanes import COLUMNS, ROWS, exchange, gelu
from ..decode.plan import CLUSTER
from .block import place_of
from .plan import HIDDEN, PARTS, TEXTS, UNITS
from .products import rounded_pair, times, total_of
from .warps import TextsWarps


def mlp(w: TextsWarps, layer: Any) -> None:
    s, here = w.step, w.here
    first = layer * here.steps + s.qkv_slots + here.attended + 1
    of_norm = w.sums_of_norm()
    w.save(w.tiles(first, UNITS // ROWS, w.normed(w.gain_2), s.bits), of_norm)
    w.meet()
    for i in range(0, TEXTS, s.warps):
        with cute.when(cute.less(w.warp + i, TEXTS)):
            _tell_units(w, layer, i // s.warps)
    sums = None
    for part in range(PARTS):
        number = first + UNITS // s.rows + part // s.tiles
        here.full.wait(number)
        tile = w.projection(number, part % s.tiles)
        if part % s.tiles == s.tiles - 1:
            w.arrive(number)
        x = w.operand_of(HIDDEN, here.units, part * (TEXTS * COLUMNS // 2), layer)
        sums = times([tile], [x], s.bits, sums)
    w.add(layer, 1, total_of(sums or [], 1)[0], w.out_scale)
    w.meet()  # sums of rows have been read


def _tell_units(w: TextsWarps, layer: Any, turn: int) -> None:
    """A text's hidden units, a lane each, in pairs to all blocks: each lane of a pair to half of them."""
    here, lane, text = w.here, w.lane, w.text_of(turn)
    value = gelu(w.result(w.row_total(text, lane), w.norm(turn), w.of_fc.values(0)))
    other, odd = exchange(value, 1), cute.same(lane % 2, 1)
    word = rounded_pair(cute.select(odd, other, value), cute.select(odd, value, other), w.step.bits)
    part, pair = here.rank * UNITS // COLUMNS, (here.rank * UNITS % COLUMNS + lane) // 2
    at = part * (TEXTS * COLUMNS // 2) + place_of(text, pair)
    for i in range(CLUSTER // 2):
        w.tell(here.units, at, lane % 2 * (CLUSTER // 2) + i, layer, word)
