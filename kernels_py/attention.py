"""out = softmax(scale q @ k.T + causal mask) @ v, for each batch and head"""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]
LOG2_E = 1.4426950408889634


@ct.kernel
def attention(q, k, v, out, scale, D: ConstInt, BT: ConstInt, BS: ConstInt, TF32: ConstBool):
    """Flash attention: one block makes BT queries of one head, walking the keys in tiles of BS that the causal mask
    lets it see, with a running maximum and sum per query. The T queries are the last of S positions."""
    i, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    past = k.shape[1] - q.shape[1]
    first = past + i * BT
    q_place = (first + ct.arange(BT, dtype=ct.int32))[:, None]
    steps = ct.cdiv(ct.minimum(first + BT, k.shape[1]), BS)

    queries = ct.load(q, index=(b, i, h, 0), shape=(1, BT, 1, D), padding_mode=ct.PaddingMode.ZERO).reshape((BT, D))
    if TF32:
        queries = queries.astype(ct.tfloat32)
    scale_log2 = scale * LOG2_E  # scores in units of log 2, so that exp2 serves for exp
    maximum = ct.full((BT, 1), -float("inf"), ct.float32)
    total = ct.zeros((BT, 1), ct.float32)
    acc = ct.zeros((BT, D), ct.float32)
    for j in range(steps):
        keys = ct.load(k, index=(b, j, h, 0), shape=(1, BS, 1, D), padding_mode=ct.PaddingMode.ZERO).reshape((BS, D))
        if TF32:
            keys = keys.astype(ct.tfloat32)
        score = ct.mma(queries, ct.permute(keys, (1, 0)), ct.zeros((BT, BS), ct.float32)) * scale_log2
        k_place = (j * BS + ct.arange(BS, dtype=ct.int32))[None, :]
        score = ct.where(k_place <= q_place, score, -float("inf"))

        # Key 0 is visible to every query, so the maximum is finite from the first tile on.
        risen = ct.maximum(maximum, ct.max(score, axis=1, keepdims=True))
        rescale = ct.exp2(maximum - risen)
        p = ct.exp2(score - risen)
        total = total * rescale + ct.sum(p, axis=1, keepdims=True)
        values = ct.load(v, index=(b, j, h, 0), shape=(1, BS, 1, D), padding_mode=ct.PaddingMode.ZERO).reshape((BS, D))
        if TF32:
            acc = ct.mma(p.astype(ct.tfloat32), values.astype(ct.tfloat32), acc * rescale)
        else:
            acc = ct.mma(p.astype(v.dtype), values, acc * rescale)
        maximum = risen
    ct.store(out, index=(b, i, h, 0), tile=(acc / total).astype(out.dtype).reshape((1, BT, 1, D)))
