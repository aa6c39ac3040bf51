"""The key-value cache: appending to it, and attention of one query per sequence over it."""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]
LOG2_E = 1.4426950408889634


@ct.kernel
def kv_append(k, v, positions, k_cache, v_cache, D: ConstInt):
    """One block copies one head's vectors of one position: k_cache[b, positions[b] + t] = k[b, t], likewise v."""
    t, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    place = ct.load(positions, index=(b,), shape=(1,)).item() + t
    key = ct.load(k, index=(b, t, h, 0), shape=(1, 1, 1, D))
    value = ct.load(v, index=(b, t, h, 0), shape=(1, 1, 1, D))
    ct.store(k_cache, index=(b, place, h, 0), tile=key)
    ct.store(v_cache, index=(b, place, h, 0), tile=value)


@ct.kernel
def decode_attention(q, k_cache, v_cache, lengths, out, scale, D: ConstInt, BS: ConstInt):
    """One block makes one head of one sequence, walking the cache in tiles of BS as far as that sequence's length. With
    a single query a matrix product would waste the tensor cores: products are element by element in f32."""
    h, b = ct.bid(0), ct.bid(1)
    length = ct.load(lengths, index=(b,), shape=(1,)).item()
    query = ct.load(q, index=(b, h, 0), shape=(1, 1, D)).reshape((1, D)).astype(ct.float32)
    query = query * (scale * LOG2_E)
    maximum = ct.full((1, 1), -float("inf"), ct.float32)
    total = ct.zeros((1, 1), ct.float32)
    acc = ct.zeros((1, D), ct.float32)
    for j in range(ct.cdiv(length, BS)):
        filled = ((j * BS + ct.arange(BS, dtype=ct.int32)) < length)[:, None]
        keys = ct.load(k_cache, index=(b, j, h, 0), shape=(1, BS, 1, D), padding_mode=ct.PaddingMode.ZERO)
        score = ct.sum(keys.reshape((BS, D)).astype(ct.float32) * query, axis=1, keepdims=True)
        score = ct.where(filled, score, -float("inf"))
        risen = ct.maximum(maximum, ct.max(score, axis=0, keepdims=True))
        rescale = ct.exp2(maximum - risen)
        p = ct.exp2(score - risen)
        total = total * rescale + ct.sum(p, axis=0, keepdims=True)
        # What lies past the length is not ours and may be anything, NaN too: it must not be multiplied by 0.
        values = ct.load(v_cache, index=(b, j, h, 0), shape=(1, BS, 1, D), padding_mode=ct.PaddingMode.ZERO)
        values = ct.where(filled, values.reshape((BS, D)).astype(ct.float32), 0.0)
        acc = acc * rescale + ct.sum(p * values, axis=0, keepdims=True)
        maximum = risen
    ct.store(out, index=(b, h, 0), tile=(acc / total).astype(out.dtype).reshape((1, 1, D)))
