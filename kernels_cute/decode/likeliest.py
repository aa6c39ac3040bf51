"""The likeliest token of those whose logits a block makes: the first one of the largest logit."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.layout import Layout

from .block import as_scalar
from .lanes import exchange
from .team import Team

INFINITY = float("inf")


class Likeliest:
    """Each lane's largest logit and its token. A logit that is NaN or positive infinity stays the largest."""

    def __init__(self, w: Team, visible: Any) -> None:
        """`visible`: so many tokens may be chosen, the others are there for the kernel."""
        self.w, self.visible = w, visible
        self.value, self.token = cute.make_fragment(1, "f32"), cute.make_fragment(1, "i32")
        self.values = cute.shared_tensor("f32", Layout(w.step.warps))  # of the warps
        self.tokens = cute.shared_tensor("i32", Layout(w.step.warps))
        cute.fill(self.value, -INFINITY)
        cute.fill(self.token, 0)

    def take(self, value: Any, token: Any) -> None:
        """One more logit of the lane, of a later token."""
        larger = cute.invert(cute.both(cute.invert(cute.less(self.value[0], value)), cute.less(value, INFINITY)))
        with cute.when(cute.both(larger, cute.less(token, self.visible))):
            self.value[0], self.token[0] = value, as_scalar(token)

    def tell(self, values: Any, tokens: Any, places: Any) -> None:
        """Writes the block's to its place, and to that of a block that the grid does not have."""
        s, lane = self.w.step, self.w.lane
        self._of_all_lanes()
        with cute.when(cute.same(lane, 0)):
            self.values[self.w.warp], self.tokens[self.w.warp] = self.value[0], self.token[0]
        self.w.meet()
        with cute.when(cute.same(self.w.warp, 0)):
            warp = lane.minimum(s.warps - 1)
            self.value[0], self.token[0] = self.values[warp], self.tokens[warp]
            self.tell_row(values, tokens, places, 0)

    def tell_row(self, values: Any, tokens: Any, places: Any, row: Any) -> None:
        """The same of a warp alone, whose lanes have those of a row."""
        s, here = self.w.step, self.w.here
        self._of_all_lanes()
        for place in (here.block, here.block + s.blocks):
            with cute.when(cute.both(cute.same(self.w.lane, 0), cute.less(place, places))):
                values[places * row + place], tokens[places * row + place] = self.value[0], self.token[0]

    def _of_all_lanes(self) -> None:
        for mask in (16, 8, 4, 2, 1):
            self._merge(exchange(self.value[0], mask), exchange(self.token[0], mask))

    def _merge(self, value: Any, token: Any) -> None:
        mine = self.value[0]
        first = cute.both(cute.invert(cute.less(value, mine)), cute.less(token, self.token[0]))
        better = _either(cute.less(mine, value), first)
        taken = _either(cute.invert(cute.less(value, INFINITY)), cute.both(cute.less(mine, INFINITY), better))
        self.value[0] = cute.select(taken, value, mine)
        self.token[0] = cute.select(taken, token, self.token[0])


def _either(a: Any, b: Any) -> Any:
    return cute.invert(cute.both(cute.invert(a), cute.invert(b)))
