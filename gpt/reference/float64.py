"""Every op and the whole model in numpy float64: the oracle. Same names and arguments as `toolchain/ops.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import GPTConfig

Array = NDArray[Any]
F64 = NDArray[np.float64]


def f64(x: Array) -> F64:
    return np.asarray(x, np.float64)


def embedding(tokens: Array, positions: Array, wte: Array, wpe: Array) -> F64:
    return f64(wte[tokens]) + f64(wpe[positions])  # (N, C)


def layernorm(x: Array, weight: Array, bias: Array, eps: float) -> F64:
    x = f64(x)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * f64(weight) + f64(bias)


def linear(x: Array, weight: Array, bias: Array) -> F64:
    return f64(x) @ f64(weight) + f64(bias)  # (M, K) @ (K, N) + (N,)


def linear_gelu(x: Array, weight: Array, bias: Array) -> F64:
    return gelu(linear(x, weight, bias))


def linear_residual(x: Array, weight: Array, bias: Array, residual: Array) -> F64:
    return f64(residual) + linear(x, weight, bias)


def logits(x: Array, weight: Array) -> F64:
    return f64(x) @ f64(weight).T  # (M, C) @ (C, V)


def attention(q: Array, k: Array, v: Array, scale: float) -> F64:
    """Causal, of the last T of S positions."""
    (_, t, _, _), s = q.shape, k.shape[1]
    scores = scale * np.einsum("bthd,bshd->bhts", f64(q), f64(k), optimize=True)  # (B, H, T, S)
    visible = np.arange(s) <= np.arange(t)[:, None] + (s - t)
    return np.einsum("bhts,bshd->bthd", softmax(np.where(visible, scores, -np.inf)), f64(v), optimize=True)


def gelu(x: Array) -> F64:
    x = f64(x)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


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


def decode_attention(q: Array, k_cache: Array, v_cache: Array, lengths: Array, scale: float) -> F64:
    rows = [
        attention(q[b : b + 1, None], k_cache[b : b + 1, :length], v_cache[b : b + 1, :length], scale)[0, 0]
        for b, length in enumerate(lengths)
    ]
    return np.stack(rows)  # (B, H, D)


def argmax(x: Array) -> NDArray[np.int32]:
    return np.argmax(f64(x), axis=-1).astype(np.int32)


def forward(config: GPTConfig, weights: Mapping[str, Array], tokens: Array) -> F64:
    """Logits (B, T, V) at every position of tokens (B, T)."""
    batch, length = tokens.shape
    c, h, d = config.n_embd, config.n_head, config.head_size
    x = embedding(tokens, np.arange(length), weights["wte.weight"], weights["wpe.weight"])  # (B, T, C)
    for layer in range(config.n_layer):
        w = {name: (weights[f"h.{layer}.{name}.weight"], weights[f"h.{layer}.{name}.bias"]) for name in LAYERS}
        qkv = linear(layernorm(x, *w["ln_1"], config.eps), *w["attn.c_attn"]).reshape(batch, length, 3, h, d)
        y = attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], d**-0.5).reshape(batch, length, c)
        x = linear_residual(y, *w["attn.c_proj"], x)
        hidden = linear_gelu(layernorm(x, *w["ln_2"], config.eps), *w["mlp.c_fc"])  # (B, T, 4C)
        x = linear_residual(hidden, *w["mlp.c_proj"], x)
    x = layernorm(x, weights["ln_f.weight"], weights["ln_f.bias"], config.eps)
    return logits(x, weights["wte.weight"])


LAYERS = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
