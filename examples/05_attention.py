"""Attention without the matrix of scores: the softmax is corrected as each tile of keys arrives.

    python examples/05_attention.py

One block makes TQ queries of one head. It walks the keys in tiles, and keeps a running maximum, a running sum and the
result so far. When the maximum rises, what was summed is scaled down. This is flash attention in 20 lines.
"""

from __future__ import annotations

import cuda.tile as ct
import numpy as np

import tilestack as ts

HEADS, T, D, TQ, TK = 2, 100, 32, 32, 32
LOG2_E = 1.4426950408889634


@ct.kernel
def attention(q, k, v, out, scale, TQ: ct.Constant[int], TK: ct.Constant[int], D: ct.Constant[int]):
    head, i, zero = ct.bid(1), ct.bid(0), ct.PaddingMode.ZERO
    queries = ct.load(q, index=(head, i, 0), shape=(1, TQ, D), padding_mode=zero).reshape((TQ, D))
    q_place = (i * TQ + ct.arange(TQ, dtype=ct.int32))[:, None]
    maximum = ct.full((TQ, 1), -1e30, ct.float32)
    total = ct.zeros((TQ, 1), ct.float32)
    result = ct.zeros((TQ, D), ct.float32)
    for j in range(ct.cdiv((i + 1) * TQ, TK)):  # later keys are in the future of all these queries
        keys = ct.load(k, index=(head, j, 0), shape=(1, TK, D), padding_mode=zero).reshape((TK, D))
        values = ct.load(v, index=(head, j, 0), shape=(1, TK, D), padding_mode=zero).reshape((TK, D))
        score = ct.mma(queries, ct.permute(keys, (1, 0)), ct.zeros((TQ, TK), ct.float32)) * (scale * LOG2_E)
        k_place = (j * TK + ct.arange(TK, dtype=ct.int32))[None, :]
        score = ct.where(ct.less_equal(k_place, q_place), score, -float("inf"))

        risen = ct.maximum(maximum, ct.max(score, axis=1, keepdims=True))
        correction, weight = ct.exp2(maximum - risen), ct.exp2(score - risen)
        total = total * correction + ct.sum(weight, axis=1, keepdims=True)
        result = ct.mma(weight.astype(values.dtype), values, result * correction)
        maximum = risen
    tile = (result / total).astype(out.dtype).reshape((1, TQ, D))
    ct.store(out, index=(head, i, 0), tile=tile)


def exact(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """In float64, with the whole matrix of scores."""
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / np.sqrt(D)
    scores[:, np.triu_indices(T, 1)[0], np.triu_indices(T, 1)[1]] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v.astype(np.float64)


def main() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((HEADS, T, D)).astype(np.float16) for _ in range(3))
    out = np.zeros_like(q)
    print(f"on {ts.device_name()}: {HEADS} heads, {T} positions, head size {D}, f16")
    ts.load(attention)[-(-T // TQ), HEADS](q, k, v, out, float(1 / np.sqrt(D)), TQ=TQ, TK=TK, D=D)
    print("largest difference from float64:", abs(out - exact(q, k, v)).max())
    print(f"scores in one block: {TQ * TK}; in the whole matrix: {HEADS * T * T}")


if __name__ == "__main__":
    main()
