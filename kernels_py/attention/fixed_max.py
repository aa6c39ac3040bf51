"""Attention whose softmax is taken relative to an anchor, not to a running maximum."""

from __future__ import annotations

import cuda.tile as ct

from .attention import LOG2_E, block, load_kv, masked_tiles, nothing_yet, scores

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]
# Of the sums of a block's rows: below where bf16 and f32 end, and 83 in the scores above the anchor
MOST = 2.0**120


def anchored(q, k, v, out, scale, D, BT, BS, GROUP, TF32):
    """Flash attention whose key tiles that the causal mask cuts come first, with the online softmax. Their maximum is
    each query's anchor: the scores of all other tiles are taken relative to it, so that these need no maximum and
    rescale nothing, and no step waits for another's. Any anchor gives the same quotient unless something overflows; the
    block then begins anew and takes all of its tiles with the online softmax. That second walk loads without the copy
    engine: whether it is taken is known to the threads that multiply alone. Of f16 the weights would overflow early."""
    h, b, i, first, there = block(q, k, BT, GROUP)
    ct.grid_dependency_control_wait()
    whole = there * (first // BS)  # a query's own key is in the first tile behind these
    steps = there * ct.cdiv(ct.minimum(first + BT, k.shape[1]), BS)

    queries = load_kv(q, b, i, h, BT, D)
    if TF32:
        queries = queries.astype(ct.tfloat32)
    scale_log2 = scale * LOG2_E
    lowest, nothing, empty = nothing_yet(BT, D, -float("inf"))
    anchor, total, acc = masked_tiles(
        queries, k, v, b, h, first, whole, steps, scale_log2, lowest, nothing, empty, BS, D, True, TF32
    )  # fmt: skip
    for j in range(whole):
        score = scores(queries, load_kv(k, b, j, h, BS, D), TF32)
        p = ct.exp2(score * scale_log2 - anchor, flush_to_zero=True)
        total = total + ct.sum(p, axis=1, keepdims=True)
        values = load_kv(v, b, j, h, BS, D)
        if TF32:
            acc = ct.mma(p.astype(ct.tfloat32), values.astype(ct.tfloat32), acc)
        else:
            acc = ct.mma(p.astype(values.dtype), values, acc)
    # What is not finite in the result makes the level NaN
    level = ct.sum(total + 0.0 * ct.sum(acc, axis=1, keepdims=True))
    if not level < MOST:
        _, total, acc = masked_tiles(
            queries, k, v, b, h, first, 0, steps, scale_log2, lowest, nothing, empty, BS, D, False, TF32
        )  # fmt: skip
    ct.store(out, index=(b, i, h, 0), tile=(acc * (1.0 / total)).astype(out.dtype).reshape((1, BT, 1, D)))


@ct.kernel
def attention_fixed_max(q, k, v, out, scale, D: ConstInt, BT: ConstInt, BS: ConstInt, GROUP: ConstInt, TF32: ConstBool):
    anchored(q, k, v, out, scale, D, BT, BS, GROUP, TF32)


@ct.kernel
def attention_to_f8_fixed_max(q, k, v, out, scale, D: ConstInt, BT: ConstInt, BS: ConstInt, GROUP: ConstInt):
    """The same with a result in 8 bits"""
    anchored(q, k, v, out, scale, D, BT, BS, GROUP, False)
