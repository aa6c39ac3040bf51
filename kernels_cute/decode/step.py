"""A decode step of GPT-2 for one sequence in one launch, for sm_90a: weights in bf16 or in 8 bits, sums in f32.

Blocks that stay: a cluster of 8 for each head, and others that take a greater part of the MLP. In each of them a warp
streams what the block will need through a ring of shared memory, in the order in which it is used, far ahead of the
others (stream.py): some rows of a weight, or some keys and values, are a slot. The other warps (warps.py) have 64
columns of the residual stream each and walk the layers. What blocks tell each other are words
(toolchain/cute/nvgpu/words.py), so that no barrier of the grid is needed: all blocks must run at the same time, as
those of a cooperative launch do.

A layer, with what is waited for:
1. The sums of the layer before. A block computes 24 rows of q, k and v, and tells the cluster.
2. q, k and v of the head. A block attends to its part of the positions, and tells the cluster.
3. Those parts. A block projects its head to C / 8 columns, and adds them to the residual's sums (attention.py).
4. The sums of the projections. A block computes some hidden units, their part of the MLP's second product, which the
   cluster adds up, and adds that to the next sums (mlp.py).

Wider models have clusters of 4 blocks (`Step.cluster`), so a block has twice the rows, columns and positions.
docs/one-kernel.md has times and reasons. Norms are folded into weights in bf16 (gpt/parameters/fold.py), but the last.
Those of 8 bits stay as they are stored: there x is multiplied with the norm's weight, and its mean is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from math import ceil
from typing import Any

from xdsl.dialects.builtin import i32

from toolchain.contract.artifact import TensorMap
from toolchain.contract.op import ops
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from .attention import attention, parts_of_qkv, projected
from .block import Cache, Here, as_number, as_scalar, element_address, flat
from .cached import read_scales
from .lanes import ROWS, WARP, dot, floats, vector
from .likeliest import Likeliest
from .mlp import mlp, own_column
from .plan import FAR, HEAD, Step
from .products import has_row
from .stream import Producer
from .team import Team
from .warps import Warps


def maps(step: Step) -> tuple[TensorMap, ...]:
    """The tensor map that the kernel takes behind its op's parameters."""
    return (TensorMap("cache", (1, 1, step.box, HEAD)),)


SCALARS = {"f32": cute.Float32, "i32": cute.Number32}


def parameters(op: str) -> list[cute.Parameter]:
    """Those of the op, for an entry in bf16, and the tensor map of the cache."""
    kinds = {"T": "bf16", "f8E4M3FN": "e4m3"}
    made: list[cute.Parameter] = [
        cute.Array(kinds.get(param.dtype, param.dtype), rank=len(param.dims)) if param.dims else SCALARS[param.dtype]()
        for param in ops()[op].params
    ]
    return [*made, cute.TensorMap()]


def named(op: str, given: Sequence[Any]) -> dict[str, Any]:
    """What a kernel is given of its op, by name."""
    return dict(zip((param.name for param in ops()[op].params), given, strict=False))


def decode_step(step: Step | None = None, name: str = "decode_step", op: str = "decode_step") -> cute.Kernel:
    """The kernel of an op `decode_step` (ops.toml says what its arrays are), in bf16, with a tensor map of the cache
    behind its parameters. All arrays are without gaps."""
    s = step or Step()

    @cute.kernel(*parameters(op), threads=s.threads, name=name, cluster=(s.cluster, 1, 1), min_blocks=1)
    def kernel(*given: Any) -> None:
        a = named(op, given)
        arrays = {name: flat(array) for name, array in a.items() if isinstance(array, cute.TensorValue)}
        here, position = Here(s), as_number(a["positions"][0])
        with cute.when(cute.same(here.warp, s.warps)):
            logits = arrays["wte" if s.logit_bits == 16 else "head"]
            Producer(here, {**arrays, "logits": logits}, given[-1], position).run()
        with cute.when(cute.less(here.warp, s.warps)):
            cached = Cache(arrays["cache"], a["cache"].shape[2], arrays.get("cache_scales"))
            w = Warps(here, arrays, arrays["sums"], a["launches"], a["eps"], position, cached)
            start(w, arrays["wte"], arrays["wpe"], as_number(a["tokens"][0]))
            for layer in cute.range_(s.layers):
                walk_layer(w, layer)
            found = Likeliest(w, a["visible"])
            logits_of(w, arrays, found)
            found.tell(arrays["values"], arrays["indices"], a["values"].shape[1])
            found.choose(arrays["chosen"], arrays["after"], position, arrays["values"])
            end(w, arrays["errors"])

    return kernel


def start(w: Warps, tokens: Any, places: Any, token: Any) -> None:
    """Clears words, meets the cluster, and adds the embeddings, less their mean."""
    s, here, thread = w.step, w.here, w.warp * WARP + w.lane
    for words, count in ((here.told, 3 * HEAD), (here.parts, s.cluster * FAR), (here.columns, s.width)):
        w.clear(words, thread, s.warps * WARP, count, 0)
    cute.fill(w.late, cute.scalar(0, i32))
    for one in (w.last_scale, w.last_root):
        cute.fill(one, 1.0)
    fetch(w, 0)
    arch.instruction("cluster.arrive", atom="release")
    read_ahead(w, 0)
    row, place = token * (s.width // 2), w.position * (s.width // 2)
    made = [
        a.to("f32") + b.to("f32")
        for a, b in zip(vector(tokens, row + w.own, 2), vector(places, place + w.own, 2), strict=True)
    ]
    arch.instruction("cluster.wait")
    each, half = s.blocks * s.warps * WARP, s.words // 2
    w.clear(w.sums, here.block * (s.warps * WARP) + thread, each, half, (1 - w.set) * half)
    mean = w.whole([made[0] + made[1]], 0)[0] * (1.0 / s.width)
    for i in range(2):
        w.x[i] = made[i] - mean


def read_ahead(w: Warps, layer: Any) -> None:
    """Reads what is needed of a layer beside its weights. There is time for it before the wait for sums."""
    s, here, lane = w.step, w.here, w.lane

    def read(*, head: bool) -> None:
        if head:
            first = (lane // ROWS).minimum(2) * (s.heads * HEAD) + here.head * HEAD
            for i, (_, _, turn) in enumerate(parts_of_qkv(w)):
                w.of_qkv.read(i, layer, first + (here.rank * s.turns + turn) * ROWS + lane % ROWS)
            if s.cache_bits == 8:
                read_scales(w, layer)
        units = s.units[0 if head else 1]
        for batch in range(0, units, WARP):
            unit = here.first_unit(head=head) + (lane + batch).minimum(units - 1)
            w.of_fc.read(batch // WARP, layer, unit)

    here.either(read)
    w.proj_bias[0] = w.own_of_layer("proj_bias", layer)
    w.next_out_bias[0] = w.own_of_layer("out_bias", layer)
    if s.folded:
        return
    w.gain_1[0], w.gain_2[0] = w.own_of_layer("norm_1", layer), w.own_of_layer("norm_2", layer)
    w.out_scale[0] = w.of_layer("out_scales", layer, own_column(w))
    for i, column in enumerate(projected(w)):
        w.proj_scales[i] = w.of_layer("proj_scales", layer, column)


def fetch(w: Warps, layer: Any) -> None:
    """Brings a layer's sums into the L2 cache, which the weights have pushed them out of: a line for each block."""
    s, lines = w.step, 2 * w.step.width // 16
    for first in range(0, lines, s.blocks):
        line = w.here.block + first
        with cute.when(cute.both(cute.less(line, lines), cute.same(w.warp * WARP + w.lane, 0))):
            arch.instruction("prefetch", element_address(w.sums, w.column(layer, 0, line * 16)))


def walk_layer(w: Warps, layer: Any) -> None:
    """A layer: attention in the blocks with a head, and the MLP in all."""
    s, here = w.step, w.here
    after = (layer + 1).minimum(s.layers - 1)
    with cute.when(here.with_head) if s.clusters > s.heads else nullcontext(), w.lane_again():
        attention(w, layer)
    with w.lane_again():
        add(w, w.sum(layer, 0, s.heads), w.proj_bias[0])
    w.out_bias[0] = w.next_out_bias[0]  # was read long ago
    here.either(partial(mlp, w, layer))
    with w.lane_again():
        fetch(w, after)
        read_ahead(w, after)
    with w.lane_again():
        add(w, w.sum(layer, 1, s.clusters), w.out_bias[0])


def add(w: Warps, sums: list[Any], bias: Any) -> None:
    """Adds a sum and a bias to the residual stream."""
    for i, (value, one) in enumerate(zip(sums, floats([bias]), strict=True)):
        w.x[i] = w.x[i] + value + one


def logits_of(w: Warps, arrays: dict[str, Any], found: Likeliest) -> None:
    """The last norm, and the products with the embedding: 4 tiles of 8 rows of each round, which a warp adds up."""
    s, here, lane = w.step, w.here, w.lane
    weights, biases = vector(arrays["norm_weight"], w.own, 2), vector(arrays["norm_bias"], w.own, 2)
    last = [w.x[0], w.x[1]]
    square, sum_ = (each * (1.0 / s.width) for each in w.whole([dot(last, last), last[0] + last[1]], 1))
    mean = cute.scalar(0.0) if s.folded else sum_
    scale = w.rsqrt(square - mean * mean + w.eps)
    made = [((w.x[i] - mean) * scale).fma(weights[i].to("f32"), biases[i].to("f32")) for i in range(2)]
    # Nobody takes logits for right that were made from words which did not come: those of this block become NaN.
    made[0] = cute.select(cute.less(0, as_number(w.late[0])), cute.scalar(float("nan")), made[0])
    columns, tiles, each = w.operand(made, s.logit_bits), s.vocabulary // s.logit_rows, s.logit_rows // ROWS
    before = cute.make_fragment(1, "i32")

    def count(*, head: bool) -> None:
        before[0] = as_scalar(s.layers * s.steps(head=head))

    here.either(count)
    first = as_number(before[0])
    held = cute.make_fragment(4, "f32")
    slots = 4 // each
    token_of = partial(_token_of, w, slots)
    scales = []
    if s.logit_bits == 8:  # of all rows that the warp adds up
        turns = ceil(s.rounds / slots / s.warps)
        last = s.vocabulary - 1
        scales = [arrays["head_scales"][token_of(w.warp + i * s.warps).minimum(last)] for i in range(turns)]
    for step in cute.range_(-(-s.rounds // slots)):
        cute.fill(held, 0.0)
        for i in range(slots):
            with cute.when(cute.less((step * slots + i) * s.blocks + here.block, tiles)):
                for j, value in enumerate(w.tiles(first + step * slots + i, each, columns, s.logit_bits)):
                    held[i * each + j] = value
        with cute.when(has_row(lane)):
            for i in range(4):
                w.keep(step % 2, i, held[i])
        w.meet()
        token = token_of(step)
        with cute.when(cute.both(cute.same(step % s.warps, w.warp), cute.less(token, s.vocabulary))):
            value = w.row_total(step % 2, lane)
            for i, scale in enumerate(scales):
                value = cute.select(cute.same(step // s.warps, i), value * scale, value)
            value = value.to("bf16")
            arrays["logits"][token] = value
            found.take(value.to("f32"), token)


def _token_of(w: Warps, slots: int, step: Any) -> Any:
    """The token whose logit a lane adds up in a step over some slots."""
    rows = w.step.logit_rows
    return ((step * slots + w.lane // rows) * w.step.blocks + w.here.block) * rows + w.lane % rows


def end(w: Team, errors: Any) -> None:
    """Blocks of a cluster end together, as they write to each other's shared memory; then says what was late."""
    s, here = w.step, w.here
    arch.instruction("cluster.arrive", atom="release")
    arch.instruction("cluster.wait")
    with cute.when(cute.same(w.lane, 0)):
        errors[here.block * s.warps + w.warp] = w.late[0]
        with cute.when(cute.same(w.warp, 0)):
            w.launches[here.block] = as_scalar(w.launch + 1)
