"""The attention of a layer, by the cluster of a head: from the residual stream to the projection's sums."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import f32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from .cached import Newest, numbers
from .lanes import (
    CHUNK,
    COLUMNS,
    ROWS,
    WARP,
    across,
    chunks_where,
    dot,
    fold,
    greatest,
    of_lane,
    pair_of,
    put,
    spread,
    total,
    vector,
)
from .plan import CLUSTER, FAR, HEAD, LOG2_E, NEVER, PARTS, TOLD
from .products import has_row, operand, split, tile_times
from .warps import Warps


def attention(w: Warps, layer: Any) -> None:
    s, here, lane = w.step, w.here, w.lane
    first = layer * s.steps(head=True)
    _tell_qkv(w, layer, first)
    mine = pair_of(lane) * 2
    pair = [value * (LOG2_E / HEAD**0.5) for value in w.words(TOLD, here.told, mine, 2, layer)]
    new = Newest(w, layer, pair)
    _weigh(w, first + s.qkv_slots, spread(pair, lane), new)
    w.meet()
    new.find()
    _tell_part(w, layer)
    new.meet()
    _merge(w, layer, new)
    w.meet()
    number = first + s.qkv_slots + s.kv_slots
    for i in range(s.turns):
        here.full.wait(number + i)
    with cute.when(cute.less(w.warp, s.warps // s.tiles)):
        _project(w, layer, number)
    for i in range(s.turns):
        w.arrive(number + i)
    # Nobody waits for it. Words of this layer stay until the warp has added to the sums of the MLP.
    with cute.when(cute.both(cute.same(w.position // s.span, here.rank), cute.same(w.warp, s.warps - 1))):
        new.append()


def projected(w: Warps) -> list[Any]:
    """The columns that a lane projects to: of each tile of the warp's in a slot, of one slot after the other."""
    s, here = w.step, w.here
    first = here.rank * (s.width // s.cluster) + (w.warp % (s.warps // s.tiles)) * s.rows + w.lane // 4
    return [first + i * (s.width // CLUSTER) + tile * ROWS for i in range(s.turns) for tile in range(s.tiles)]


def _project(w: Warps, layer: Any, number: Any) -> None:
    """The head's result times the warp's rows of the slots, to the residual's sums."""
    s, here, lane = w.step, w.here, w.lane
    tile = COLUMNS * ROWS * s.bits // 128  # chunks
    at = [here.chunk(number + j) + (w.warp * s.tiles + i) * tile for j in range(s.turns) for i in range(s.tiles)]
    x, made = operand(w.merged, 0, lane, s.bits), list[Any]()
    for two in range(0, len(at), 2):
        made += tile_times(here.ring, at[two : two + 2], CHUNK, lane, x, s.bits)
    if not s.folded:
        made = [sum_ * w.proj_scales[i] for i, sum_ in enumerate(made)]
    with cute.when(has_row(lane)):
        for column, value in zip(projected(w), made, strict=True):
            w.add(layer, 0, column, value)


def parts_of_qkv(w: Warps) -> list[tuple[Any, Any, Any]]:
    """The parts of q, k and v that a warp tells, of 8 in all. For each: its number, the block that is told, and which
    group of 8 rows of the block it is."""
    s = w.step
    numbers = [w.warp + i for i in range(0, CLUSTER, s.warps)]
    if s.turns == 1:
        return [(number, number, 0) for number in numbers]
    return [(number, number % s.cluster, number // s.cluster % s.turns) for number in numbers]


def _tell_qkv(w: Warps, layer: Any, first: Any) -> None:
    """A block's rows of q, k and v, to all blocks of the cluster."""
    s, here, lane = w.step, w.here, w.lane
    which, count = (lane // ROWS).minimum(2), 3 * s.turns
    place = 2 if s.turns == 1 else layer % 2  # the one that the MLP of this layer will use
    sums = w.sums_of_norm()
    w.save_products(first, count, w.normed(w.gain_1, sums), place, sums)
    w.meet()
    norm = None
    for i, (number, to, turn) in enumerate(parts_of_qkv(w)):
        sum_ = w.row_total(place, lane.minimum(3 * ROWS - 1) + turn * (3 * ROWS))
        norm = norm or w.norm(place, count)
        value, row = w.result(sum_, norm, w.of_qkv.values(i)), (here.rank * s.turns + turn) * ROWS + lane % ROWS
        with cute.when(cute.both(cute.less(lane, 3 * ROWS), cute.less(number, CLUSTER))):
            w.tell(here.told, which * HEAD + row, to, layer, value)


def _weigh(w: Warps, first: Any, q: list[Any], new: Newest) -> None:
    """The warp's positions: 4 in each slot, 8 lanes for each. Their weights are relative to the warp's maximum.
    `new`: the new position, whose score is added up meanwhile."""
    s, here, lane = w.step, w.here, w.lane
    inside, read = list[Any](), list[list[list[Any]]]()
    mine = w.warp * 4 + lane // 8  # of the positions of a slot
    for i, count in enumerate(s.attended):
        position = here.rank * s.span + i * s.together + mine
        there = cute.less(position, w.position)
        inside.append(there if count == 4 * s.warps else cute.both(there, cute.less(mine, count)))
        slot = first + i // s.times
        if i % s.times == 0:
            here.full.wait(slot)
        at = here.chunk(slot) * s.times + i % s.times * s.width + mine * CHUNK + w.chunk
        read.append(chunks_where(inside[-1], here.ring, [at, at + s.width // 2], CHUNK // 2 // s.times))
        if (i + 1) % s.times == 0 or i + 1 == len(s.attended):
            w.arrive(slot)
    scores = [dot(numbers(key, s.cache_bits), q) for key, _ in read]
    for mask in (4, 2, 1):
        scores = across(scores, mask)
        new.step()
    if s.cache_bits == 8:
        scores = [one * w.key_scales[i] for i, one in enumerate(scores)]
    scores = [cute.select(there, one, NEVER) for there, one in zip(inside, scores, strict=True)]
    most = scores[0]
    for one in scores[1:]:
        most = most.maximum(one)
    for mask in (16, 8):
        most = greatest(most, mask)
        new.step()
    weights = [
        cute.select(there, cute.Scalar(arch.instruction("exp2", one - most, results=[f32])[0]), 0.0)
        for one, there in zip(scores, inside, strict=True)
    ]
    mixed, sum_ = [cute.scalar(0.0)] * CHUNK, total(weights)
    if s.cache_bits == 8:
        weights = [one * w.value_scales[i] for i, one in enumerate(weights)]
    for (_, value), weight in zip(read, weights, strict=True):
        mixed = [one.fma(weight, so_far) for one, so_far in zip(numbers(value, s.cache_bits), mixed, strict=True)]
        new.step()
    for mask in (16, 8):
        (sum_,), mixed = across([sum_], mask), fold(mixed, lane, (mask,))
        new.step()
    put(w.weighed, w.warp * (HEAD // 2) + pair_of(lane), mixed)
    with cute.when(cute.same(lane, 0)):
        put(w.weights, w.warp, [most, sum_])


def _tell_part(w: Warps, layer: Any) -> None:
    """What the block's warps have found, together, to the cluster: to each block by one of the first warps."""
    s, here, lane = w.step, w.here, w.lane
    with cute.when(cute.less(w.warp, s.cluster)):
        most, scales, weight = scaled(weights_of(w)) if s.turns == 1 else scaled_by_lanes(w)
        read = [vector(w.weighed, warp * (HEAD // 2) + lane, 2) for warp in range(s.warps)]
        mixed = [dot([pair[i] for pair in read], scales) for i in range(2)]
        for i in range(0, s.cluster, s.warps):
            to = w.warp + i
            with cute.when(cute.less(to, s.cluster)):
                w.tell(here.parts, here.rank * FAR + lane * 2, to, layer, *mixed)
                with cute.when(cute.same(lane, 0)):
                    w.tell(here.parts, here.rank * FAR + HEAD, to, layer, most, weight)


def weights_of(w: Any) -> list[list[Any]]:
    """The maximum of each warp's scores, and the sum of its weights."""
    count = 4 if w.step.warps % 2 == 0 else 2
    read = [one for i in range(2 * w.step.warps // count) for one in vector(w.weights, i, count)]
    return [read[i : i + 2] for i in range(0, len(read), 2)]


def scaled(pairs: list[list[Any]]) -> tuple[Any, list[Any], Any]:
    """The maximum of all, what each warp's weights are times beside it, and their sum."""
    most = pairs[0][0]
    for pair in pairs[1:]:
        most = most.maximum(pair[0])
    scales = [cute.Scalar(arch.instruction("exp2", pair[0] - most, results=[f32])[0]) for pair in pairs]
    return most, scales, dot([pair[1] for pair in pairs], scales)


def scaled_by_lanes(w: Warps) -> tuple[Any, list[Any], Any]:
    """The same of many warps, whose numbers do not fit a lane's registers: each lane has those of a warp."""
    warps = w.step.warps
    most, weight = vector(w.weights, w.lane.minimum(warps - 1), 2)
    top = greatest(most, 16, 8, 4, 2, 1)
    scale = cute.Scalar(arch.instruction("exp2", most - top, results=[f32])[0])
    (sum_,) = across([cute.select(cute.less(w.lane, warps), weight * scale, 0.0)], 16, 8, 4, 2, 1)
    return top, [of_lane(scale, warp) for warp in range(warps)], sum_


def _merge(w: Warps, layer: Any, new: Newest) -> None:
    """The head's result, by as many warps as there are blocks: 4 lanes for each of 8 blocks' parts, and 8 elements; or
    8 lanes and 16 elements of 4 blocks. The new position is in no part."""
    s, here, lane = w.step, w.here, w.lane
    each = WARP // s.cluster
    masks = [mask for mask in (16, 8, 4) if mask >= each]
    source, score = lane // each, new.score()
    for i in range(0, s.cluster, s.warps):
        elements = w.warp + i
        with cute.when(cute.less(elements, s.cluster)):
            pair = elements * each + lane % each
            value = new.value(pair)
            mixed = w.words(PARTS, here.parts, source * FAR + pair * 2, 2, layer)
            most, weight = w.words(PARTS, here.parts, source * FAR + HEAD, 2, layer)
            top = greatest(most, *masks).maximum(score)
            scale, own = (cute.Scalar(arch.instruction("exp2", one - top, results=[f32])[0]) for one in (most, score))
            sum_, *found = across([value * scale for value in (weight, *mixed)], *masks)
            whole = cute.scalar(1.0) / (sum_ + own)
            with cute.when(cute.same(source, 0)):
                high, low = split([a.fma(own, b) * whole for a, b in zip(value, found, strict=True)], s.bits)
                w.merged[pair], w.merged[pair + WARP] = high, low
