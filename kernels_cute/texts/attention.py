"""The attention of a layer of eight texts: a cluster has a head, and each of its blocks attends for a text."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import f32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from ..decode.attention import scaled, weights_of
from ..decode.block import Cache
from ..decode.lanes import (
    CHUNK,
    ROWS,
    Across,
    across,
    chunks_where,
    dot,
    floats,
    fold,
    greatest,
    pair_of,
    put,
    spread,
    total,
    vector,
)  # fmt: skip
from ..decode.plan import CLUSTER, HEAD, LOG2_E, NEVER, PARTS, TOLD
from .block import place_of
from .plan import AT_ONCE, TEXTS
from .products import rounded_pair, times, total_of
from .warps import TextsWarps


def attention(w: TextsWarps, layer: Any, cache: Cache) -> None:
    s, here, lane = w.step, w.here, w.lane
    first = layer * here.steps
    _tell_qkv(w, layer, first)
    mine = pair_of(lane) * 2
    pair = [value * (LOG2_E / HEAD**0.5) for value in w.words(TOLD, here.told, mine, 2, layer)]
    score = Across([dot(pair, w.words(TOLD, here.told, mine + HEAD, 2, layer))]).made()[0]
    _weigh(w, first + s.qkv_slots, spread(pair, lane))
    w.meet()
    _tell_mixed(w, layer, score)
    number = first + s.qkv_slots + here.attended
    here.full.wait(number)
    tile = w.projection(number, 0)
    w.arrive(number)
    made = times([tile], [w.operand_of(PARTS, here.mixed, 0, layer)], s.bits)
    w.add(layer, 0, total_of(made, 1)[0], w.proj_scale)
    # Nobody waits for it. Words of this layer stay until the warp has added to the sums of the MLP.
    with cute.when(cute.both(here.has_text, cute.same(w.warp, s.warps - 1))):
        _append(w, layer, cache)


def _tell_qkv(w: TextsWarps, layer: Any, first: Any) -> None:
    """8 rows each of q, k and v, of each text to its block."""
    s, here, lane = w.step, w.here, w.lane
    row, which = here.rank * ROWS + lane % ROWS, (lane // ROWS).minimum(2)  # of the head's
    of_norm = w.sums_of_norm()
    w.save(w.tiles(first, 3, w.normed(w.gain_1), s.bits), of_norm)
    w.meet()
    for i in range(0, TEXTS, s.warps):
        turn, text = i // s.warps, w.warp + i
        with cute.when(cute.less(text, TEXTS)):
            value = w.result(w.row_total(text, lane.minimum(3 * ROWS - 1)), w.norm(turn), w.of_qkv.values(0))
            with cute.when(cute.less(lane, 3 * ROWS)):
                w.tell(here.told, which * HEAD + row, text, layer, value)


def _weigh(w: TextsWarps, first: Any, q: list[Any]) -> None:
    """The warp's positions: 4 in each slot, 8 lanes for each. Their weights are relative to the maximum so far."""
    s, here, lane = w.step, w.here, w.lane
    mine = w.warp * 4 + lane // 8  # of the positions of a slot
    most, sum_, mixed = (cute.make_fragment(count, "f32") for count in (1, 1, CHUNK))
    cute.fill(most, NEVER)
    cute.fill(sum_, 0.0)
    cute.fill(mixed, 0.0)
    for step in cute.range_(here.attended // AT_ONCE):
        inside, read = list[Any](), list[list[list[Any]]]()
        for i in range(AT_ONCE):
            slot = step * AT_ONCE + i
            inside.append(cute.less(slot * s.together + mine, w.position))
            here.full.wait(first + slot)
            at = here.chunk(first + slot) + mine * CHUNK + w.chunk
            read.append(chunks_where(inside[-1], here.ring, [at, at + s.width // 2]))
        for i in range(AT_ONCE):
            w.arrive(first + step * AT_ONCE + i)
        scores = across([dot(floats(key), q) for key, _ in read], 4, 2, 1)
        scores = [cute.select(there, one, NEVER) for there, one in zip(inside, scores, strict=True)]
        now = most[0]
        for one in scores:
            now = now.maximum(one)
        fall = _exp2(most[0] - now)
        weights = [
            cute.select(there, _exp2(one - now), 0.0) for one, there in zip(scores, inside, strict=True)
        ]  # fmt: skip
        most[0], sum_[0] = now, sum_[0].fma(fall, total(list(weights)))
        sums = [mixed[i] * fall for i in range(CHUNK)]
        for (_, value), weight in zip(read, weights, strict=True):
            sums = [one.fma(weight, so_far) for one, so_far in zip(floats(value), sums, strict=True)]
        for i, one in enumerate(sums):
            mixed[i] = one
    top = greatest(most[0], 16, 8)
    scale = _exp2(most[0] - top)
    (whole,) = across([sum_[0] * scale], 16, 8)
    put(w.weighed, w.warp * (HEAD // 2) + pair_of(lane), fold([mixed[i] * scale for i in range(CHUNK)], lane, (16, 8)))
    with cute.when(cute.same(lane, 0)):
        put(w.weights, w.warp, [top, whole])


def _exp2(value: Any) -> Any:
    return cute.Scalar(arch.instruction("exp2", value, results=[f32])[0])


def _tell_mixed(w: TextsWarps, layer: Any, score: Any) -> None:
    """The head's result of the block's text, its new position included, to the cluster: to each block by a warp."""
    s, here, lane = w.step, w.here, w.lane
    with cute.when(cute.less(w.warp, CLUSTER)):
        most, scales, weight = scaled(weights_of(w))
        top = most.maximum(score)
        fall, own = _exp2(most - top), _exp2(score - top)
        whole = cute.scalar(1.0) / weight.fma(fall, own)
        read = [vector(w.weighed, warp * (HEAD // 2) + lane, 2) for warp in range(s.warps)]
        new = w.words(TOLD, here.told, lane * 2 + 2 * HEAD, 2, layer)
        mixed = [
            (dot([pair[i] for pair in read], scales) * fall + new[i] * own) * whole for i in range(2)
        ]  # fmt: skip
        for i in range(0, CLUSTER, s.warps):
            to = w.warp + i
            with cute.when(cute.less(to, CLUSTER)):
                w.tell(here.mixed, place_of(here.rank, lane), to, layer, rounded_pair(mixed[0], mixed[1], s.bits))


def _append(w: TextsWarps, layer: Any, cache: Cache) -> None:
    """The new key and value of the block's text to the cache."""
    s, here = w.step, w.here
    for which in range(2):
        pair = w.words(TOLD, here.told, w.lane * 2 + (which + 1) * HEAD, 2, layer)
        row = ((layer * 2 + which) * here.texts + here.rank) * cache.positions + w.position
        put(cache.numbers, row * (s.width // 2) + here.head * (HEAD // 2) + w.lane, [one.to("bf16") for one in pair])
