"""The MLP of a layer of eight texts: a block's hidden units, to its cluster, and the columns that it makes of all."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute

from ..decode.lanes import CHUNK, COLUMNS, ROWS, exchange, gelu
from ..decode.plan import RANKS
from .block import place_of
from .plan import HIDDEN, PARTS, TEXTS, UNITS
from .products import bf16_pair, columns, operand, times, total_of
from .warps import TextsWarps


def mlp(w: TextsWarps, layer: Any) -> None:
    s, here, lane = w.step, w.here, w.lane
    first = layer * here.steps + here.attended + 4
    squares = w.squares()
    w.save(w.tiles(first, UNITS // ROWS, operand(w.x)), squares)
    w.meet()
    for i in range(0, TEXTS, s.warps):
        text = w.warp + i
        with cute.when(cute.less(text, TEXTS)):
            _tell_units(w, layer, text)
    sums = None
    for part in range(PARTS):
        number = first + UNITS // ROWS + part
        here.full.wait(number)
        tile = columns(here.ring, here.chunk(number) + w.warp * (ROWS * CHUNK), CHUNK, lane)
        w.arrive(number)
        x = w.operand_of(HIDDEN, here.units, part * (TEXTS * COLUMNS // 2), layer)
        sums = times([tile], [x], sums)
    w.add(layer, 1, total_of(sums or [], 1)[0])
    w.meet()  # sums of rows have been read


def _tell_units(w: TextsWarps, layer: Any, text: Any) -> None:
    """A text's hidden units, a lane each, in pairs to all blocks: each lane of a pair to half of them."""
    here, lane = w.here, w.lane
    value = gelu(w.row_total(text, lane).fma(w.norm(text), w.fc_bias[0].to("f32")))
    other, odd = exchange(value, 1), cute.same(lane % 2, 1)
    word = bf16_pair(cute.select(odd, other, value), cute.select(odd, value, other))
    part, pair = here.rank * UNITS // COLUMNS, (here.rank * UNITS % COLUMNS + lane) // 2
    at = part * (TEXTS * COLUMNS // 2) + place_of(text, pair)
    for i in range(RANKS // 2):
        w.tell(here.units, at, lane % 2 * (RANKS // 2) + i, layer, word)
