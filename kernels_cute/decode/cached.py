"""Keys and values as the cache has them: in bf16, or in e4m3 with a scale for each head of each position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from ..registers_f8 import largest_or_nan, magnitude, put_raw, quad, scale_of, widened
from .lanes import WARP, Across, across, dot, exchange, floats, pair_of, put, vector
from .plan import HEAD, LOG2_E, TOLD
from .team import FOUND
from .warps import Warps


def numbers(words: Sequence[Any], bits: int) -> list[Any]:
    """Those of registers, as f32."""
    if bits == 16:
        return floats(words)
    pairs = [pair for word in words for pair in widened(word)]
    made = [arch.instruction("unpack.pair", pair, results=[f32, f32], atom="f16") for pair in pairs]
    return [cute.Scalar(value) for pair in made for value in pair]


class Newest:
    """The new position's key and value as the cache has them, and the key's product with the query. A cache in 8 bits
    takes the largest of each, which one warp finds for its block while others wait for the cluster."""

    def __init__(self, w: Warps, layer: Any, q: Sequence[Any]) -> None:
        """`q`: the lane's own pair of the query."""
        self._w, self._layer = w, layer
        if w.step.cache_bits == 8:
            self._words, self._scales = cute.make_fragment(2, "i32"), cute.make_fragment(2, "f32")
            return
        self._sum = Across([dot(q, self._told(1, pair_of(w.lane) * 2))])

    def step(self) -> None:
        """One more of the score's sums between other instructions, if one is left."""
        if self._w.step.cache_bits == 16:
            self._sum.step()

    def find(self) -> None:
        """Rounds both to 8 bits, by the last warp."""
        w = self._w
        if w.step.cache_bits == 16:
            return
        with cute.when(cute.same(w.warp, w.step.warps - 1)):
            mine = w.lane * 2
            q = [one * (LOG2_E / HEAD**0.5) for one in self._told(0, mine)]
            pairs = [[one.to("bf16").to("f32") for one in self._told(which, mine)] for which in (1, 2)]
            largest = [largest_or_nan(*(magnitude(one) for one in pair)) for pair in pairs]
            for mask in (16, 8, 4, 2, 1):
                others = [exchange(one, mask) for one in largest]
                largest = [largest_or_nan(*two) for two in zip(largest, others, strict=True)]
            kept = list[list[Any]]()
            for i, (pair, most) in enumerate(zip(pairs, largest, strict=True)):
                scale = scale_of(most)
                inverse = cute.scalar(1.0) / scale
                divided = [one * inverse for one in pair]
                self._scales[i] = scale
                self._words[i] = quad([*divided, *(exchange(one, 1) for one in divided)])
                kept.append([one * scale for one in numbers([self._words[i]], 8)[:2]])
            (score,) = across([dot(q, kept[0])], 16, 8, 4, 2, 1)
            put(w.newest, w.lane, kept[1])
            with cute.when(cute.same(w.lane, 0)):
                w.newest[HEAD] = score

    def meet(self) -> None:
        """The warps wait for what was found."""
        if self._w.step.cache_bits == 8:
            self._w.meet(FOUND)

    def score(self) -> Any:
        return self._sum.made()[0] if self._w.step.cache_bits == 16 else self._w.newest[HEAD]

    def value(self, pair: Any) -> list[Any]:
        """A pair of the value's numbers."""
        if self._w.step.cache_bits == 16:
            return self._told(2, pair * 2)
        return vector(self._w.newest, pair, 2)

    def append(self) -> None:
        """Writes both to the cache, by the last warp."""
        w = self._w
        s, here, cache = w.step, w.here, w.cache
        for i in range(2):
            row = (self._layer * 2 + i) * cache.positions + w.position
            if s.cache_bits == 16:
                pair = [one.to("bf16") for one in self._told(i + 1, w.lane * 2)]
                put(cache.numbers, row * (s.heads * WARP) + here.head * WARP + w.lane, pair)
                continue
            with cute.when(cute.same(w.lane % 2, 0)):
                at = row * (s.heads * HEAD // 4) + here.head * (HEAD // 4) + w.lane // 2
                put_raw(cache.numbers, at, self._words[i])
            with cute.when(cute.same(w.lane, 0)):
                at = ((self._layer * 2 + i) * s.heads + here.head) * cache.positions + w.position
                cache.scales[at] = self._scales[i]

    def _told(self, which: int, first: Any) -> list[Any]:
        """Two numbers of the query, the key or the value."""
        return self._w.words(TOLD, self._w.here.told, first + which * HEAD, 2, self._layer)


def read_scales(w: Warps, layer: Any) -> None:
    """Reads those of the positions that the lane's group of 8 attends to: of the last one before the new one instead of
    any behind it."""
    s, here, cache = w.step, w.here, w.cache
    first = here.rank * s.span + w.warp * 4 + w.lane // 8
    with cute.when(cute.less(0, w.position)):
        for i in range(len(s.attended)):
            at = (first + i * s.together).minimum(w.position - 1)
            for which, held in enumerate((w.key_scales, w.value_scales)):
                held[i] = cache.scales[((layer * 2 + which) * s.heads + here.head) * cache.positions + at]
