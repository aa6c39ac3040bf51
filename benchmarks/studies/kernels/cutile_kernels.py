"""The two ops in cuTile Python: plain first versions."""

import cuda.tile as ct


@ct.kernel
def layernorm(x, weight, bias, out, eps, TILE: ct.Constant[int]):
    row, zero = ct.bid(0), ct.PaddingMode.ZERO
    width = x.shape[1]
    value = ct.load(x, index=(row, 0), shape=(1, TILE), padding_mode=zero).astype(ct.float32)
    gain = ct.load(weight, index=(0,), shape=(TILE,), padding_mode=zero).astype(ct.float32)[None, :]
    shift = ct.load(bias, index=(0,), shape=(TILE,), padding_mode=zero).astype(ct.float32)[None, :]
    mean = ct.sum(value, axis=1, keepdims=True) / width
    inside = ct.less(ct.arange(TILE, dtype=ct.int32), width)[None, :]
    deviation = ct.where(inside, value - mean, 0.0)
    scale = ct.rsqrt(ct.sum(deviation * deviation, axis=1, keepdims=True) / width + eps)
    ct.store(out, index=(row, 0), tile=(deviation * scale * gain + shift).astype(out.dtype))


@ct.kernel
def attention(q, k, v, out, scale_log2, TQ: ct.Constant[int], TK: ct.Constant[int], D: ct.Constant[int]):
    i, head, zero = ct.num_blocks(0) - 1 - ct.bid(0), ct.bid(1), ct.PaddingMode.ZERO  # the longest blocks first
    queries = ct.load(q, index=(head, i, 0), shape=(1, TQ, D), padding_mode=zero).reshape((TQ, D))
    q_place = (i * TQ + ct.arange(TQ, dtype=ct.int32))[:, None]
    top = ct.full((TQ, 1), -1e30, ct.float32)
    total = ct.zeros((TQ, 1), ct.float32)
    result = ct.zeros((TQ, D), ct.float32)
    for j in range(ct.cdiv(min((i + 1) * TQ, q.shape[1]), TK)):
        keys = ct.load(k, index=(head, j, 0), shape=(1, TK, D), padding_mode=zero).reshape((TK, D))
        values = ct.load(v, index=(head, j, 0), shape=(1, TK, D), padding_mode=zero).reshape((TK, D))
        scores = ct.mma(queries, ct.permute(keys, (1, 0)), ct.zeros((TQ, TK), ct.float32)) * scale_log2
        k_place = (j * TK + ct.arange(TK, dtype=ct.int32))[None, :]
        scores = ct.where(ct.less_equal(k_place, q_place), scores, -1e30)
        risen = ct.maximum(top, ct.max(scores, axis=1, keepdims=True))
        shrink, weights = ct.exp2(top - risen), ct.exp2(scores - risen)
        total = total * shrink + ct.sum(weights, axis=1, keepdims=True)
        result = ct.mma(weights.astype(values.dtype), values, result * shrink)
        top = risen
    ct.store(out, index=(head, i, 0), tile=(result / total).astype(out.dtype).reshape((1, TQ, D)))
