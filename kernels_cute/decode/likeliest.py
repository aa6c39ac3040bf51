"""The likeliest token of those whose logits a block makes: the first one of the largest logit."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout

from ..registers_f8 import as_float, as_int
from .block import as_number, as_scalar, element_address
from .lanes import WARP, exchange
from .plan import FOUND_LARGEST
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

    def choose(self, tokens: Any, positions: Any, position: Any, values: Any) -> None:
        """Behind `tell`: the first block's first warp writes the likeliest token of all blocks, and the position behind
        `position`. By then all blocks have read theirs."""
        w = self.w
        s, here, lane = w.step, w.here, w.lane
        with cute.when(cute.both(cute.same(w.warp, 0), cute.same(lane, 0))):
            mine = element_address(w.sums, s.words + here.block * 2)
            arch.instruction("word.store", mine, w.launch + 1, self.value[0], as_float(self.token[0]), n=2)
        with cute.when(cute.both(cute.same(here.block, 0), cute.same(w.warp, 0))):
            for first in range(0, s.blocks, WARP):
                block = (lane + first).minimum(s.blocks - 1)
                value, token = w.words(FOUND_LARGEST, w.sums, s.words + block * 2, 2, w.launch)
                self._merge(value, as_int(token))
            self._of_all_lanes()
            with cute.when(cute.same(lane, 0)):
                tokens[0], positions[0] = self.token[0], as_scalar(position + 1)
                with cute.when(cute.less(0, as_number(w.late[0]))):  # nobody takes it for right
                    values[0] = cute.scalar(float("nan"))

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
