"""A decode step of GPT-2 for at most eight sequences in one launch, for sm_90a: weights in bf16 or in 8 bits, sums in
f32.

As that for one (../decode/step.py): blocks stay, a cluster of 8 for each head; in each of them a warp streams weights,
keys and values through a ring, and the others have 64 columns of the residual stream each. What differs:

1. A weight is read once for all texts, which are the columns of the tensor cores' products.
2. Each block of a cluster attends for one text, so that no parts of attention are merged.
3. Of the MLP the cluster's blocks tell each other their hidden units, and each makes some columns of all of them, as
   they do with the head's results before: nothing is added up within the cluster.

docs/one-kernel.md has times and reasons.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import i32

from toolchain.contract.artifact import TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from ..decode.block import Cache, as_number, element_address, flat
from ..decode.lanes import CHUNK, ROWS, WARP, floats, total
from ..decode.likeliest import Likeliest
from ..decode.plan import CLUSTER, HEAD
from ..decode.products import Operand
from ..decode.step import end, named, parameters
from .attention import attention
from .block import Here
from .mlp import mlp
from .plan import PARTS, TEXTS, UNITS, Step
from .products import operand
from .stream import TextsStream
from .warps import TextsWarps

TILES = UNITS // ROWS  # of the embedding in a round of logits


def maps(step: Step) -> tuple[TensorMap, ...]:
    """The tensor map that the kernel takes behind its op's parameters."""
    return (TensorMap("cache", (1, 1, 1, step.together, HEAD)),)


def decode_step(
    step: Step | None = None, name: str = "decode_step_texts", op: str = "decode_step_texts"
) -> cute.Kernel:  # fmt: skip
    """The kernel of an op `decode_step_texts` (ops.toml says what its arrays are), in bf16, with a tensor map of the
    cache behind its parameters. All arrays are without gaps."""
    s = step or Step()

    @cute.kernel(*parameters(op), threads=s.threads, name=name, cluster=(CLUSTER, 1, 1), min_blocks=1)
    def kernel(*given: Any) -> None:
        a = named(op, given)
        arrays = {name: flat(array) for name, array in a.items() if isinstance(array, cute.TensorValue)}
        here = Here(s, a["positions"])
        with cute.when(cute.same(here.warp, s.warps)):
            logits = arrays["wte" if s.logit_bits == 16 else "head"]
            TextsStream(here, {**arrays, "logits": logits}, given[-1], here.position).run()
        with cute.when(cute.less(here.warp, s.warps)):
            w = TextsWarps(here, arrays, arrays["sums"], a["launches"], a["eps"])
            text = w.text.minimum(here.texts - 1)  # without one a lane does as the last
            start(w, arrays, as_number(a["tokens"][text]), as_number(a["positions"][text]))
            cached = Cache(arrays["cache"], a["cache"].shape[3])
            for layer in cute.range_(s.layers):
                walk_layer(w, layer, cached)
            logits_of(w, arrays, a)
            end(w, arrays["errors"])

    return kernel


def start(w: TextsWarps, arrays: dict[str, Any], token: Any, position: Any) -> None:
    """Clears words, meets the cluster, and adds the embeddings, less their mean."""
    s, here, thread = w.step, w.here, w.warp * WARP + w.lane
    for words, count in (
        (here.told, 3 * HEAD),
        (here.mixed, TEXTS * HEAD // 2),
        (here.units, TEXTS * PARTS * HEAD // 2),
    ):
        w.clear(words, thread, s.warps * WARP, count, 0)
    cute.fill(w.late, cute.scalar(0, i32))
    cute.fill(w.roots, 1.0)
    with cute.when(cute.less(thread, TEXTS)):
        w.scales[thread] = cute.scalar(1.0)
    fetch(w, 0)
    arch.instruction("cluster.arrive", atom="release")
    read_ahead(w, 0)
    tokens, places = floats(w.own(arrays["wte"], token)), floats(w.own(arrays["wpe"], position))
    made = [a + b for a, b in zip(tokens, places, strict=True)]
    if s.logit_bits == 8:
        read_head_scales(w, arrays["head_scales"], thread)
    arch.instruction("cluster.wait")
    each, half = s.blocks * s.warps * WARP, s.words // 2
    w.clear(w.sums, here.block * (s.warps * WARP) + thread, each, half, (1 - w.set) * half)
    mean = w.whole([total(made)], 0)[0] * (1.0 / s.width)
    for i, value in enumerate(made):
        w.x[i] = value - mean


def read_ahead(w: TextsWarps, layer: Any) -> None:
    """Reads what is needed of a layer beside its weights. There is time for it before the wait for sums."""
    s, here, lane = w.step, w.here, w.lane
    row = (lane // ROWS).minimum(2) * s.width + here.head * HEAD + here.rank * ROWS + lane % ROWS
    w.of_qkv.read(0, layer, row)
    w.of_fc.read(0, layer, here.block * UNITS + lane)
    for held, name in ((w.proj_bias, "proj_bias"), (w.next_out_bias, "out_bias")):
        for i, word in enumerate(w.own(w.vectors[name], layer)):
            held[i] = word
    if s.folded:
        return
    w.gain_1[0], w.gain_2[0] = w.pair_of_layer("norm_1", layer), w.pair_of_layer("norm_2", layer)
    for held, name in ((w.proj_scale, "proj_scales"), (w.out_scale, "out_scales")):
        held[0] = w.of_layer(name, layer, w.projected() + lane // 4)


def read_head_scales(w: TextsWarps, scales: Any, thread: Any) -> None:
    """Those of all logits that the block makes, long before it does."""
    s = w.step
    count, threads = s.rounds * UNITS, s.warps * WARP
    for i in range(0, count, threads):
        at = thread + i
        with cute.when(cute.less(at, count)):
            token = token_of(w, at // UNITS, at % UNITS)
            w.head_scales[at] = scales[token.minimum(s.vocabulary - 1)]


def fetch(w: TextsWarps, layer: Any) -> None:
    """Brings a layer's sums into the L2 cache, which the weights have pushed them out of: some lines for each block."""
    s, lines = w.step, 2 * w.step.width * TEXTS // 16
    each = -(-lines // s.blocks)
    line = w.here.block * each + w.lane
    with cute.when(cute.both(cute.same(w.warp, 0), cute.both(cute.less(w.lane, each), cute.less(line, lines)))):
        arch.instruction("prefetch", element_address(w.sums, w.sums_of(layer, 0) + line * 16))


def walk_layer(w: TextsWarps, layer: Any, cache: Cache) -> None:
    after = (layer + 1).minimum(w.step.layers - 1)
    attention(w, layer, cache)
    w.add_sums(layer, 0, w.proj_bias)
    for i in range(CHUNK):
        w.out_bias[i] = w.next_out_bias[i]  # was read long ago
    mlp(w, layer)
    fetch(w, after)
    read_ahead(w, after)
    w.add_sums(layer, 1, w.out_bias)


def logits_of(w: TextsWarps, arrays: dict[str, Any], a: dict[str, Any]) -> None:
    """The last norm, and the products with the embedding: 4 tiles of 8 rows of each round, whose sums a warp adds up
    for each text."""
    s, here, lane = w.step, w.here, w.lane
    weights, biases = floats(w.own(arrays["norm_weight"], 0)), floats(w.own(arrays["norm_bias"], 0))
    square, *means = (one * (1.0 / s.width) for one in w.whole(w.own_sums(), 1))
    mean = means[0] if means else cute.scalar(0.0)
    scale = w.rsqrt(square - mean * mean + w.eps)
    for i in range(2 * CHUNK):
        w.x[i] = ((w.x[i] - mean) * scale).fma(weights[i], biases[i])
    # Nobody takes logits for right that were made from words which did not come: those of this block become NaN.
    w.x[0] = cute.select(cute.less(0, as_number(w.late[0])), cute.scalar(float("nan")), w.x[0])
    columns = operand(w.x, s.logit_bits)
    found = [Likeliest(w, a["visible"]) for _ in range(0, TEXTS, s.warps)]
    held = cute.make_fragment(2 * TILES, "f32")
    for step in cute.range_(s.rounds):
        _round(w, columns, here.steps * s.layers, step, held)
        w.save([[held[2 * i], held[2 * i + 1]] for i in range(TILES)])
        w.meet()
        token = token_of(w, step, lane)
        for i, likeliest in enumerate(found):
            text = w.warp + i * s.warps
            with cute.when(cute.both(cute.less(text, here.texts), cute.less(token, s.vocabulary))):
                value = w.row_total(text, lane)
                if s.logit_bits == 8:
                    value = value * w.head_scales[step * UNITS + lane]
                value = value.to("bf16")
                arrays["logits"][text * s.vocabulary + token] = value
                likeliest.take(value.to("f32"), token)
        w.meet()
    for i, likeliest in enumerate(found):
        text = w.warp + i * s.warps
        with cute.when(cute.less(text, here.texts)):
            likeliest.tell_row(arrays["values"], arrays["indices"], a["values"].shape[1], text)


def _round(w: TextsWarps, columns: list[Operand], first: Any, step: Any, held: Any) -> None:
    """The products of a round's tiles with the warp's columns, or 0 of those that the embedding does not have."""
    s, each = w.step, w.step.logit_rows // ROWS
    begin, last = first + step * s.at_once, s.at_once - 1

    def has(i: int) -> Any:
        return cute.less((step * s.at_once + i) * s.blocks + w.here.block, s.vocabulary // s.logit_rows)

    def take(i: int, made: list[list[Any]]) -> None:
        for tile in made:
            for j, value in enumerate(tile):
                held[i * 2 + j] = value
            i += 1

    cute.fill(held, 0.0)
    with cute.when(has(last)):
        take(0, w.tiles(begin, TILES, columns, s.logit_bits))
    with cute.when(cute.invert(has(last))):
        for i in range(last):
            with cute.when(has(i)):
                take(i * each, w.tiles(begin + i, each, columns, s.logit_bits))


def token_of(w: TextsWarps, step: Any, row: Any) -> Any:
    """The token of a row of a round of logits."""
    s, rows = w.step, w.step.logit_rows
    return ((step * s.at_once + row // rows) * s.blocks + w.here.block) * rows + row % rows
