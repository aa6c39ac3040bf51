"""Every op as an eager framework computes it in a dtype. A kernel's error is compared with the error of this.

Each framework op computes in f32 and rounds its result to the dtype. Matrix products accumulate in f32; under tf32
their inputs are rounded to tf32 first. `dtype` is an entry's: f32, tf32, f16 or bf16.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from . import decode_step as whole
from . import float64

Array = NDArray[Any]
F32 = NDArray[np.float32]

_STORAGE: Mapping[str, Any] = {
    "f32": np.float32, "tf32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
}  # fmt: skip


def f32(x: Array) -> F32:
    return np.asarray(x, np.float32)


def rounded(x: Array, dtype: str) -> Array:
    """`x` rounded to the type that stores the dtype."""
    if dtype == "f16" and x.dtype == np.float32:
        x = _nearest_f16(x)
    with np.errstate(over="ignore"):
        return np.asarray(x, _STORAGE[dtype])


def _nearest_f16(x: F32) -> F32:
    """`x` rounded to f16, but in f32 and without its largest number. numpy takes 40 times as long for a number that
    becomes a subnormal one of f16 and has to be rounded, such as most weights of a long softmax."""
    power = (x.view(np.uint32) & np.uint32(0x7F800000)).view(np.float32)  # of two, at most |x|
    shift = np.clip(power, np.float32(2**-14), np.float32(2**16))
    shift *= np.float32(1.5 * 2**13)  # between f32's numbers of this size is as much as between f16's of that of x
    near = x + shift
    near -= shift
    return np.copysign(near, x)


def nearest(x: F32, dtype: str) -> F32:
    """`x` rounded to the dtype, in f32."""
    if dtype == "f16":
        near = _nearest_f16(x)
        return near if np.abs(near).max(initial=0) <= np.finfo(np.float16).max else f32(rounded(x, dtype))
    return f32(rounded(x, dtype))


def tf32(x: Array) -> F32:
    """`x` rounded to 10 bits of mantissa, to nearest, ties to even."""
    bits = f32(x).view(np.uint32)
    odd = (bits >> np.uint32(13)) & np.uint32(1)
    near = (bits + np.uint32(0xFFF) + odd) & np.uint32(0xFFFFE000)
    finite = np.isfinite(x)
    return (near if finite.all() else np.where(finite, near, bits)).view(np.float32)


def _product(a: Array, b: Array, dtype: str) -> F32:
    """a @ b in f32."""
    return tf32(a) @ tf32(b) if dtype == "tf32" else f32(a) @ f32(b)


FEW_ROWS = 64  # with so many, BLAS keeps one sum for each element of a product, as a kernel does


def scores_in_order(q: Array, k: Array, dtype: str) -> F32:
    """q (T, D) @ k (S, D).T in f32, added up in order with one rounding each, as a kernel in f32 does.

    For few rows numpy takes other code, which adds up several lanes beside one another: that is more accurate than a
    kernel with one sum, and depends on the machine. The softmax makes an error of a score a relative error of a weight,
    so the bound of attention follows from the order."""
    if dtype == "tf32" or len(q) >= FEW_ROWS:
        return _product(q, k.T, dtype)
    queries, keys = np.asarray(q.T, np.float64), np.asarray(k.T, np.float64, order="C")  # (D, T), (D, S)
    total, products = np.zeros((len(q), len(k)), np.float32), np.empty((len(q), len(k)))
    for d in range(len(queries)):
        np.multiply(queries[d][:, None], keys[d], out=products)  # exact in f64
        np.add(total, products, out=products)
        total[...] = products
    return total


def _scores_of_heads(q: Array, k: Array, dtype: str) -> F32:
    """The scores (G, Q, S) of q (G, Q, D) and k (S, G, D)."""
    return np.stack([scores_in_order(q[g], k[:, g], dtype) for g in range(len(q))])


def embedding(tokens: Array, positions: Array, wte: Array, wpe: Array, *, dtype: str) -> Array:
    return rounded(f32(wte[tokens]) + f32(wpe[positions]), dtype)


def embedding_centred(
    tokens: Array, positions: Array, wte: Array, wpe: Array, squares: Array, *, dtype: str
) -> tuple[Array, F32]:
    whole = f32(wte[tokens]) + f32(wpe[positions])
    centred = whole - whole.mean(axis=-1, keepdims=True)
    sums = np.zeros(squares.shape, np.float32)
    sums[0, : len(whole)] = (centred * centred).sum(axis=-1)
    return rounded(centred, dtype), sums


def layernorm(x: Array, weight: Array, bias: Array, eps: float, *, dtype: str) -> Array:
    x = f32(x)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return rounded(centred / np.sqrt(variance + np.float32(eps)) * f32(weight) + f32(bias), dtype)


def linear(x: Array, weight: Array, bias: Array, *, dtype: str) -> Array:
    out = _product(x, weight, dtype)
    out += f32(bias)
    return rounded(out, dtype)


def linear_gelu(x: Array, weight: Array, bias: Array, *, dtype: str) -> Array:
    return gelu(linear(x, weight, bias, dtype=dtype), dtype=dtype)


def linear_residual(x: Array, weight: Array, bias: Array, residual: Array, *, dtype: str) -> Array:
    return rounded(f32(residual) + f32(linear(x, weight, bias, dtype=dtype)), dtype)


def linear_residual_squares(
    x: Array, weight: Array, bias: Array, residual: Array, squares: Array, *, dtype: str
) -> tuple[Array, F32]:
    if dtype == "tf32":
        x, weight = tf32(x), tf32(weight)
    whole = float64.linear_residual_squares(f32(x), f32(weight), f32(bias), f32(residual), squares)
    return rounded(whole[0], dtype), f32(whole[1])


def rms_linear(x: Array, squares: Array, weight: Array, bias: Array, eps: float, *, dtype: str) -> Array:
    out = _product(x, weight, dtype)
    out /= _root_mean_square(squares, x, eps)
    out += f32(bias)
    return rounded(out, dtype)


def _root_mean_square(squares: Array, x: Array, eps: float) -> F32:
    """Of each row of x (M, K): (M, 1)."""
    mean_square = f32(squares).sum(axis=0)[: len(x), None] / np.float32(x.shape[1])
    return np.sqrt(mean_square + np.float32(eps))


def rms_linear_gelu(x: Array, squares: Array, weight: Array, bias: Array, eps: float, *, dtype: str) -> Array:
    return gelu(rms_linear(x, squares, weight, bias, eps, dtype=dtype), dtype=dtype)


def linear_split_k(x: Array, weight: Array, partial: Array, *, dtype: str) -> F32:
    if dtype == "tf32":
        x, weight = tf32(x), tf32(weight)
    return f32(float64.linear_split_k(f32(x), f32(weight), partial))


def residual_layernorm(
    partial: Array, bias: Array, norm_weight: Array, norm_bias: Array, x: Array, eps: float, *, dtype: str
) -> tuple[Array, Array]:
    total = rounded(f32(x) + f32(partial).sum(axis=0) + f32(bias), dtype)
    return total, layernorm(total, norm_weight, norm_bias, eps, dtype=dtype)


def quantize_rows(x: Array, *, dtype: str) -> tuple[Array, F32]:
    del dtype
    rows, scales = float64.quantize_rows(x)
    return rows.astype(ml_dtypes.float8_e4m3fn), f32(scales)


def quantize_rows_i8(x: Array, *, dtype: str) -> tuple[Array, F32]:
    del dtype
    rows, scales = float64.quantize_rows_i8(x)
    return rows.astype(np.int8), f32(scales)


def linear_f8(x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, *, dtype: str) -> Array:
    product = f32(x) @ f32(weight).T
    return rounded(product * f32(x_scales)[:, None] * f32(weight_scales) + f32(bias), dtype)


def linear_gelu_f8(x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, *, dtype: str) -> Array:
    return gelu(linear_f8(x, x_scales, weight, weight_scales, bias, dtype=dtype), dtype=dtype)


def layernorm_f8(x: Array, weight: Array, bias: Array, eps: float, *, dtype: str) -> tuple[Array, F32]:
    return quantize_rows(layernorm(x, weight, bias, eps, dtype="f32"), dtype=dtype)


def layernorm_i8(x: Array, weight: Array, bias: Array, eps: float, *, dtype: str) -> tuple[Array, F32]:
    return quantize_rows_i8(layernorm(x, weight, bias, eps, dtype="f32"), dtype=dtype)


def linear_gelu_f8_to_f8(
    x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, factors: Array, *, dtype: str
) -> Array:
    made = linear_gelu_f8(x, x_scales, weight, weight_scales, bias, dtype=dtype)
    return np.clip(f32(made) * f32(factors), -float64.LARGEST, float64.LARGEST).astype(ml_dtypes.float8_e4m3fn)


def linear_residual_f8(
    x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, residual: Array, *, dtype: str
) -> Array:
    return rounded(f32(residual) + f32(linear_f8(x, x_scales, weight, weight_scales, bias, dtype=dtype)), dtype)


# Integers have the same formulas as 8-bit floats.
linear_i8, linear_gelu_i8, linear_residual_i8 = linear_f8, linear_gelu_f8, linear_residual_f8


def linear_weight_i8(x: Array, weight: Array, weight_scales: Array, bias: Array, *, dtype: str) -> Array:
    return rounded(f32(x) @ f32(weight).T * f32(weight_scales) + f32(bias), dtype)


def linear_gelu_weight_i8(x: Array, weight: Array, weight_scales: Array, bias: Array, *, dtype: str) -> Array:
    return gelu(linear_weight_i8(x, weight, weight_scales, bias, dtype=dtype), dtype=dtype)


def linear_residual_weight_i8(
    x: Array, weight: Array, weight_scales: Array, bias: Array, residual: Array, *, dtype: str
) -> Array:
    return rounded(f32(residual) + f32(linear_weight_i8(x, weight, weight_scales, bias, dtype=dtype)), dtype)


def swiglu_weight_i8(x: Array, gate: Array, gate_scales: Array, up: Array, up_scales: Array, *, dtype: str) -> Array:
    return swiglu(x, f32(gate).T * f32(gate_scales), f32(up).T * f32(up_scales), dtype=dtype)


def linear_split_k_weight_i8(x: Array, weight: Array, weight_scales: Array, partial: Array, *, dtype: str) -> F32:
    return linear_split_k(x, f32(weight).T * f32(weight_scales), partial, dtype=dtype)


def layernorm_linear_weight_i8(
    x: Array, norm_weight: Array, norm_bias: Array, weight: Array, weight_scales: Array, bias: Array, eps: float, *,
    dtype: str,
) -> Array:  # fmt: skip
    normed = layernorm(x, norm_weight, norm_bias, eps, dtype=dtype)
    return linear_weight_i8(normed, weight, weight_scales, bias, dtype=dtype)


def layernorm_linear_gelu_weight_i8(
    x: Array, norm_weight: Array, norm_bias: Array, weight: Array, weight_scales: Array, bias: Array, eps: float, *,
    dtype: str,
) -> Array:  # fmt: skip
    made = layernorm_linear_weight_i8(x, norm_weight, norm_bias, weight, weight_scales, bias, eps, dtype=dtype)
    return gelu(made, dtype=dtype)


linear_split_k_weight_f8, layernorm_linear_weight_f8 = linear_split_k_weight_i8, layernorm_linear_weight_i8
layernorm_linear_gelu_weight_f8 = layernorm_linear_gelu_weight_i8
linear_weight_f8, linear_gelu_weight_f8 = linear_weight_i8, linear_gelu_weight_i8
linear_residual_weight_f8, swiglu_weight_f8 = linear_residual_weight_i8, swiglu_weight_i8


def logits(x: Array, weight: Array, *, dtype: str) -> Array:
    return rounded(_product(x, weight.T, dtype), dtype)


def attention(q: Array, k: Array, v: Array, scale: float, *, dtype: str) -> Array:
    """Sums run over all S keys, also where a block of queries sees fewer: their order is that of whole matrices."""
    (batch, t, heads, _), s = q.shape, k.shape[1]
    out = np.empty(q.shape, _STORAGE[dtype])
    for b, h in np.ndindex(batch, heads):
        whole = np.zeros((min(t, float64.BLOCK), s), np.float32)  # behind what was seen so far it stays 0
        for rows, stop in float64.blocks(t, s):
            weights = whole[: rows.stop - rows.start]
            scores = nearest(scores_in_order(q[b, rows, h], k[b, :stop, h], dtype), dtype)
            scores = float64.hide(nearest(np.float32(scale) * scores, dtype))
            np.exp(scores - scores.max(axis=-1, keepdims=True), out=weights[:, :stop])
            weights[:, :stop] = nearest(weights[:, :stop] / weights.sum(axis=-1, keepdims=True), dtype)
            out[b, rows, h] = rounded(_product(weights, v[b, :, h], dtype), dtype)
    return out


def attention_to_f8(q: Array, k: Array, v: Array, scale: float, *, dtype: str) -> Array:
    made = f32(attention(q, k, v, scale, dtype=dtype))
    return np.clip(made, -float64.LARGEST, float64.LARGEST).astype(ml_dtypes.float8_e4m3fn)


def gelu(x: Array, *, dtype: str) -> Array:
    return float64.in_parts(lambda part: _gelu(f32(part), dtype), x)


def _gelu(x: F32, dtype: str) -> Array:
    inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
    return rounded(np.float32(0.5) * x * (np.float32(1) + np.tanh(inner)), dtype)


def softmax(x: Array, *, dtype: str) -> Array:
    x = f32(x)
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return rounded(weights / weights.sum(axis=-1, keepdims=True), dtype)


def kv_append(
    k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, *, dtype: str
) -> tuple[Array, Array]:
    """The caches after the append; the arguments stay as they are."""
    k_out, v_out = (np.array(cache, _STORAGE[dtype]) for cache in (k_cache, v_cache))
    for batch, start in enumerate(positions):
        k_out[batch, start : start + k.shape[1]] = k[batch]
        v_out[batch, start : start + v.shape[1]] = v[batch]
    return k_out, v_out


def decode_attention(
    q: Array,
    k: Array,
    v: Array,
    positions: Array,
    k_cache: Array,
    v_cache: Array,
    partial: Array,
    scale: float,
    *,
    dtype: str,
) -> tuple[Array, Array, F32, F32]:
    """As `attention`: scores in f32, probabilities rounded to the dtype before the second product."""
    keys, values = kv_append(k[:, None], v[:, None], positions, k_cache, v_cache, dtype=dtype)
    sums, stats = np.zeros(partial.shape, np.float32), np.zeros((*partial.shape[:3], 2), np.float32)
    stats[..., 0] = np.float32(float64.LEAST)
    factor = np.float32(scale) * np.float32(np.log2(np.e))
    for b, last in enumerate(positions):
        for z, (start, stop) in enumerate(float64.spans(keys.shape[1], partial.shape[2], int(last))):
            scores = factor * _scores_of_heads(q[b][:, None], keys[b, start:stop], dtype)[:, 0]  # (H, S)
            top = scores.max(axis=-1, keepdims=True)
            weights = np.exp2(scores - top)
            stats[b, :, z, 0], stats[b, :, z, 1] = top[:, 0], weights.sum(axis=-1)
            sums[b, :, z] = np.einsum("hp,phd->hd", f32(rounded(weights, dtype)), f32(values[b, start:stop]))
    return keys, values, sums, stats


def merge_attention(partial: Array, stats: Array, *, dtype: str) -> Array:
    tops = f32(stats[..., 0])  # (B, H, Z)
    weights = np.exp2(tops - tops.max(axis=-1, keepdims=True))
    total = (f32(stats[..., 1]) * weights).sum(axis=-1)
    return rounded((f32(partial) * weights[..., None]).sum(axis=2) / total[..., None], dtype)  # (B, H, D)


def merge_linear_residual_squares(
    partial: Array, stats: Array, weight: Array, bias: Array, residual: Array, squares: Array, *, dtype: str
) -> tuple[Array, F32]:
    rows = merge_attention(partial, stats, dtype=dtype).reshape(len(partial), -1)  # (B, H D)
    return linear_residual_squares(rows, weight, bias, residual, squares, dtype=dtype)


def decode_attention_unsplit(
    q: Array, k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, scale: float, *, dtype: str
) -> tuple[Array, Array, Array]:
    """As `decode_attention` with one span, then divided by the sum of the weights in f32."""
    keys, values = kv_append(k[:, None], v[:, None], positions, k_cache, v_cache, dtype=dtype)
    out = np.zeros(q.shape, _STORAGE[dtype])
    factor = np.float32(scale) * np.float32(np.log2(np.e))
    for b, last in enumerate(positions):
        seen = slice(0, int(last) + 1)
        scores = factor * _scores_of_heads(q[b][:, None], keys[b, seen], dtype)[:, 0]  # (H, S)
        weights = np.exp2(scores - scores.max(axis=-1, keepdims=True))
        sums = np.einsum("hp,phd->hd", f32(rounded(weights, dtype)), f32(values[b, seen]))
        out[b] = rounded(sums / weights.sum(axis=-1, keepdims=True), dtype)
    return keys, values, out


def argmax_parts(x: Array, values: Array, *, dtype: str) -> tuple[F32, NDArray[np.int32]]:
    largest, indices = float64.argmax_parts(rounded(x, dtype), values)
    return f32(largest), indices


@functools.wraps(whole.decode_step)
def decode_step(*, dtype: str, **arrays: Any) -> tuple[Array, ...]:
    made = whole.decode_step(**arrays, wide=np.float32, keep=lambda x: f32(rounded(x, dtype)))
    return tuple(rounded(one, dtype) for one in made)


def next_token(
    values: Array, indices: Array, positions: Array, *, dtype: str
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    del dtype
    return float64.next_token(values, indices, positions)


def token_embedding(tokens: Array, wte: Array, *, dtype: str) -> Array:
    return rounded(wte[tokens], dtype)


def rmsnorm(x: Array, weight: Array, eps: float, *, dtype: str) -> Array:
    x = f32(x)
    mean_square = (x * x).mean(axis=-1, keepdims=True)
    return rounded(x / np.sqrt(mean_square + np.float32(eps)) * f32(weight), dtype)


def matmul(x: Array, weight: Array, *, dtype: str) -> Array:
    return rounded(_product(x, weight, dtype), dtype)


def matmul_residual(x: Array, weight: Array, residual: Array, *, dtype: str) -> Array:
    return rounded(f32(residual) + f32(matmul(x, weight, dtype=dtype)), dtype)


def swiglu(x: Array, gate: Array, up: Array, *, dtype: str) -> Array:
    """As three ops of a framework: two products, and silu(gate) * up of what is rounded."""
    gated = f32(matmul(x, gate, dtype=dtype))
    half = np.float32(0.5) * gated
    silu = rounded(half + half * np.tanh(half), dtype)
    return rounded(f32(silu) * f32(matmul(x, up, dtype=dtype)), dtype)


def rms_swiglu(x: Array, squares: Array, gate: Array, up: Array, eps: float, *, dtype: str) -> Array:
    """As swiglu; of the products, which a framework makes of normed rows, the norm is rounded with them."""
    root = _root_mean_square(squares, x, eps)
    gated = rounded(_product(x, gate, dtype) / root, dtype)
    half = np.float32(0.5) * f32(gated)
    silu = rounded(half + half * np.tanh(half), dtype)
    return rounded(f32(silu) * f32(rounded(_product(x, up, dtype) / root, dtype)), dtype)


def turn(x: Array, cos: Array, sin: Array) -> F32:
    first, second = np.split(f32(x), 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def rope_append(
    q: Array,
    k: Array,
    v: Array,
    positions: Array,
    cos: Array,
    sin: Array,
    k_cache: Array,
    v_cache: Array,
    *,
    dtype: str,
) -> tuple[Array, Array, Array]:
    at = float64.places(positions, q.shape[1])
    c, s = f32(cos[at][:, :, None]), f32(sin[at][:, :, None])  # (B, T, 1, D / 2)
    keys, values = kv_append(rounded(turn(k, c, s), dtype), v, positions, k_cache, v_cache, dtype=dtype)
    return rounded(turn(q, c[:, :, None], s[:, :, None]), dtype), keys, values


def norm_rope_append(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, q_weight: Array, k_weight: Array,
    k_cache: Array, v_cache: Array, eps: float, *, dtype: str,
) -> tuple[Array, Array, Array]:  # fmt: skip
    heads = rmsnorm(q, q_weight, eps, dtype=dtype), rmsnorm(k, k_weight, eps, dtype=dtype)
    return rope_append(*heads, v, positions, cos, sin, k_cache, v_cache, dtype=dtype)


def grouped_attention(q: Array, k: Array, v: Array, scale: float, *, dtype: str) -> Array:
    heads = [attention(q[:, :, :, i], k, v, scale, dtype=dtype) for i in range(q.shape[3])]
    return np.stack(heads, axis=3)  # (B, T, G, Q, D)


def grouped_decode_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, partial: Array, scale: float, *, dtype: str
) -> tuple[F32, F32]:
    """As `attention`: scores in f32, probabilities rounded to the dtype before the second product."""
    sums, stats = np.zeros(partial.shape, np.float32), np.zeros((*partial.shape[:4], 2), np.float32)
    stats[..., 0] = np.float32(float64.LEAST)
    for b, last in enumerate(positions):
        for z, (start, stop) in enumerate(float64.spans(k_cache.shape[1], partial.shape[3], int(last))):
            keys, values = k_cache[b, start:stop], v_cache[b, start:stop]
            stats[b, :, :, z], sums[b, :, :, z] = _span(q[b], keys, values, scale, dtype)
    return sums, stats


def rope_decode_attention(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, k_cache: Array, v_cache: Array,
    partial: Array, scale: float, *, dtype: str,
) -> tuple[Array, Array, F32, F32]:  # fmt: skip
    token = q[:, None], k[:, None], v[:, None]  # T = 1
    turned, keys, values = rope_append(*token, positions, cos, sin, k_cache, v_cache, dtype=dtype)
    sums, stats = grouped_decode_attention(turned[:, 0], keys, values, positions, partial, scale, dtype=dtype)
    return keys, values, sums, stats


def _span(q: Array, keys: Array, values: Array, scale: float, dtype: str) -> tuple[F32, F32]:
    """Maximum and sum of the weights (G, Q, 2), and the weighted sum of the values (G, Q, D)."""
    factor = np.float32(scale) * np.float32(np.log2(np.e))
    scores = factor * _scores_of_heads(q, keys, dtype)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp2(scores - top)
    sums = np.einsum("gqp,pgd->gqd", f32(rounded(weights, dtype)), f32(values))
    return np.concatenate([top, weights.sum(axis=-1, keepdims=True)], axis=-1), sums


def grouped_decode_attention_unsplit(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, scale: float, *, dtype: str
) -> Array:
    """As `grouped_decode_attention` with one span, then divided by the sum of the weights in f32."""
    out = np.zeros(q.shape, _STORAGE[dtype])
    for b, last in enumerate(positions):
        seen = slice(0, int(last) + 1)
        stats, sums = _span(q[b], k_cache[b, seen], v_cache[b, seen], scale, dtype)
        out[b] = rounded(sums / stats[..., 1:], dtype)
    return out


def kv_append_f8(
    k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, *,
    dtype: str,
) -> tuple[Array, Array, F32, F32]:  # fmt: skip
    del dtype
    keys, values, *scales = float64.kv_append_f8(k, v, positions, k_cache, v_cache, k_scales, v_scales)
    narrow = ml_dtypes.float8_e4m3fn
    return keys.astype(narrow), values.astype(narrow), f32(scales[0]), f32(scales[1])


def rope_append_f8(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, k_cache: Array, v_cache: Array,
    k_scales: Array, v_scales: Array, *, dtype: str,
) -> tuple[Array, Array, Array, F32, F32]:  # fmt: skip
    empty = np.zeros(k_cache.shape, np.float32)
    turned, whole, _ = rope_append(q, k, v, positions, cos, sin, empty, empty, dtype=dtype)
    at = positions[:, None] + np.arange(k.shape[1])
    turned_k = whole[np.arange(len(k))[:, None], at]
    return turned, *kv_append_f8(turned_k, v, positions, k_cache, v_cache, k_scales, v_scales, dtype=dtype)


def norm_rope_append_f8(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, q_weight: Array, k_weight: Array,
    k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, eps: float, *, dtype: str,
) -> tuple[Array, Array, Array, F32, F32]:  # fmt: skip
    heads = rmsnorm(q, q_weight, eps, dtype=dtype), rmsnorm(k, k_weight, eps, dtype=dtype)
    return rope_append_f8(*heads, v, positions, cos, sin, k_cache, v_cache, k_scales, v_scales, dtype=dtype)


def kv_from_f8(
    k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, *, dtype: str
) -> tuple[Array, Array]:  # fmt: skip
    keys, values = float64.kv_from_f8(k_cache, v_cache, k_scales, v_scales)
    return rounded(f32(keys), dtype), rounded(f32(values), dtype)


def grouped_decode_attention_f8(
    q: Array, k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, positions: Array, partial: Array,
    scale: float, *, dtype: str,
) -> tuple[F32, F32]:  # fmt: skip
    keys, values = kv_from_f8(k_cache, v_cache, k_scales, v_scales, dtype=dtype)
    return grouped_decode_attention(q, keys, values, positions, partial, scale, dtype=dtype)


def paged_append(
    k: Array, v: Array, positions: Array, tables: Array, k_cache: Array, v_cache: Array, *, dtype: str
) -> tuple[Array, Array]:
    """The pages after the append; the arguments stay as they are."""
    caches = float64.rows_of(k_cache, tables), float64.rows_of(v_cache, tables)
    rows = kv_append(k, v, positions, *caches, dtype=dtype)
    keys, values = (
        float64.into_pages(pages, tables, made, positions, k.shape[1])
        for pages, made in zip((k_cache, v_cache), rows, strict=True)
    )
    return keys, values


def paged_rope_append(
    q: Array, k: Array, v: Array, positions: Array, tables: Array, cos: Array, sin: Array, k_cache: Array,
    v_cache: Array, *, dtype: str,
) -> tuple[Array, Array, Array]:  # fmt: skip
    at = float64.places(positions, q.shape[1])
    c, s = f32(cos[at][:, :, None]), f32(sin[at][:, :, None])  # (B, T, 1, D / 2)
    keys, values = paged_append(rounded(turn(k, c, s), dtype), v, positions, tables, k_cache, v_cache, dtype=dtype)
    return rounded(turn(q, c[:, :, None], s[:, :, None]), dtype), keys, values


def paged_norm_rope_append(
    q: Array, k: Array, v: Array, positions: Array, tables: Array, cos: Array, sin: Array, q_weight: Array,
    k_weight: Array, k_cache: Array, v_cache: Array, eps: float, *, dtype: str,
) -> tuple[Array, Array, Array]:  # fmt: skip
    heads = rmsnorm(q, q_weight, eps, dtype=dtype), rmsnorm(k, k_weight, eps, dtype=dtype)
    return paged_rope_append(*heads, v, positions, tables, cos, sin, k_cache, v_cache, dtype=dtype)


def paged_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, tables: Array, scale: float, *, dtype: str
) -> Array:
    keys, values = float64.rows_of(k_cache, tables), float64.rows_of(v_cache, tables)
    out = np.zeros(q.shape, _STORAGE[dtype])
    for b, start in enumerate(positions):
        seen = slice(0, int(start) + q.shape[1])
        heads = q[b : b + 1], keys[b : b + 1, seen], values[b : b + 1, seen]
        out[b] = grouped_attention(*heads, scale, dtype=dtype)[0]
    return out


def paged_decode_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, tables: Array, partial: Array, scale: float, *,
    dtype: str,
) -> tuple[F32, F32]:  # fmt: skip
    keys, values = float64.rows_of(k_cache, tables), float64.rows_of(v_cache, tables)
    return grouped_decode_attention(q[:, 0], keys, values, positions, partial, scale, dtype=dtype)


def _in_order(parts: Array) -> F32:
    """The sum over the first dimension in f32, one part after the other."""
    total = np.zeros(parts.shape[1:], np.float32)
    for part in parts:
        total = total + f32(part)
    return total


def all_reduce(parts: Array, rank: int, *, dtype: str) -> Array:
    del rank
    return rounded(_in_order(parts), dtype)


def all_reduce_two_shot(parts: Array, rank: int, *, dtype: str) -> Array:
    return all_reduce(parts, rank, dtype=dtype)


def all_reduce_layernorm(
    parts: Array, bias: Array, norm_weight: Array, norm_bias: Array, x: Array, rank: int, eps: float, *, dtype: str
) -> tuple[Array, Array]:
    del rank
    return residual_layernorm(f32(parts), bias, norm_weight, norm_bias, x, eps, dtype=dtype)


def all_reduce_rmsnorm(
    parts: Array, norm_weight: Array, x: Array, rank: int, eps: float, *, dtype: str
) -> tuple[Array, Array]:
    del rank
    total = rounded(f32(x) + f32(parts).sum(axis=0), dtype)
    return total, rmsnorm(total, norm_weight, eps, dtype=dtype)


def all_gather(parts: Array, rank: int, *, dtype: str) -> Array:
    del rank
    return rounded(parts, dtype)


def reduce_scatter(parts: Array, rank: int, *, dtype: str) -> Array:
    return rounded(_in_order(parts[:, rank]), dtype)


def broadcast(parts: Array, rank: int, root: int, *, dtype: str) -> Array:
    del rank
    return rounded(parts[root], dtype)


def next_token_of_ranks(
    values: Array, indices: Array, positions: Array, rank: int, width: int, *, dtype: str
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    del dtype
    return float64.next_token_of_ranks(values, indices, positions, rank, width)


def matmul_reduce_scatter(x: Array, weight: Array, rank: int, *, dtype: str) -> Array:
    """As a framework does it: each rank's product rounded, and their sum."""
    parts = [matmul(piece[rank], part, dtype=dtype) for piece, part in zip(x, weight, strict=True)]
    return all_reduce(np.stack(parts), rank, dtype=dtype)


def all_gather_matmul(x: Array, weight: Array, rank: int, *, dtype: str) -> Array:
    return np.stack([matmul(rows, weight[rank], dtype=dtype) for rows in x])
