"""GPT-2 as a sequence of launches. Read `_blocks` beside the paper: each line is one op, with its result's shape.

B sequences of T tokens, N = B * T rows, C = n_embd = H heads of D, V tokens in the vocabulary, P positions in a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.entry import ops
from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Launcher

from .config import GPTConfig
from .weights import Weights, check, load

Tokens = NDArray[np.integer[Any]]
Attend = Callable[[int, DeviceBuffer, DeviceBuffer], None]  # layer, qkv (B, T, 3, H, D), out (B, T, H, D)


class KVCache:
    """Keys and values of the positions seen so far, per layer (B, P, H, D); `lengths` of them in each sequence."""

    def __init__(self, model: GPT, batch: int, positions: int | None = None) -> None:
        config = model.config
        positions = config.n_ctx if positions is None else positions
        if batch < 1 or not 1 <= positions <= config.n_ctx:
            raise UsageError(f"no cache of {batch} x {positions} positions: at least 1 x 1, at most {config.n_ctx}")
        shape = (config.n_layer, 2, batch, positions, config.n_head, config.head_size)
        self.memory = model.executor.empty(shape, model.storage)
        self.memory.fill(0)
        self.batch, self.positions = batch, positions
        self.lengths = np.zeros(batch, np.int32)

    def layer(self, index: int) -> tuple[DeviceBuffer, DeviceBuffer]:
        """Keys and values of one layer, each (B, P, H, D)."""
        both = self.memory.select(0, index)
        return both.select(0, 0), both.select(0, 1)


@dataclass(frozen=True)
class _Workspace:
    """Intermediate results of N rows, reused by every layer and every call of the same (B, T)."""

    x: DeviceBuffer  # (N, C): the residual stream
    normed: DeviceBuffer  # (N, C)
    qkv: DeviceBuffer  # (N, 3C)
    attended: DeviceBuffer  # (N, C)
    hidden: DeviceBuffer  # (N, 4C)
    tokens: DeviceBuffer  # (N) i32
    positions: DeviceBuffer  # (N) i32
    starts: DeviceBuffer  # (B) i32: where each sequence's new positions begin
    lengths: DeviceBuffer  # (B) i32: and how many it then has


class GPT:
    """A GPT on the launcher's executor. `dtype`: f32, tf32 (f32 with tf32 matrix products), f16 or bf16."""

    def __init__(self, config: GPTConfig, weights: Weights, launcher: Launcher, dtype: str = "bf16") -> None:
        """Copies the weights to the device. Raises UsageError if they do not fit the config."""
        check(config, weights, "weights")
        self.config, self.launcher, self.dtype = config, launcher, dtype
        self.storage = "f32" if dtype == "tf32" else dtype
        self.executor = launcher.executor
        self.weights = {name: self.executor.from_numpy(tensor) for name, tensor in weights.astype(dtype).items()}
        self._workspaces: dict[tuple[int, int], _Workspace] = {}

    @classmethod
    def from_pretrained(cls, path_or_name: str | Path, *, launcher: Launcher, dtype: str = "bf16") -> GPT:
        """A checkpoint's folder, or a GPT-2 of the Hugging Face hub by name."""
        config, weights, _ = load(path_or_name)
        return cls(config, weights, launcher, dtype)

    def forward(self, tokens: Tokens) -> DeviceBuffer:
        """Logits (B, T, V) at every position of tokens (B, T)."""
        batch, length = self._check_tokens(tokens)
        work = self._workspace(batch, length)
        self._place(work, tokens, np.zeros(batch, np.int32))

        def attend(_layer: int, qkv: DeviceBuffer, out: DeviceBuffer) -> None:
            q, k, v = (qkv.select(2, i) for i in range(3))  # (B, T, H, D) each
            self._run("attention", q=q, k=k, v=v, out=out, scale=self._scale)

        self._blocks(work, batch, length, attend)
        return self._logits(work.x, work.normed).reshape(batch, length, self.config.vocab_size)

    def prefill(self, tokens: Tokens, cache: KVCache) -> DeviceBuffer:
        """Appends tokens (B, T) to a cache whose sequences are equally long; logits (B, V) after the last."""
        batch, length = self._check_tokens(tokens, cache)
        start = int(cache.lengths[0])
        if (cache.lengths != start).any():
            raise UsageError(f"prefill needs equally long sequences, the cache has {cache.lengths.tolist()}")
        work, end = self._workspace(batch, length), start + length
        self._place(work, tokens, cache.lengths)

        def attend(layer: int, qkv: DeviceBuffer, out: DeviceBuffer) -> None:
            q, keys, values = self._append(layer, qkv, work, cache)
            k, v = keys.slice(1, 0, end), values.slice(1, 0, end)  # (B, S, H, D)
            self._run("attention", q=q, k=k, v=v, out=out, scale=self._scale)

        self._blocks(work, batch, length, attend)
        cache.lengths += length
        c = self.config.n_embd
        last = work.x.reshape(batch, length, c).select(1, -1)  # (B, C)
        return self._logits(last, work.normed.slice(0, 0, batch))

    def decode(self, tokens: Tokens, cache: KVCache) -> DeviceBuffer:
        """Appends one token (B,) to each sequence of a cache, whatever their lengths; logits (B, V) after it."""
        column = np.asarray(tokens).reshape(-1, 1)  # (B, 1)
        batch, _ = self._check_tokens(column, cache)
        work = self._workspace(batch, 1)
        self._place(work, column, cache.lengths)

        def attend(layer: int, qkv: DeviceBuffer, out: DeviceBuffer) -> None:
            q, keys, values = self._append(layer, qkv, work, cache)
            self._run(
                "decode_attention", q=q.select(1, 0), k_cache=keys, v_cache=values, lengths=work.lengths,
                out=out.select(1, 0), scale=self._scale,
            )  # fmt: skip

        self._blocks(work, batch, 1, attend)
        cache.lengths += 1
        return self._logits(work.x, work.normed)

    def argmax(self, logits: DeviceBuffer) -> NDArray[np.int32]:
        """The likeliest token of each row of logits (M, V)."""
        out = self.executor.empty(logits.shape[:1], "i32")
        self._run("argmax", x=logits, out=out)
        return out.numpy()

    def _blocks(self, work: _Workspace, batch: int, length: int, attend: Attend) -> None:
        """Tokens to the last residual stream `work.x` (N, C)."""
        c, h, d, eps = self.config.n_embd, self.config.n_head, self.config.head_size, self.config.eps
        x, normed = work.x, work.normed
        qkv = work.qkv.reshape(batch, length, 3, h, d)
        attended = work.attended.reshape(batch, length, h, d)
        wte, wpe = self.weights["wte.weight"], self.weights["wpe.weight"]
        self._run("embedding", tokens=work.tokens, positions=work.positions, wte=wte, wpe=wpe, out=x)  # (N, C)
        for layer in range(self.config.n_layer):
            w = self._layer_weights(layer)
            self._run("layernorm", x=x, **w("ln_1"), out=normed, eps=eps)  # (N, C)
            self._run("linear", x=normed, **w("attn.c_attn"), out=work.qkv)  # (N, 3C)
            attend(layer, qkv, attended)  # (B, T, H, D)
            y = attended.reshape(batch * length, c)
            self._run("linear_residual", x=y, **w("attn.c_proj"), residual=x, out=x)  # (N, C)
            self._run("layernorm", x=x, **w("ln_2"), out=normed, eps=eps)  # (N, C)
            self._run("linear_gelu", x=normed, **w("mlp.c_fc"), out=work.hidden)  # (N, 4C)
            self._run("linear_residual", x=work.hidden, **w("mlp.c_proj"), residual=x, out=x)  # (N, C)

    def _logits(self, x: DeviceBuffer, normed: DeviceBuffer) -> DeviceBuffer:
        """The final norm and the tied output weights: (M, C) -> (M, V). The result is the caller's."""
        out = self.executor.empty((x.shape[0], self.config.vocab_size), self.storage)
        weight, bias = self.weights["ln_f.weight"], self.weights["ln_f.bias"]
        self._run("layernorm", x=x, weight=weight, bias=bias, out=normed, eps=self.config.eps)  # (M, C)
        self._run("logits", x=normed, weight=self.weights["wte.weight"], out=out)  # (M, V)
        return out

    def _append(
        self, layer: int, qkv: DeviceBuffer, work: _Workspace, cache: KVCache
    ) -> tuple[DeviceBuffer, DeviceBuffer, DeviceBuffer]:
        """Puts new keys and values into the cache. Returns q (B, T, H, D) and the layer's caches (B, P, H, D)."""
        q, k, v = (qkv.select(2, i) for i in range(3))
        keys, values = cache.layer(layer)
        self._run("kv_append", k=k, v=v, positions=work.starts, k_cache=keys, v_cache=values)
        return q, keys, values

    @property
    def _scale(self) -> float:
        return self.config.head_size**-0.5

    def _run(self, op: str, **args: DeviceBuffer | float) -> None:
        # tf32 is a way to multiply matrices: the other ops of a tf32 model are the f32 ones
        self.launcher(op, self.dtype if ops()[op].products else self.storage, **args)

    def _layer_weights(self, layer: int) -> Callable[[str], dict[str, DeviceBuffer]]:
        def of(name: str) -> dict[str, DeviceBuffer]:
            return {part: self.weights[f"h.{layer}.{name}.{part}"] for part in ("weight", "bias")}

        return of

    def _workspace(self, batch: int, length: int) -> _Workspace:
        """Only the last prefill's and the last decode's are kept."""
        key = (batch, length)
        if key not in self._workspaces:
            for old in [k for k in self._workspaces if (k[1] == 1) == (length == 1)]:
                del self._workspaces[old]
            n, c, empty = batch * length, self.config.n_embd, self.executor.empty
            widths = (c, c, 3 * c, c, 4 * c)
            rows = [empty((n, width), self.storage) for width in widths]
            counts = [empty((size,), "i32") for size in (n, n, batch, batch)]
            self._workspaces[key] = _Workspace(*rows, *counts)
        return self._workspaces[key]

    def _place(self, work: _Workspace, tokens: Tokens, starts: NDArray[np.int32]) -> None:
        """Copies tokens (B, T) and their positions, from `starts` (B) on, to the device."""
        length = tokens.shape[1]
        positions = starts[:, None] + np.arange(length, dtype=np.int32)  # (B, T)
        work.tokens.copy_from(tokens.astype(np.int32).reshape(-1))
        work.positions.copy_from(positions.reshape(-1))
        work.starts.copy_from(starts)
        work.lengths.copy_from(starts + np.int32(length))

    def _check_tokens(self, tokens: Tokens, cache: KVCache | None = None) -> tuple[int, int]:
        """B and T of tokens that fit the model and the cache. Raises UsageError before anything is launched."""
        if tokens.ndim != 2 or 0 in tokens.shape or not np.issubdtype(tokens.dtype, np.integer):
            raise UsageError(f"tokens must be integers (B, T), at least one; got {tokens.dtype}{list(tokens.shape)}")
        (batch, length), vocab = tokens.shape, self.config.vocab_size
        if tokens.min() < 0 or tokens.max() >= vocab:
            raise UsageError(
                f"token {tokens.max() if tokens.max() >= vocab else tokens.min()} is outside the vocabulary of {vocab}",
                hint="was the text encoded by another model's tokenizer?",
            )
        limit, used = self.config.n_ctx, 0
        if cache is not None:
            if cache.batch != batch:
                raise UsageError(f"{batch} sequences for a cache of {cache.batch}")
            limit, used = cache.positions, int(cache.lengths.max())
        if used + length > limit:
            raise UsageError(f"{used} + {length} positions are more than the {limit} there are")
        return batch, length
