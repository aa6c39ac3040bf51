"""The two ops in Triton: plain first versions."""

import triton
import triton.language as tl


@triton.jit
def layernorm(x, weight, bias, out, eps, C: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < C
    value = tl.load(x + row * C + columns, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(value, axis=0) / C
    deviation = tl.where(inside, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(deviation * deviation, axis=0) / C + eps)
    gain = tl.load(weight + columns, mask=inside).to(tl.float32)
    shift = tl.load(bias + columns, mask=inside).to(tl.float32)
    tl.store(out + row * C + columns, (deviation * scale * gain + shift).to(tl.bfloat16), mask=inside)


@triton.jit
def attention(q, k, v, out, length, scale_log2, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    block = tl.num_programs(0) - 1 - tl.program_id(0)  # the longest blocks first
    head = tl.program_id(1).to(tl.int64) * length * D
    rows, columns, features = block * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    inside = rows[:, None] < length
    query = tl.load(q + head + rows[:, None] * D + features, mask=inside, other=0.0)
    top = tl.full([BM], -1e30, tl.float32)
    total = tl.zeros([BM], tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    for start in range(0, tl.minimum((block + 1) * BM, length), BN):
        places = start + columns
        there = places[:, None] < length
        key = tl.load(k + head + places[:, None] * D + features, mask=there, other=0.0)
        value = tl.load(v + head + places[:, None] * D + features, mask=there, other=0.0)
        scores = tl.dot(query, tl.trans(key)) * scale_log2
        scores = tl.where(places[None, :] <= rows[:, None], scores, -1e30)
        risen = tl.maximum(top, tl.max(scores, 1))
        shrink, weights = tl.exp2(top - risen), tl.exp2(scores - risen[:, None])
        total = total * shrink + tl.sum(weights, 1)
        result = tl.dot(weights.to(tl.bfloat16), value, result * shrink[:, None])
        top = risen
    made = (result / total[:, None]).to(tl.bfloat16)
    tl.store(out + head + rows[:, None] * D + features, made, mask=inside)
