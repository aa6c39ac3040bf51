"""Llama's family: its weights as its kernels take them, and its layers. To compare with a paper (Touvron et al.,
arXiv:2302.13971; grouped queries: Ainslie et al., arXiv:2305.13245) read `_chunk`: each line is one op, with the shape
of its result.

B sequences of T tokens, N = B * T rows, C = n_embd, G heads of keys and values, each shared by Q heads of queries, D
numbers a head, F = ffn, V tokens in the vocabulary, P positions in a cache, W = n_ctx.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.runtime import DeviceBuffer

from ..config import GPTConfig
from ..parameters.fold import fold_gains
from ..parameters.threads import in_threads
from ..parameters.weights import Weights
from ..passes.kv_cache import Cached, CachedF8
from ..passes.layers import AttendHere, Layers, PagedRows, Spans
from ..passes.workspace import Workspace
from ..rope import table

Array = NDArray[Any]
PARTS = "qkv"  # one product makes all three
EMBEDDING, HEAD = "embed_tokens.weight", "lm_head.weight"
NO_BIAS = "no_bias"  # (C,) zeros
NO_QKV_BIAS = "no_bias.qkv"


def device_weights(
    config: GPTConfig, weights: Weights, dtype: str, vocabulary: int, *, folded: bool
) -> Mapping[str, Array]:
    """The weights as they lie on the device, in the storage of `dtype`: linear ones (in, out), those of queries, keys
    and values joined; the vocabulary padded with zeros; and the cosines and sines (W, D/2) of all positions, in f32.

    `folded`: the products are those of GPT-2, which have biases: zeros, read while the launch before still runs."""
    stored = (fold_gains(config, weights) if folded else weights).astype(dtype)
    named = dict(laid_out(config, stored, vocabulary_rows(vocabulary)))
    made = dict(zip(named, in_threads(lambda make: make(), named.values()), strict=True))
    return {**made, **(no_biases(config, stored) if folded else {})}


def vocabulary_rows(vocabulary: int) -> Mapping[str, int]:
    """How many rows the embedding and the output weights get."""
    return dict.fromkeys((EMBEDDING, HEAD), vocabulary)


def laid_out(
    config: GPTConfig, stored: Mapping[str, Array], padded: Mapping[str, int]
) -> Iterator[tuple[str, Callable[[], Array]]]:
    """Yields the name of each weight on the device, and a function that makes it. `stored`: the weights in the storage
    of the model's dtype. `padded`: how many rows the embedding and the output weights get."""
    for name, parts in joins(config):
        yield name, partial(_joined, stored, *parts)
    for name in stored:
        if name in padded:
            yield name, partial(_padded, stored, name, padded[name])
        elif name.endswith("norm.weight"):
            yield name, partial(stored.__getitem__, name)
    cos, sin = table(config, np.arange(config.n_ctx))
    yield "cos", lambda: cos.astype(np.float32)
    yield "sin", lambda: sin.astype(np.float32)


def no_biases(config: GPTConfig, stored: Weights) -> dict[str, Array]:
    dtype = stored[EMBEDDING].dtype
    columns = (config.n_head + 2 * config.kv_heads) * config.head_size
    return {NO_BIAS: np.zeros(config.n_embd, dtype), NO_QKV_BIAS: np.zeros(columns, dtype)}


def joins(config: GPTConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The name of each linear weight on the device, and the weights that it is made of."""
    for layer in range(config.n_layer):
        at, mlp = f"layers.{layer}.self_attn", f"layers.{layer}.mlp"
        yield f"{at}.qkv", tuple(f"{at}.{part}_proj" for part in PARTS)
        for name in (f"{at}.o_proj", f"{mlp}.gate_proj", f"{mlp}.up_proj", f"{mlp}.down_proj"):
            yield name, (name,)


def _joined(weights: Mapping[str, Array], *names: str) -> Array:
    """Weights (out, in) beside one another, as one (in, out)."""
    return np.concatenate([weights[f"{name}.weight"].T for name in names], axis=1)


def _padded(weights: Mapping[str, Array], name: str, rows: int) -> Array:
    tensor = weights[name]
    return np.pad(tensor, ((0, rows - len(tensor)), (0, 0)))


class Llama(Layers):
    """The layers of a Llama."""

    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        del rows
        (self._folded if work.squares.shape[0] else self._unfolded)(work, attend)
        return False

    def _unfolded(self, work: Workspace, attend: AttendHere) -> None:
        """The layers as the paper has them: every norm is a launch."""
        x, normed, hidden, weights = work.x, work.normed, work.hidden, self._weights
        self.launch("token_embedding", tokens=work.tokens, wte=weights[EMBEDDING], out=x)  # (N, C)
        for layer in range(self._config.n_layer):
            at, mlp = f"layers.{layer}.self_attn", f"layers.{layer}.mlp"
            self._norm(f"layers.{layer}.input_layernorm", x, normed)  # (N, C)
            self.launch("matmul", x=normed, weight=weights[f"{at}.qkv"], out=work.qkv)  # (N, G (Q + 2) D)
            attend(layer, work)  # attended (N, G Q D)
            self.launch("matmul_residual", x=work.attended, weight=weights[f"{at}.o_proj"], residual=x, out=x)  # (N, C)
            self._norm(f"layers.{layer}.post_attention_layernorm", x, normed)  # (N, C)
            gate, up = weights[f"{mlp}.gate_proj"], weights[f"{mlp}.up_proj"]
            self.launch("swiglu", x=normed, gate=gate, up=up, out=hidden)  # (N, F)
            self.launch("matmul_residual", x=hidden, weight=weights[f"{mlp}.down_proj"], residual=x, out=x)  # (N, C)

    def _folded(self, work: Workspace, attend: AttendHere) -> None:
        """The same, where the norms are part of the products beside them: what adds to x gives its row sums of squares,
        too, and what comes next divides by their root. The gains are in the weights."""
        x, hidden, squares, eps, weights = work.x, work.hidden, work.squares, self._config.eps, self._weights
        self.launch("token_embedding", tokens=work.tokens, wte=weights[EMBEDDING], out=x)  # (N, C)
        for layer in range(self._config.n_layer):
            at, mlp = f"layers.{layer}.self_attn", f"layers.{layer}.mlp"
            qkv = weights[f"{at}.qkv"]
            if layer == 0:
                self._norm(f"layers.{layer}.input_layernorm", x, work.normed)  # (N, C)
                self.launch("matmul", x=work.normed, weight=qkv, out=work.qkv)  # (N, G (Q + 2) D)
            else:
                self.launch(
                    "rms_linear", x=x, squares=squares, weight=qkv, bias=weights[NO_QKV_BIAS], out=work.qkv, eps=eps
                )
            spans = attend(layer, work)  # attended (N, G Q D), unless it is still in spans
            if spans is not None:
                self._merge_and_add_product(work, spans, f"{at}.o_proj")  # x (N, C)
            else:
                self._add_product(work, work.attended, f"{at}.o_proj")  # x (N, C)
            gate, up = weights[f"{mlp}.gate_proj"], weights[f"{mlp}.up_proj"]
            self.launch("rms_swiglu", x=x, squares=squares, gate=gate, up=up, out=hidden, eps=eps)  # (N, F)
            self._add_product(work, hidden, f"{mlp}.down_proj")  # x (N, C)

    def _add_product(self, work: Workspace, read: DeviceBuffer, name: str) -> None:
        x, weights = work.x, self._weights
        self.launch(
            "linear_residual_squares", x=read, weight=weights[name], bias=weights[NO_BIAS], residual=x, out=x,
            squares=work.squares,
        )  # fmt: skip

    def _merge_and_add_product(self, work: Workspace, spans: Spans, name: str) -> None:
        x, weights = work.x, self._weights
        self.launch(
            "merge_linear_residual_squares", partial=spans[0], stats=spans[1], weight=weights[name],
            bias=weights[NO_BIAS], residual=x, out=x, squares=work.squares,
        )  # fmt: skip

    def logits(self, x: DeviceBuffer, normed: DeviceBuffer, out: DeviceBuffer, *, ready: bool) -> None:
        if not ready:
            self._norm("norm", x, normed)  # (M, C)
        weight = self._weights[EMBEDDING if self._config.tied else HEAD]
        self.launch("logits", x=normed, weight=weight, out=out)  # (M, padded V)

    def attend(self, layer: int, work: Workspace, starts: DeviceBuffer, length: int) -> None:
        config = self._config
        keys, values = (
            work.kv.select(0, i).reshape(-1, length, config.kv_heads, config.head_size) for i in range(2)
        )  # (B, T, G, D): a cache of the length of the text
        self.attend_cached(layer, work, Cached(keys, values), starts, length, length)

    def attend_cached(
        self, layer: int, work: Workspace, cached: Cached | CachedF8, starts: DeviceBuffer, length: int, end: int
    ) -> None:
        q = self._turn_and_append(layer, work, cached, starts, length)  # (B, T, G, Q, D)
        k, v = self.seen(work, cached, end)  # (B, S, G, D)
        out = work.attended.reshape(*q.shape)
        self.launch("grouped_attention", q=q, k=k, v=v, out=out, scale=self._scale)

    def attend_one(self, layer: int, work: Workspace, cached: Cached | CachedF8, spans: Spans | None) -> Spans | None:
        if isinstance(cached, CachedF8):
            q = self._turn_and_append(layer, work, cached, work.positions, 1)
            return self.attend_in_f8(q.select(1, 0), work, cached, spans)
        if spans is not None and self._plan.turns_in_attention(spans[0].shape[2], cached[0].shape[1]):
            return self._turn_append_and_attend(work, cached, spans)
        q = self._turn_and_append(layer, work, cached, work.positions, 1).select(1, 0)  # (B, G, Q, D)
        out = work.attended.reshape(*q.shape)
        token: dict[str, DeviceBuffer | float] = {
            "q": q, "k_cache": cached[0], "v_cache": cached[1], "positions": work.positions, "scale": self._scale,
        }  # fmt: skip
        if spans is None:
            self.launch("grouped_decode_attention_unsplit", **token, out=out)
            return None
        partial, stats = (both.unflatten(1, q.shape[1], q.shape[2]) for both in spans)  # (B, G, Q, Z, ...)
        self.launch("grouped_decode_attention", **token, partial=partial, stats=stats)
        return self.merge(work, spans)

    def _turn_append_and_attend(self, work: Workspace, cached: Cached, spans: Spans) -> Spans | None:
        """All of attention to the spans of a cache in one launch, and another one where it merges them."""
        q, k, v = (heads.select(1, 0) for heads in self._heads(work.qkv.unflatten(0, work.qkv.shape[0], 1)))
        partial, stats = (both.unflatten(1, q.shape[1], q.shape[2]) for both in spans)  # (B, G, Q, Z, ...)
        self.launch(
            "rope_decode_attention", q=q, k=k, v=v, positions=work.positions, cos=self._weights["cos"],
            sin=self._weights["sin"], k_cache=cached[0], v_cache=cached[1], partial=partial, stats=stats,
            scale=self._scale,
        )  # fmt: skip
        return self.merge(work, spans)

    def _heads(self, qkv: DeviceBuffer) -> tuple[DeviceBuffer, DeviceBuffer, DeviceBuffer]:
        """Of qkv (B, T, G (Q + 2) D) queries (B, T, G, Q, D), keys and values (B, T, G, D)."""
        heads, groups = self._config.n_head, self._config.kv_heads
        qkv = qkv.unflatten(2, heads + 2 * groups, self._config.head_size)
        q, k, v = qkv.slice(2, 0, heads), qkv.narrow(2, heads, groups), qkv.narrow(2, heads + groups, groups)
        return q.unflatten(2, groups, heads // groups), k, v

    def append_to_pages(self, layer: int, qkv: DeviceBuffer, pages: Cached, rows: PagedRows) -> DeviceBuffer:
        return self._turn(layer, qkv, pages, {"positions": rows.starts, "tables": rows.tables}, "paged_")

    def _turn_and_append(
        self, layer: int, work: Workspace, cached: Cached | CachedF8, positions: DeviceBuffer, length: int
    ) -> DeviceBuffer:
        """Turns queries and keys, and appends keys and values to a cache. Returns the queries (B, T, G, Q, D)."""
        return self._turn(
            layer, work.qkv.unflatten(0, work.qkv.shape[0] // length, length), cached, {"positions": positions}
        )

    def _turn(
        self, layer: int, qkv: DeviceBuffer, cached: Cached | CachedF8, where: Mapping[str, DeviceBuffer],
        prefix: str = "",
    ) -> DeviceBuffer:  # fmt: skip
        """The same of qkv (B, T, G (Q + 2) D), to a cache in rows or pages. `where`: what says where they go."""
        q, k, v = self._heads(qkv)
        turn: dict[str, DeviceBuffer | float] = {
            "q": q, "k": k, "v": v, **where, "cos": self._weights["cos"], "sin": self._weights["sin"],
            "turned": q, "k_cache": cached[0], "v_cache": cached[1],
        }  # fmt: skip
        narrow = isinstance(cached, CachedF8)
        turn |= cached.named() if narrow else {}
        op = f"{prefix}{{}}rope_append{'_f8' if narrow else ''}"
        if self._config.qk_norm:
            q_weight, k_weight = (self._weights[f"layers.{layer}.self_attn.{part}_norm.weight"] for part in "qk")
            norms: dict[str, DeviceBuffer | float] = {
                "q_weight": q_weight, "k_weight": k_weight, "eps": self._config.eps,
            }  # fmt: skip
            self.launch(op.format("norm_"), **turn, **norms)
        else:
            self.launch(op.format(""), **turn)
        return q

    def _norm(self, name: str, x: DeviceBuffer, out: DeviceBuffer) -> None:
        self.launch("rmsnorm", x=x, weight=self._weights[f"{name}.weight"], out=out, eps=self._config.eps)
