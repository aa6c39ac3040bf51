"""Every op in numpy float64, the oracle. Names and arguments are those of `toolchain/contract/ops.toml`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from . import decode_step as whole

Array = NDArray[Any]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


def f64(x: Array) -> F64:
    return np.asarray(x, np.float64)


def embedding(tokens: Array, positions: Array, wte: Array, wpe: Array) -> F64:
    return f64(wte[tokens]) + f64(wpe[positions])  # (N, C)


def embedding_centred(tokens: Array, positions: Array, wte: Array, wpe: Array, squares: Array) -> tuple[F64, F64]:
    """The embedding minus its row mean, and its row sums of squares. A row's whole sum is in part 0 of `squares`, the
    other parts are 0."""
    whole = embedding(tokens, positions, wte, wpe)
    centred = whole - whole.mean(axis=-1, keepdims=True)
    sums = np.zeros(squares.shape)
    sums[0, : len(whole)] = (centred**2).sum(axis=-1)
    return centred, sums


def layernorm(x: Array, weight: Array, bias: Array, eps: float) -> F64:
    x = f64(x)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * f64(weight) + f64(bias)


def linear(x: Array, weight: Array, bias: Array) -> F64:
    out = f64(x) @ f64(weight)  # (M, K) @ (K, N)
    out += f64(bias)  # in place: memory for large results takes longer than the sum
    return out


def linear_gelu(x: Array, weight: Array, bias: Array) -> F64:
    return gelu(linear(x, weight, bias))


def linear_residual(x: Array, weight: Array, bias: Array, residual: Array) -> F64:
    out = linear(x, weight, bias)
    out += f64(residual)
    return out


def linear_residual_squares(x: Array, weight: Array, bias: Array, residual: Array, squares: Array) -> tuple[F64, F64]:
    """`linear_residual`, and the row sums of squares of its result, in as many parts as `squares` has. `squares` may
    have more rows than x; there the input is zeros, so the result is the bias."""
    out = linear_residual(x, weight, bias, residual)
    behind = np.broadcast_to(f64(bias), (squares.shape[1] - len(x), len(bias)))
    return out, parts_of_squares(np.concatenate([out, behind]), len(squares))


def parts_of_squares(rows: Array, count: int) -> F64:
    """Row sums of squares (count, L): the columns of a row are split into `count` parts, each whole steps of 32."""
    steps = (rows.shape[1] + 31) // 32
    size = 32 * ((steps + count - 1) // count)
    return np.stack([(f64(rows[:, z * size : (z + 1) * size]) ** 2).sum(axis=1) for z in range(count)])


def rms_linear(x: Array, squares: Array, weight: Array, bias: Array, eps: float) -> F64:
    out = f64(x) @ f64(weight)
    out /= root_mean_square(squares, x, eps)
    out += f64(bias)
    return out


def root_mean_square(squares: Array, x: Array, eps: float) -> F64:
    """Of each row of x (M, K), from the parts of its sum of squares (Z, L): (M, 1)."""
    return np.sqrt(f64(squares).sum(axis=0)[: len(x), None] / x.shape[1] + eps)


def rms_linear_gelu(x: Array, squares: Array, weight: Array, bias: Array, eps: float) -> F64:
    return gelu(rms_linear(x, squares, weight, bias, eps))


def linear_split_k(x: Array, weight: Array, partial: Array) -> F64:
    """The product, split along K into as many parts as `partial` has."""
    steps = (x.shape[1] + 63) // 64
    size = 64 * ((steps + len(partial) - 1) // len(partial))  # columns of a part: whole steps of 64
    parts = [slice(z * size, (z + 1) * size) for z in range(len(partial))]
    return np.stack([f64(x[:, part]) @ f64(weight[part]) for part in parts])  # (Z, M, N)


def residual_layernorm(
    partial: Array, bias: Array, norm_weight: Array, norm_bias: Array, x: Array, eps: float
) -> tuple[F64, F64]:
    """x with the residual added, and its norm. `x` stays as it is."""
    total = f64(x) + f64(partial).sum(axis=0) + f64(bias)
    return total, layernorm(total, norm_weight, norm_bias, eps)


def quantize_rows(x: Array) -> tuple[F64, F64]:
    """The op says in which precision it computes and rounds, so these are the very numbers that it stores."""
    quotients, scales = _within(x, LARGEST)
    return f64(quotients.astype(ml_dtypes.float8_e4m3fn)), f64(scales)


def quantize_rows_i8(x: Array) -> tuple[F64, F64]:
    """The very numbers, as of `quantize_rows`."""
    quotients, scales = _within(x, LARGEST_I8)
    return f64(np.clip(np.rint(quotients), -LARGEST_I8, LARGEST_I8)), f64(scales)


def _within(x: Array, most: float) -> tuple[F32, F32]:
    """Rows that are divided by their scales, so that the largest is `most`, and the scales."""
    x = np.asarray(x, np.float32)
    scales = np.maximum(np.abs(x).max(axis=-1) / np.float32(most), np.finfo(np.float32).smallest_normal)
    return x * (np.float32(1) / scales[:, None]), scales


def linear_f8(x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array) -> F64:
    return f64(x) @ f64(weight).T * f64(x_scales)[:, None] * f64(weight_scales) + f64(bias)


def linear_gelu_f8(x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array) -> F64:
    return gelu(linear_f8(x, x_scales, weight, weight_scales, bias))


def layernorm_f8(x: Array, weight: Array, bias: Array, eps: float) -> tuple[F64, F64]:
    """Without the rounding of its last step, so that a result on the other side of a tie is no error."""
    return _normed_within(x, weight, bias, eps, LARGEST)


def layernorm_i8(x: Array, weight: Array, bias: Array, eps: float) -> tuple[F64, F64]:
    return _normed_within(x, weight, bias, eps, LARGEST_I8)


def _normed_within(x: Array, weight: Array, bias: Array, eps: float, most: float) -> tuple[F64, F64]:
    exact = layernorm(x, weight, bias, eps)
    scales = np.maximum(np.abs(exact).max(axis=-1) / most, np.finfo(np.float32).smallest_normal)
    return exact / scales[:, None], scales


def linear_gelu_f8_to_f8(
    x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, factors: Array
) -> F64:
    """Without the rounding of its last step."""
    return linear_gelu_f8(x, x_scales, weight, weight_scales, bias) * f64(factors)


def linear_residual_f8(
    x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, residual: Array
) -> F64:
    return f64(residual) + linear_f8(x, x_scales, weight, weight_scales, bias)


# Integers have the same formulas as 8-bit floats.
linear_i8, linear_gelu_i8, linear_residual_i8 = linear_f8, linear_gelu_f8, linear_residual_f8


def linear_weight_i8(x: Array, weight: Array, weight_scales: Array, bias: Array) -> F64:
    return f64(x) @ f64(weight).T * f64(weight_scales) + f64(bias)


def linear_gelu_weight_i8(x: Array, weight: Array, weight_scales: Array, bias: Array) -> F64:
    return gelu(linear_weight_i8(x, weight, weight_scales, bias))


def linear_residual_weight_i8(x: Array, weight: Array, weight_scales: Array, bias: Array, residual: Array) -> F64:
    return f64(residual) + linear_weight_i8(x, weight, weight_scales, bias)


def swiglu_weight_i8(x: Array, gate: Array, gate_scales: Array, up: Array, up_scales: Array) -> F64:
    return swiglu(x, f64(gate).T * f64(gate_scales), f64(up).T * f64(up_scales))


def linear_split_k_weight_i8(x: Array, weight: Array, weight_scales: Array, partial: Array) -> F64:
    return linear_split_k(x, f64(weight).T * f64(weight_scales), partial)


def layernorm_linear_weight_i8(
    x: Array, norm_weight: Array, norm_bias: Array, weight: Array, weight_scales: Array, bias: Array, eps: float
) -> F64:
    return linear_weight_i8(layernorm(x, norm_weight, norm_bias, eps), weight, weight_scales, bias)


def layernorm_linear_gelu_weight_i8(
    x: Array, norm_weight: Array, norm_bias: Array, weight: Array, weight_scales: Array, bias: Array, eps: float
) -> F64:
    return gelu(layernorm_linear_weight_i8(x, norm_weight, norm_bias, weight, weight_scales, bias, eps))


linear_split_k_weight_f8, layernorm_linear_weight_f8 = linear_split_k_weight_i8, layernorm_linear_weight_i8
layernorm_linear_gelu_weight_f8 = layernorm_linear_gelu_weight_i8
linear_weight_f8, linear_gelu_weight_f8 = linear_weight_i8, linear_gelu_weight_i8
linear_residual_weight_f8, swiglu_weight_f8 = linear_residual_weight_i8, swiglu_weight_i8


def logits(x: Array, weight: Array) -> F64:
    return f64(x) @ f64(weight).T  # (M, C) @ (C, V)


def attention(q: Array, k: Array, v: Array, scale: float) -> F64:
    """Causal attention. The T queries are the last T of the S positions."""
    (batch, t, heads, _), s = q.shape, k.shape[1]
    out = np.empty(q.shape)
    for b, h in np.ndindex(batch, heads):
        keys, values = f64(k[b, :, h]), f64(v[b, :, h])
        for rows, stop in blocks(t, s):
            scores = hide(scale * (f64(q[b, rows, h]) @ keys[:stop].T))
            out[b, rows, h] = softmax(scores) @ values[:stop]
    return out


def attention_to_f8(q: Array, k: Array, v: Array, scale: float) -> F64:
    """Without the rounding of its last step."""
    return attention(q, k, v, scale)


BLOCK = 128  # queries: the scores of so many stay in the cache


def blocks(t: int, s: int) -> list[tuple[slice, int]]:
    """The queries of causal attention in blocks of at most BLOCK, each with how many of the S keys it sees. Of several
    blocks none has fewer than BLOCK / 2."""
    count = max(1, -(-t // BLOCK))
    bounds = [t * block // count for block in range(count + 1)]
    return [(slice(start, stop), s - t + stop) for start, stop in itertools.pairwise(bounds)]


def hide(scores: Array) -> Array:
    """The scores (T, S) of a block's queries and the keys it sees; -inf, in place, where a key comes after a query."""
    t, s = scores.shape
    scores[:, s - t :][np.triu(np.ones((t, t), bool), 1)] = -np.inf
    return scores


def gelu(x: Array) -> F64:
    return in_parts(lambda part: _gelu(f64(part)), x)


def _gelu(x: F64) -> F64:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)))


IN_CACHE = 1 << 16  # elements


def in_parts(function: Callable[[Array], Array], x: Array) -> Array:
    """Applies an elementwise function to x in parts that fit the processor's cache."""
    flat = x.reshape(-1)
    out = np.empty(flat.shape, function(flat[:0]).dtype)
    for start in range(0, x.size, IN_CACHE):
        out[start : start + IN_CACHE] = function(flat[start : start + IN_CACHE])
    return out.reshape(x.shape)


def softmax(x: Array) -> F64:
    x = f64(x)
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def kv_append(k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array) -> tuple[F64, F64]:
    """The caches after the append; the arguments stay as they are."""
    k_out, v_out = f64(k_cache).copy(), f64(v_cache).copy()
    for batch, start in enumerate(positions):
        k_out[batch, start : start + k.shape[1]] = k[batch]
        v_out[batch, start : start + v.shape[1]] = v[batch]
    return k_out, v_out


def decode_attention(
    q: Array, k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, partial: Array, scale: float
) -> tuple[F64, F64, F64, F64]:
    """The caches after the append, then `partial` and `stats` for as many spans as `partial` has: see ops.toml."""
    keys, values = kv_append(k[:, None], v[:, None], positions, k_cache, v_cache)  # (B, P, H, D)
    sums, stats = np.zeros(partial.shape), np.zeros((*partial.shape[:3], 2))  # (B, H, Z, D), (B, H, Z, 2)
    stats[..., 0] = LEAST
    for b, last in enumerate(positions):
        for z, (start, stop) in enumerate(spans(keys.shape[1], partial.shape[2], int(last))):
            scores = scale * np.log2(np.e) * np.einsum("hd,phd->hp", f64(q[b]), keys[b, start:stop])  # (H, S)
            top = scores.max(axis=-1, keepdims=True)
            weights = 2.0 ** (scores - top)
            stats[b, :, z, 0], stats[b, :, z, 1] = top[:, 0], weights.sum(axis=-1)
            sums[b, :, z] = np.einsum("hp,phd->hd", weights, values[b, start:stop])
    return keys, values, sums, stats


LEAST = -1e30  # stands for the largest score of a span without positions
LARGEST = 448.0  # of f8E4M3FN
LARGEST_I8 = 127.0


def spans(positions: int, count: int, last: int) -> list[tuple[int, int]]:
    """Start and stop of the non-empty spans of a cache that is filled up to position `last`. The length of a span is
    the smallest power of two, at least SPAN_MIN, with which `count` spans cover all `positions`."""
    size = SPAN_MIN
    while -(-positions // size) > count:
        size *= 2
    return [(start, min(start + size, last + 1)) for start in range(0, last + 1, size)]


SPAN_MIN = 128


def merge_attention(partial: Array, stats: Array) -> F64:
    tops = f64(stats[..., 0])  # (B, H, Z)
    weights = 2.0 ** (tops - tops.max(axis=-1, keepdims=True))
    total = (f64(stats[..., 1]) * weights).sum(axis=-1)
    return (f64(partial) * weights[..., None]).sum(axis=2) / total[..., None]  # (B, H, D)


def merge_linear_residual_squares(
    partial: Array, stats: Array, weight: Array, bias: Array, residual: Array, squares: Array
) -> tuple[F64, F64]:
    rows = merge_attention(partial, stats).reshape(len(partial), -1)  # (B, H D)
    return linear_residual_squares(rows, weight, bias, residual, squares)


def decode_attention_unsplit(
    q: Array, k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, scale: float
) -> tuple[F64, F64, F64]:
    """The caches after the append, and the result (B, H, D)."""
    keys, values = kv_append(k[:, None], v[:, None], positions, k_cache, v_cache)  # (B, P, H, D)
    out = np.zeros(q.shape)
    for b, last in enumerate(positions):
        seen = slice(0, int(last) + 1)
        weights = softmax(scale * np.einsum("hd,phd->hp", f64(q[b]), keys[b, seen]))  # (H, S)
        out[b] = np.einsum("hp,phd->hd", weights, values[b, seen])
    return keys, values, out


@functools.wraps(whole.decode_step)
def decode_step(**arrays: Any) -> tuple[F64, F64]:
    return whole.decode_step(**arrays, wide=np.float64, keep=lambda x: x)


def argmax_parts(x: Array, values: Array) -> tuple[F64, NDArray[np.int32]]:
    """The largest value and its index in each part of a row, PART columns a part. `values` must have room for all."""
    x = f64(x)
    parts = [x[:, start : start + PART] for start in range(0, x.shape[1], PART)]
    if len(parts) != values.shape[1]:
        raise ValueError(f"{x.shape[1]} columns are {len(parts)} parts, not {values.shape[1]}")
    largest = np.stack([part.max(axis=1) for part in parts], axis=1)  # (M, Z)
    indices = np.stack([part.argmax(axis=1) + PART * z for z, part in enumerate(parts)], axis=1)
    return largest, indices.astype(np.int32)


PART = 2048


def next_token(values: Array, indices: Array, positions: Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The token of each row, and the positions counted up."""
    best = np.argmax(f64(values), axis=1)
    return indices[np.arange(len(indices)), best].astype(np.int32), (positions + 1).astype(np.int32)


# Ops of models of Llama's family: Q heads of queries share each of G heads of keys and values


def token_embedding(tokens: Array, wte: Array) -> F64:
    return f64(wte[tokens])  # (N, C)


def rmsnorm(x: Array, weight: Array, eps: float) -> F64:
    x = f64(x)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * f64(weight)


def matmul(x: Array, weight: Array) -> F64:
    return f64(x) @ f64(weight)  # (M, K) @ (K, N)


def matmul_residual(x: Array, weight: Array, residual: Array) -> F64:
    return f64(residual) + matmul(x, weight)


def silu(x: Array) -> F64:
    """x / (1 + e^-x), as x (1 + tanh(x / 2)) / 2, which does not overflow."""
    half = 0.5 * f64(x)
    return half + half * np.tanh(half)


def swiglu(x: Array, gate: Array, up: Array) -> F64:
    return silu(matmul(x, gate)) * matmul(x, up)


def rms_swiglu(x: Array, squares: Array, gate: Array, up: Array, eps: float) -> F64:
    return swiglu(f64(x) / root_mean_square(squares, x, eps), gate, up)


def turn(x: Array, cos: Array, sin: Array) -> F64:
    """Heads (..., D), turned by the angles of their position: two halves of D / 2 elements (..., D / 2)."""
    first, second = np.split(f64(x), 2, axis=-1)
    c, s = f64(cos), f64(sin)
    return np.concatenate([first * c - second * s, second * c + first * s], axis=-1)


def places(positions: Array, length: int) -> NDArray[np.int64]:
    """The positions (B, T) of the new tokens."""
    return positions[:, None].astype(np.int64) + np.arange(length)


def rope_append(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, k_cache: Array, v_cache: Array
) -> tuple[F64, F64, F64]:
    """The turned queries, and the caches after the append; the arguments stay as they are."""
    at = places(positions, q.shape[1])
    c, s = cos[at][:, :, None], sin[at][:, :, None]  # (B, T, 1, D / 2)
    keys, values = kv_append(turn(k, c, s), v, positions, k_cache, v_cache)
    return turn(q, c[:, :, None], s[:, :, None]), keys, values


def norm_rope_append(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, q_weight: Array, k_weight: Array,
    k_cache: Array, v_cache: Array, eps: float,
) -> tuple[F64, F64, F64]:  # fmt: skip
    """`rope_append` of heads that are normed first."""
    heads = rmsnorm(q, q_weight, eps), rmsnorm(k, k_weight, eps)
    return rope_append(*heads, v, positions, cos, sin, k_cache, v_cache)


def grouped_attention(q: Array, k: Array, v: Array, scale: float) -> F64:
    """Causal attention. The T queries are the last T of the S positions."""
    heads = [attention(q[:, :, :, i], k, v, scale) for i in range(q.shape[3])]
    return np.stack(heads, axis=3)  # (B, T, G, Q, D)


def grouped_decode_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, partial: Array, scale: float
) -> tuple[F64, F64]:
    """`partial` and `stats` for as many spans as `partial` has: see ops.toml."""
    sums, stats = np.zeros(partial.shape), np.zeros((*partial.shape[:4], 2))  # (B, G, Q, Z, D), (B, G, Q, Z, 2)
    stats[..., 0] = LEAST
    for b, last in enumerate(positions):
        for z, (start, stop) in enumerate(spans(k_cache.shape[1], partial.shape[3], int(last))):
            keys, values = f64(k_cache[b, start:stop]), f64(v_cache[b, start:stop])
            scores = scale * np.log2(np.e) * np.einsum("gqd,pgd->gqp", f64(q[b]), keys)  # (G, Q, S)
            top = scores.max(axis=-1, keepdims=True)
            weights = 2.0 ** (scores - top)
            stats[b, :, :, z, 0], stats[b, :, :, z, 1] = top[..., 0], weights.sum(axis=-1)
            sums[b, :, :, z] = np.einsum("gqp,pgd->gqd", weights, values)
    return sums, stats


def rope_decode_attention(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, k_cache: Array, v_cache: Array,
    partial: Array, scale: float,
) -> tuple[F64, F64, F64, F64]:  # fmt: skip
    """The caches after the append, and `partial` and `stats` of the turned queries."""
    token = q[:, None], k[:, None], v[:, None]  # T = 1
    turned, keys, values = rope_append(*token, positions, cos, sin, k_cache, v_cache)
    sums, stats = grouped_decode_attention(turned[:, 0], keys, values, positions, partial, scale)
    return keys, values, sums, stats


def grouped_decode_attention_unsplit(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, scale: float
) -> F64:  # (B, G, Q, D)
    out = np.zeros(q.shape)
    for b, last in enumerate(positions):
        keys, values = f64(k_cache[b, : int(last) + 1]), f64(v_cache[b, : int(last) + 1])
        weights = softmax(scale * np.einsum("gqd,pgd->gqp", f64(q[b]), keys))  # (G, Q, S)
        out[b] = np.einsum("gqp,pgd->gqd", weights, values)
    return out


def kv_append_f8(
    k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array
) -> tuple[F64, F64, F64, F64]:
    """Caches and scales after the append: the very numbers, as of `quantize_rows`."""
    keys, k_out = _append_rounded(k, positions, k_cache, k_scales, quantize_rows)
    values, v_out = _append_rounded(v, positions, v_cache, v_scales, quantize_rows)
    return keys, values, k_out, v_out


def _append_rounded(
    heads: Array, positions: Array, cache: Array, scales: Array, round_rows: Callable[[Array], tuple[F64, F64]]
) -> tuple[F64, F64]:
    """A cache (B, P, G, D) and its scales (B, G, P) after heads (B, T, G, D) were rounded and appended."""
    kept, of = f64(cache).copy(), f64(scales).copy()
    for batch, start in enumerate(positions):
        stop = start + heads.shape[1]
        rows, found = round_rows(heads[batch].reshape(-1, heads.shape[3]))
        kept[batch, start:stop] = rows.reshape(heads.shape[1:])
        of[batch, :, start:stop] = found.reshape(heads.shape[1:3]).T
    return kept, of


def rope_append_f8(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, k_cache: Array, v_cache: Array,
    k_scales: Array, v_scales: Array,
) -> tuple[F64, F64, F64, F64, F64]:  # fmt: skip
    """Keys without the rounding of their last step, so that one on the other side of a tie is no error."""
    turned, whole, _ = rope_append(q, k, v, positions, cos, sin, np.zeros(k_cache.shape), np.zeros(v_cache.shape))
    at = positions[:, None] + np.arange(k.shape[1])
    keys, k_out = _append_rounded(whole[np.arange(len(k))[:, None], at], positions, k_cache, k_scales, _unrounded)
    values, v_out = _append_rounded(v, positions, v_cache, v_scales, quantize_rows)
    return turned, keys, values, k_out, v_out


def _unrounded(rows: Array) -> tuple[F64, F64]:
    scales = np.maximum(np.abs(f64(rows)).max(axis=-1) / LARGEST, np.finfo(np.float32).smallest_normal)
    return f64(rows) / scales[:, None], scales


def norm_rope_append_f8(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, q_weight: Array, k_weight: Array,
    k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, eps: float,
) -> tuple[F64, F64, F64, F64, F64]:  # fmt: skip
    heads = rmsnorm(q, q_weight, eps), rmsnorm(k, k_weight, eps)
    return rope_append_f8(*heads, v, positions, cos, sin, k_cache, v_cache, k_scales, v_scales)


def kv_from_f8(k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array) -> tuple[F64, F64]:
    keys, values = (
        f64(cache) * np.moveaxis(f64(scales), 1, 2)[..., None]
        for cache, scales in ((k_cache, k_scales), (v_cache, v_scales))
    )
    return keys, values


def grouped_decode_attention_f8(
    q: Array, k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, positions: Array, partial: Array,
    scale: float,
) -> tuple[F64, F64]:  # fmt: skip
    return grouped_decode_attention(q, *kv_from_f8(k_cache, v_cache, k_scales, v_scales), positions, partial, scale)


def rows_of(pages: Array, tables: Array) -> Array:
    """The rows (B, L * PAGE, ...) that the pages (R, PAGE, ...) of each sequence are."""
    return pages[tables].reshape(tables.shape[0], -1, *pages.shape[2:])


def into_pages(pages: Array, tables: Array, rows: Array, positions: Array, length: int) -> Array:
    """A copy of the pages with `length` positions of each sequence, from its own on, taken from its rows."""
    out, page = pages.copy(), pages.shape[1]
    for batch, at in enumerate(places(positions, length)):
        out[tables[batch, at // page], at % page] = rows[batch, at]
    return out


def paged_append(
    k: Array, v: Array, positions: Array, tables: Array, k_cache: Array, v_cache: Array
) -> tuple[Array, Array]:
    """The pages after the append; the arguments stay as they are."""
    k_pages, v_pages = f64(k_cache), f64(v_cache)
    rows = kv_append(k, v, positions, rows_of(k_pages, tables), rows_of(v_pages, tables))
    keys, values = (
        into_pages(pages, tables, made, positions, k.shape[1])
        for pages, made in zip((k_pages, v_pages), rows, strict=True)
    )
    return keys, values


def paged_rope_append(
    q: Array, k: Array, v: Array, positions: Array, tables: Array, cos: Array, sin: Array, k_cache: Array,
    v_cache: Array,
) -> tuple[F64, Array, Array]:  # fmt: skip
    """The turned queries, and the pages after the append; the arguments stay as they are."""
    at = places(positions, q.shape[1])
    c, s = cos[at][:, :, None], sin[at][:, :, None]  # (B, T, 1, D / 2)
    keys, values = paged_append(turn(k, c, s), v, positions, tables, k_cache, v_cache)
    return turn(q, c[:, :, None], s[:, :, None]), keys, values


def paged_norm_rope_append(
    q: Array, k: Array, v: Array, positions: Array, tables: Array, cos: Array, sin: Array, q_weight: Array,
    k_weight: Array, k_cache: Array, v_cache: Array, eps: float,
) -> tuple[F64, Array, Array]:  # fmt: skip
    """`paged_rope_append` of heads that are normed first."""
    heads = rmsnorm(q, q_weight, eps), rmsnorm(k, k_weight, eps)
    return paged_rope_append(*heads, v, positions, tables, cos, sin, k_cache, v_cache)


def paged_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, tables: Array, scale: float
) -> F64:  # (B, T, G, Q, D)
    keys, values = rows_of(k_cache, tables), rows_of(v_cache, tables)
    out = np.zeros(q.shape)
    for b, start in enumerate(positions):
        seen = slice(0, int(start) + q.shape[1])
        out[b] = grouped_attention(q[b : b + 1], keys[b : b + 1, seen], values[b : b + 1, seen], scale)[0]
    return out


def paged_decode_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, tables: Array, partial: Array, scale: float
) -> tuple[F64, F64]:
    """`partial` and `stats` for as many spans as `partial` has: see ops.toml."""
    keys, values = rows_of(k_cache, tables), rows_of(v_cache, tables)
    return grouped_decode_attention(q[:, 0], keys, values, positions, partial, scale)


def all_reduce(parts: Array, rank: int) -> F64:
    """What each rank gets; so of all collectives here, less flags and state."""
    del rank
    return f64(parts).sum(axis=0)  # (N,)


def all_reduce_two_shot(parts: Array, rank: int) -> F64:
    return all_reduce(parts, rank)


def all_reduce_layernorm(
    parts: Array, bias: Array, norm_weight: Array, norm_bias: Array, x: Array, rank: int, eps: float
) -> tuple[F64, F64]:
    del rank
    return residual_layernorm(parts, bias, norm_weight, norm_bias, x, eps)


def all_reduce_rmsnorm(parts: Array, norm_weight: Array, x: Array, rank: int, eps: float) -> tuple[F64, F64]:
    del rank
    total = f64(x) + f64(parts).sum(axis=0)
    return total, rmsnorm(total, norm_weight, eps)


def all_gather(parts: Array, rank: int) -> F64:
    del rank
    return f64(parts)  # (R, N)


def reduce_scatter(parts: Array, rank: int) -> F64:
    return f64(parts)[:, rank].sum(axis=0)  # (N,)


def broadcast(parts: Array, rank: int, root: int) -> F64:
    del rank
    return f64(parts)[root]


def next_token_of_ranks(
    values: Array, indices: Array, positions: Array, rank: int, width: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The token of each row (M,) over all ranks, and the positions counted up."""
    del rank
    whole = indices + width * np.arange(len(indices))[:, None, None]  # (R, M, Z)
    rows = [np.concatenate(list(each), axis=1) for each in (values, whole)]  # (M, R Z)
    return next_token(rows[0], rows[1], positions)


def matmul_reduce_scatter(x: Array, weight: Array, rank: int) -> F64:
    """x (ranks, R, M, K) and weight (ranks, K, N): those of each rank."""
    return (f64(x[:, rank]) @ f64(weight)).sum(axis=0)  # (M, N)


def all_gather_matmul(x: Array, weight: Array, rank: int) -> F64:
    """x (ranks, M, K) and weight (ranks, K, N): those of each rank."""
    return f64(x) @ f64(weight[rank])  # (R, M, N)
