"""A decode step of GPT-2 for one sequence in one launch, for sm_90a: bf16 weights and cache, sums in f32.

Blocks that stay: a cluster of 8 for each head, and others that take a greater part of the MLP. In each of them a warp
streams what the block will need through a ring of shared memory, in the order in which it is used, far ahead of the
others (stream.py): 8 rows of a weight, or some keys and values, are a slot. The other warps (warps.py) have 64 columns
of the residual stream each and walk the layers. What blocks tell each other are words
(toolchain/cute/nvgpu/words.py), so that no barrier of the grid is needed: all blocks must run at the same time, as
those of a cooperative launch do.

A layer, with what is waited for:
1. The sums of the layer before. A block computes 24 rows of q, k and v, and tells the cluster.
2. q, k and v of the head. A block attends to its part of the positions, and tells the cluster.
3. Those parts. A block projects its head to C / 8 columns, and adds them to the residual's sums (attention.py).
4. The sums of the projections. A block computes some hidden units, their part of the MLP's second product, which the
   cluster adds up, and adds that to the next sums (mlp.py).

docs/one-kernel.md has times and reasons. The norms are folded into the weights (gpt/fold.py); the last one is not.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from xdsl.dialects.builtin import f32, i32

from toolchain.contract.artifact import TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from .attention import attention
from .block import Cache, Here, as_number, as_scalar, element_address, flat
from .lanes import ROWS, WARP, dot, has_row, vector
from .mlp import mlp
from .plan import FAR, HEAD, RANKS, Step
from .stream import Producer
from .warps import Warps


def maps(step: Step) -> tuple[TensorMap, ...]:
    """The tensor map that the kernel takes behind its op's parameters."""
    return (TensorMap("cache", (1, 1, step.box, HEAD)),)


def parameters() -> list[cute.Parameter]:
    """Those of the op `decode_step`, and the tensor map of the cache."""
    half = [cute.Array("bf16", rank=rank) for rank in range(5)]
    numbers, words = [cute.Array("i32", rank=rank) for rank in range(3)], cute.Array("i64", rank=1)
    weights, biases = [half[3], half[4], half[3], half[3]], [half[2]] * 4
    return [
        *weights, *biases, half[2], half[2], half[1], half[1], numbers[1], numbers[1], half[2], half[4], numbers[1],
        words, numbers[2], cute.Float32(), cute.TensorMap(),
    ]  # fmt: skip


def decode_step(step: Step | None = None, name: str = "decode_step") -> cute.Kernel:
    """The kernel of the op `decode_step` (ops.toml says what its arrays are), in bf16, with a tensor map of the cache
    behind its parameters. All arrays are without gaps."""
    s = step or Step()

    @cute.kernel(*parameters(), threads=s.threads, name=name, cluster=(RANKS, 1, 1), min_blocks=1)
    def kernel(
        qkv: Any, proj: Any, fc: Any, out: Any, qkv_bias: Any, proj_bias: Any, fc_bias: Any, out_bias: Any,
        wte: Any, wpe: Any, gain: Any, shift: Any, tokens: Any, positions: Any, logits: Any, cache: Any,
        launches: Any, sums: Any, errors: Any, eps: Any, cache_map: Any,
    ) -> None:  # fmt: skip
        here, position = Here(s), as_number(positions[0])
        with cute.when(cute.same(here.warp, s.warps)):
            weights = {"qkv": qkv, "proj": proj, "fc": fc, "out": out, "tokens": wte}
            flat_weights = {name: flat(weight) for name, weight in weights.items()}
            Producer(here, flat_weights, cache_map, position).run()
        with cute.when(cute.less(here.warp, s.warps)):
            biases = {"qkv": flat(qkv_bias), "proj": flat(proj_bias), "fc": flat(fc_bias), "out": flat(out_bias)}
            w = Warps(here, biases, sums, launches, eps, position)
            start(w, flat(wte), flat(wpe), as_number(tokens[0]))
            cached = Cache(flat(cache), cache.shape[2])
            for layer in cute.range_(s.layers):
                walk_layer(w, layer, cached)
            logits_of(w, gain, shift, flat(logits))
            end(w, flat(errors))

    return kernel


def start(w: Warps, tokens: Any, places: Any, token: Any) -> None:
    """Clears words, meets the cluster, and adds the embeddings, less their mean."""
    s, here, thread = w.step, w.here, w.warp * WARP + w.lane
    for words, count in ((here.told, 3 * HEAD), (here.parts, RANKS * FAR), (here.columns, s.width)):
        w.clear(words, thread, s.warps * WARP, count, 0)
    cute.fill(w.late, cute.scalar(0, i32))
    cute.fill(w.qkv_bias, 0.0)
    cute.fill(w.fc_bias, 0.0)
    fetch(w, 0)
    arch.instruction("cluster.arrive", atom="release")
    row, place = token * (s.width // 2), w.position * (s.width // 2)
    made = [
        a.to("f32") + b.to("f32")
        for a, b in zip(vector(tokens, row + w.own, 2), vector(places, place + w.own, 2), strict=True)
    ]
    arch.instruction("cluster.wait")
    each, half = s.blocks * s.warps * WARP, s.words // 2
    w.clear(w.sums, here.block * (s.warps * WARP) + thread, each, half, (1 - w.set) * half)
    mean = w.whole(made[0] + made[1], 0) * (1.0 / s.width)
    for i in range(2):
        w.x[i] = made[i] - mean
    read_ahead(w, 0)


def read_ahead(w: Warps, layer: Any) -> None:
    """Reads a layer's biases that are needed soon after its sums."""
    here, lane = w.here, w.lane

    def read(*, head: bool) -> None:
        if head:
            row = (lane // ROWS).minimum(2) * w.step.width + here.head * HEAD + here.rank * ROWS + lane % ROWS
            w.qkv_bias[0] = w.bias("qkv", layer, row)[0]
        units = w.step.units[0 if head else 1]
        for batch in range(0, units, WARP):
            unit = here.first_unit(head=head) + (lane + batch).minimum(units - 1)
            w.fc_bias[batch // WARP] = w.bias("fc", layer, unit)[0]

    here.either(read)


def fetch(w: Warps, layer: Any) -> None:
    """Brings a layer's sums into the L2 cache, which the weights have pushed them out of: a line for each block."""
    s, lines = w.step, 2 * w.step.width // 16
    for first in range(0, lines, s.blocks):
        line = w.here.block + first
        with cute.when(cute.both(cute.less(line, lines), cute.same(w.warp * WARP + w.lane, 0))):
            arch.instruction("prefetch", element_address(w.sums, w.column(layer, 0, line * 16)))


def walk_layer(w: Warps, layer: Any, cache: Cache) -> None:
    """A layer: attention in the blocks with a head, and the MLP in all."""
    s, here = w.step, w.here
    fetch(w, (layer + 1).minimum(s.layers - 1))
    bias = w.bias("proj", layer, w.own, 2)
    more = w.bias("out", layer, w.own, 2)
    with cute.when(here.with_head):
        attention(w, layer, cache)
    for i, value in enumerate(w.sum(layer, 0, s.heads)):
        w.x[i] = w.x[i] + value + bias[i]
    here.either(partial(mlp, w, layer))
    read_ahead(w, (layer + 1).minimum(s.layers - 1))
    for i, value in enumerate(w.sum(layer, 1, s.clusters)):
        w.x[i] = w.x[i] + value + more[i]


def logits_of(w: Warps, gain: Any, shift: Any, logits: Any) -> None:
    """The last norm, and the products with the embedding: 4 tiles of each round, which a warp adds up."""
    s, here, lane = w.step, w.here, w.lane
    weights, biases = vector(gain, w.own, 2), vector(shift, w.own, 2)
    mean = w.whole(dot([w.x[0], w.x[1]], [w.x[0], w.x[1]]), 1) * (1.0 / s.width)
    scale = cute.Scalar(arch.instruction("rsqrt", mean + w.eps, results=[f32])[0])
    made = [(w.x[i] * scale).fma(weights[i].to("f32"), biases[i].to("f32")) for i in range(2)]
    # Nobody takes logits for right that were made from words which did not come: those of this block become NaN.
    made[0] = cute.select(cute.less(0, as_number(w.late[0])), cute.scalar(float("nan")), made[0])
    columns, tiles = w.operand(made), s.vocabulary // ROWS
    before = cute.make_fragment(1, "i32")

    def count(*, head: bool) -> None:
        before[0] = as_scalar(s.layers * s.steps(head=head))

    here.either(count)
    first = as_number(before[0])
    held = cute.make_fragment(4, "f32")
    for step in cute.range_(-(-s.rounds // 4)):
        cute.fill(held, 0.0)
        for i in range(4):
            with cute.when(cute.less((step * 4 + i) * s.blocks + here.block, tiles)):
                held[i] = w.tiles(first + step * 4 + i, 1, columns)[0]
        with cute.when(has_row(lane)):
            for i in range(4):
                w.saved[w.row_place(step % 2, 0, w.warp) + i * ROWS + lane // 4] = held[i]
        w.meet()
        tile = (step * 4 + lane // ROWS) * s.blocks + here.block
        with cute.when(cute.both(cute.same(step % s.warps, w.warp), cute.less(tile, tiles))):
            logits[tile * ROWS + lane % ROWS] = w.row_total(step % 2, 0, lane).to("bf16")


def end(w: Warps, errors: Any) -> None:
    """Blocks of a cluster end together, as they write to each other's shared memory; then says what was late."""
    s, here = w.step, w.here
    arch.instruction("cluster.arrive", atom="release")
    arch.instruction("cluster.wait")
    with cute.when(cute.same(w.lane, 0)):
        errors[here.block * s.warps + w.warp] = w.late[0]
        with cute.when(cute.same(w.warp, 0)):
            w.launches[here.block] = as_scalar(w.launch + 1)
