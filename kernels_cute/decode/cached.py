"""Keys and values as the cache has them: in bf16, or in e4m3 with a scale for each head of each position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from ..registers_f8 import largest_or_nan, magnitude, put_raw, quad, scale_of, widened
from .lanes import WARP, Across, dot, exchange, floats, pair_of, put
from .plan import HEAD, TOLD
from .warps import Warps


def numbers(words: Sequence[Any], bits: int) -> list[Any]:
    """Those of registers, as f32."""
    if bits == 16:
        return floats(words)
    pairs = [pair for word in words for pair in widened(word)]
    made = [arch.instruction("unpack.pair", pair, results=[f32, f32], atom="f16") for pair in pairs]
    return [cute.Scalar(value) for pair in made for value in pair]


class Newest:
    """The new position's key and value as the cache has them, and the key's product with the query. What that takes
    of all lanes is made in steps between other instructions, for whose results a step need not wait."""

    def __init__(self, w: Warps, layer: Any, q: Sequence[Any]) -> None:
        """`q`: the lane's own pair of the query."""
        self._w, self._layer, self._q = w, layer, q
        mine, self.scales = pair_of(w.lane) * 2, list[Any]()  # of key and value
        key = self._told(0, mine)
        self._score = None
        if w.step.cache_bits == 16:
            self._score = Across([dot(q, key)])
            return
        self._key, self._masks = key, [16, 8, 4, 2, 1]
        pairs = [[magnitude(one) for one in pair] for pair in (key, self._told(1, mine))]
        self._largest = [largest_or_nan(*pair) for pair in pairs]

    def step(self) -> None:
        """One more, if one is left."""
        if self._score:
            self._score.step()
        elif self._masks:
            mask = self._masks.pop(0)
            others = [exchange(one, mask) for one in self._largest]
            self._largest = [largest_or_nan(*two) for two in zip(self._largest, others, strict=True)]
        else:
            self.scales = [scale_of(one) for one in self._largest]
            self._score = Across([dot(self._q, self._kept(0, self._key))])

    def score(self) -> Any:
        while not self._score:
            self.step()
        return self._score.made()[0]

    def value(self, first: Any) -> list[Any]:
        """Two numbers of the value, from `first` on."""
        pair = self._told(1, first)
        return pair if self._w.step.cache_bits == 16 else self._kept(1, pair)

    def append(self) -> None:
        """Writes both to the cache, by a warp."""
        w = self._w
        s, here, cache = w.step, w.here, w.cache
        for which in range(2):
            pair, row = self._told(which, w.lane * 2), (self._layer * 2 + which) * cache.positions + w.position
            if s.cache_bits == 16:
                put(cache.numbers, row * (s.width // 2) + here.head * WARP + w.lane, [one.to("bf16") for one in pair])
                continue
            mine = self._divided(which, pair)
            word = quad([*mine, *(exchange(one, 1) for one in mine)])
            with cute.when(cute.same(w.lane % 2, 0)):
                put_raw(cache.numbers, row * (s.width // 4) + here.head * (HEAD // 4) + w.lane // 2, word)
            with cute.when(cute.same(w.lane, 0)):
                at = ((self._layer * 2 + which) * s.heads + here.head) * cache.positions + w.position
                cache.scales[at] = self.scales[which]

    def _told(self, which: int, first: Any) -> list[Any]:
        """Two numbers of the key or the value, for a cache in 8 bits as launches of their own store them."""
        w = self._w
        pair = w.words(TOLD, w.here.told, first + (which + 1) * HEAD, 2, self._layer)
        return pair if w.step.cache_bits == 16 else [one.to("bf16").to("f32") for one in pair]

    def _divided(self, which: int, pair: Sequence[Any]) -> list[Any]:
        inverse = cute.scalar(1.0) / self.scales[which]
        return [one * inverse for one in pair]

    def _kept(self, which: int, pair: Sequence[Any]) -> list[Any]:
        """A pair that was rounded to e4m3."""
        word = quad(self._divided(which, pair) * 2)
        return [one * self.scales[which] for one in numbers([word], 8)[:2]]


def read_scales(w: Warps, layer: Any) -> None:
    """Reads those of the positions that the lane's group of 8 attends to: of the last one before the new one instead of
    any behind it."""
    s, here, cache = w.step, w.here, w.cache
    first = here.rank * s.span + w.warp * 4 + w.lane // 8
    with cute.when(cute.less(0, w.position)):
        for i in range(len(s.attended)):
            at = (first + i * 4 * s.warps).minimum(w.position - 1)
            for which, held in enumerate((w.key_scales, w.value_scales)):
                held[i] = cache.scales[((layer * 2 + which) * s.heads + here.head) * cache.positions + at]
