"""GPT-2: its weights as its kernels take them, and its layers. To compare with the paper read `_unfolded`: each line is
one op, with the shape of its result.

B sequences of T tokens, N = B * T rows, C = n_embd = H heads of D, V tokens in the vocabulary, P positions in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.runtime import DeviceBuffer

from ..config import GPTConfig
from ..parameters.fold import fold
from ..parameters.weights import Weights
from ..passes.kv_cache import Cached, CachedF8
from ..passes.layers import AttendHere, Layers, PagedRows, Spans
from ..passes.workspace import Workspace

Attended = Callable[[int], DeviceBuffer]  # attention's result (N, C) in a layer


def device_weights(
    config: GPTConfig, weights: Weights, dtype: str, vocabulary: int, *, folded: bool
) -> Mapping[str, NDArray[Any]]:
    """The weights as they lie on the device, in the storage of `dtype`; the vocabulary is padded with zeros."""
    stored = dict((fold(weights) if folded else weights).astype(dtype).items())
    stored["wte.weight"] = np.pad(stored["wte.weight"], ((0, vocabulary - config.vocab_size), (0, 0)))  # (padded V, C)
    return stored


class GPT2(Layers):
    """GPT-2's layers."""

    def logits(self, x: DeviceBuffer, normed: DeviceBuffer, out: DeviceBuffer, *, ready: bool) -> None:
        """Apply the final norm (unless `normed` is `ready`) and the tied output weights: (M, C) -> (M, padded V)."""
        if not ready:
            self.launch("layernorm", x=x, **self._named("ln_f"), out=normed, eps=self._config.eps)  # (M, C)
        self.launch("logits", x=normed, weight=self._weights["wte.weight"], out=out)  # (M, padded V)

    def attend(self, layer: int, work: Workspace, starts: DeviceBuffer, length: int) -> None:
        del layer, starts
        q, k, v = self._heads(work, length)
        self.launch("attention", q=q, k=k, v=v, out=self._out(work, length), scale=self._scale)

    def attend_cached(
        self, layer: int, work: Workspace, cached: Cached | CachedF8, starts: DeviceBuffer, length: int, end: int
    ) -> None:
        del layer
        q, k, v = self._heads(work, length)
        self._append(k, v, cached, starts)
        k, v = self.seen(work, cached, end)  # (B, S, H, D)
        self.launch("attention", q=q, k=k, v=v, out=self._out(work, length), scale=self._scale)

    def _append(self, k: DeviceBuffer, v: DeviceBuffer, cached: Cached | CachedF8, starts: DeviceBuffer) -> None:
        """Appends keys and values, (B, T, H, D) each."""
        if isinstance(cached, CachedF8):
            self.launch("kv_append_f8", k=k, v=v, positions=starts, **cached.named())
        else:
            self.launch("kv_append", k=k, v=v, positions=starts, k_cache=cached.keys, v_cache=cached.values)

    def attend_one(self, layer: int, work: Workspace, cached: Cached | CachedF8, spans: Spans | None) -> None:
        del layer
        q, k, v = self._heads(work, 1)  # (B, 1, H, D) each
        if isinstance(cached, CachedF8) and spans is not None:
            self.launch("kv_append_f8", k=k, v=v, positions=work.positions, **cached.named())
            self.attend_in_f8(q.select(1, 0).unflatten(1, self._config.n_head, 1), work, cached, spans)
            return
        q, k, v = (heads.select(1, 0) for heads in (q, k, v))  # (B, H, D) each
        out = self._out(work, 1).select(1, 0)
        if isinstance(cached, CachedF8):
            self.launch(
                "decode_attention_unsplit_f8", q=q, k=k, v=v, positions=work.positions, **cached.named(), out=out,
                scale=self._scale,
            )  # fmt: skip
            return
        keys, values = cached
        token: dict[str, DeviceBuffer | float] = {
            "q": q, "k": k, "v": v, "positions": work.positions, "k_cache": keys, "v_cache": values,
            "scale": self._scale,
        }  # fmt: skip
        if spans is None:
            self.launch("decode_attention_unsplit", **token, out=out)
            return
        partial, stats = spans
        self.launch("decode_attention", **token, partial=partial, stats=stats)
        self.launch("merge_attention", partial=partial, stats=stats, out=out)

    def append_to_pages(self, layer: int, qkv: DeviceBuffer, pages: Cached, rows: PagedRows) -> DeviceBuffer:
        del layer
        heads, size = self._config.n_head, self._config.head_size
        q, k, v = (qkv.unflatten(2, 3, heads, size).select(2, part) for part in range(3))  # (B, T, H, D) each
        keys, values = pages
        self.launch(
            "paged_append", k=k, v=v, positions=rows.starts, tables=rows.tables, k_cache=keys, v_cache=values
        )  # fmt: skip
        return q.unflatten(2, heads, 1)  # a head of keys for each of queries

    def _heads(self, work: Workspace, length: int) -> tuple[DeviceBuffer, DeviceBuffer, DeviceBuffer]:
        """Queries, keys and values, each (B, T, H, D)."""
        qkv = work.qkv.reshape(-1, length, 3, self._config.n_head, self._config.head_size)
        return qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2)

    def _out(self, work: Workspace, length: int) -> DeviceBuffer:
        """Attention's result (B, T, H, D)."""
        return work.attended.reshape(-1, length, self._config.n_head, self._config.head_size)

    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        """On the route that the number of rows takes. All routes compute the same, and differ in where the norms
        are."""

        def attended(layer: int) -> DeviceBuffer:
            attend(layer, work)
            return work.attended  # (N, C)

        tokens: dict[str, DeviceBuffer | float] = {
            "tokens": work.tokens, "positions": work.positions,
            "wte": self._weights["wte.weight"], "wpe": self._weights["wpe.weight"],
        }  # fmt: skip
        if not work.squares.shape[0]:
            self.launch("embedding", **tokens, out=work.x)  # (N, C)
            return (self._split if self._plan.parts(rows) else self._unfolded)(work, attended)
        self.launch("embedding_centred", **tokens, out=work.x, squares=work.squares)  # (N, C)
        return (self._folded if self._plan.folds_all(rows) else self._split_and_folded)(work, attended)

    def _unfolded(self, work: Workspace, attended: Attended) -> bool:
        """The layers as the paper has them: every norm is a launch."""
        x, normed, eps = work.x, work.normed, self._config.eps
        for layer in range(self._config.n_layer):
            w = self._layer_weights(layer)
            self.launch("layernorm", x=x, **w("ln_1"), out=normed, eps=eps)  # (N, C)
            self.launch("linear", x=normed, **w("attn.c_attn"), out=work.qkv)  # (N, 3C)
            y = attended(layer)  # (N, C)
            self.launch("linear_residual", x=y, **w("attn.c_proj"), residual=x, out=x)  # (N, C)
            self.launch("layernorm", x=x, **w("ln_2"), out=normed, eps=eps)  # (N, C)
            self.launch("linear_gelu", x=normed, **w("mlp.c_fc"), out=work.hidden)  # (N, 4C)
            self.launch("linear_residual", x=work.hidden, **w("mlp.c_proj"), residual=x, out=x)  # (N, C)
        return False

    def _split(self, work: Workspace, attended: Attended) -> bool:
        """The layers for few rows: the product of the longest K is computed in parts, and the launch that adds these up
        norms the sum for what comes next."""
        x, normed, eps = work.x, work.normed, self._config.eps
        self.launch("layernorm", x=x, **self._named("h.0.ln_1"), out=normed, eps=eps)  # (N, C)
        for layer in range(self._config.n_layer):
            w = self._layer_weights(layer)
            self.launch("linear", x=normed, **w("attn.c_attn"), out=work.qkv)  # (N, 3C)
            y = attended(layer)  # (N, C)
            self.launch("linear_residual", x=y, **w("attn.c_proj"), residual=x, out=x)  # (N, C)
            self.launch("layernorm", x=x, **w("ln_2"), out=normed, eps=eps)  # (N, C)
            self.launch("linear_gelu", x=normed, **w("mlp.c_fc"), out=work.hidden)  # (N, 4C)
            self._add_in_parts(work, layer)  # x and normed (N, C)
        return True

    def _split_and_folded(self, work: Workspace, attended: Attended) -> bool:
        """The same, where the norm between attention and the MLP is part of the products beside it."""
        x, normed, squares, eps = work.x, work.normed, work.squares, self._config.eps
        self.launch("layernorm", x=x, **self._named("h.0.ln_1"), out=normed, eps=eps)  # (N, C)
        for layer in range(self._config.n_layer):
            w = self._layer_weights(layer)
            self.launch("linear", x=normed, **w("attn.c_attn"), out=work.qkv)  # (N, 3C)
            y = attended(layer)  # (N, C)
            self.launch("linear_residual_squares", x=y, **w("attn.c_proj"), residual=x, out=x, squares=squares)
            self.launch("rms_linear_gelu", x=x, squares=squares, **w("mlp.c_fc"), out=work.hidden, eps=eps)  # (N, 4C)
            self._add_in_parts(work, layer)  # x and normed (N, C)
        return True

    def _folded(self, work: Workspace, attended: Attended) -> bool:
        """The layers for many rows, with folded norms. A product that adds to the residual stream also writes the row
        sums of squares; the next product reads them and divides its rows by the root mean square."""
        x, hidden, squares, eps = work.x, work.hidden, work.squares, self._config.eps
        for layer in range(self._config.n_layer):
            w = self._layer_weights(layer)
            self.launch("rms_linear", x=x, squares=squares, **w("attn.c_attn"), out=work.qkv, eps=eps)  # (N, 3C)
            y = attended(layer)  # (N, C)
            self.launch("linear_residual_squares", x=y, **w("attn.c_proj"), residual=x, out=x, squares=squares)
            self.launch("rms_linear_gelu", x=x, squares=squares, **w("mlp.c_fc"), out=hidden, eps=eps)  # (N, 4C)
            if layer + 1 < self._config.n_layer:
                self.launch("linear_residual_squares", x=hidden, **w("mlp.c_proj"), residual=x, out=x, squares=squares)
            else:  # the final norm is a launch of its own and needs no squares
                self.launch("linear_residual", x=hidden, **w("mlp.c_proj"), residual=x, out=x)  # (N, C)
        return False

    def _add_in_parts(self, work: Workspace, layer: int) -> None:
        """Adds the MLP's result to x, and norms the sum for the next layer, or finally."""
        weight = self._weights[f"h.{layer}.mlp.c_proj.weight"]
        self.launch("linear_split_k", x=work.hidden, weight=weight, partial=work.partial)  # (Z, N, C)
        self._norm_of_sum(work, layer)

    def _norm_of_sum(self, work: Workspace, layer: int) -> None:
        """Adds the parts of the MLP's result to x, and norms the sum."""
        last = layer + 1 == self._config.n_layer
        norm = self._named("ln_f" if last else f"h.{layer + 1}.ln_1")
        self.launch(
            "residual_layernorm", partial=work.partial, bias=self._weights[f"h.{layer}.mlp.c_proj.bias"],
            norm_weight=norm["weight"], norm_bias=norm["bias"], x=work.x, out=work.normed, eps=self._config.eps,
        )  # fmt: skip

    def _layer_weights(self, layer: int) -> Callable[[str], dict[str, DeviceBuffer]]:
        return lambda name: self._named(f"h.{layer}.{name}")

    def _named(self, name: str) -> dict[str, DeviceBuffer]:
        """A weight and its bias."""
        return {part: self._weights[f"{name}.{part}"] for part in ("weight", "bias")}
