"""Runs tokens through a model's layers. All work is launches, so that a CUDA graph can capture it. To compare with the
GPT-2 paper read `_chunk`: each line is one op, with the shape of its result.

B sequences of T tokens, N = B * T rows, C = n_embd = H heads of D, V tokens in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from toolchain.contract.entry import ops
from toolchain.runtime import DeviceBuffer

from .plan import Plan
from .workspace import Workspace

# Arguments: the index of the chunk's first sequence in the batch, the layer, qkv (B, T, 3, H, D), out (B, T, H, D)
Attend = Callable[[int, int, DeviceBuffer, DeviceBuffer], None]
AttendHere = Callable[[int, DeviceBuffer, DeviceBuffer], None]  # the same, with the first sequence already bound


class Launch(Protocol):
    """A callable that runs an op, as a Launcher does, or records it, as a Recorder does."""

    def __call__(self, op: str, dtype: str, /, **args: DeviceBuffer | float) -> None: ...


class Layers:
    """The layers of one model. `launch` is called for each op; `dtype` is the model's."""

    def __init__(self, launch: Launch, weights: Mapping[str, DeviceBuffer], plan: Plan, dtype: str) -> None:
        self._launch, self._weights, self._plan, self._dtype = launch, weights, plan, dtype
        self._config = plan.config

    def run(self, work: Workspace, batch: int, length: int, attend: Attend) -> bool:
        """Compute the last residual stream `work.x` (N, C) from the tokens, one chunk of sequences after the other.

        Returns True if `work.normed` already holds its final norm."""
        first, ready = 0, False
        for count in self._plan.chunk_sizes(batch, length):
            chunk = work.chunk(first * length, count * length)
            ready = self._chunk(chunk, count, length, partial(attend, first))
            first += count
        return ready

    def logits(self, x: DeviceBuffer, normed: DeviceBuffer, out: DeviceBuffer, *, ready: bool) -> None:
        """Apply the final norm (unless `normed` is `ready`) and the tied output weights: (M, C) -> (M, padded V)."""
        if not ready:
            self.launch("layernorm", x=x, **self._named("ln_f"), out=normed, eps=self._config.eps)  # (M, C)
        self.launch("logits", x=normed, weight=self._weights["wte.weight"], out=out)  # (M, padded V)

    def _chunk(self, work: Workspace, batch: int, length: int, attend: AttendHere) -> bool:
        c, h, d = self._config.n_embd, self._config.n_head, self._config.head_size
        x, normed = work.x, work.normed
        qkv = work.qkv.reshape(batch, length, 3, h, d)
        attended = work.attended.reshape(batch, length, h, d)
        wte, wpe = self._weights["wte.weight"], self._weights["wpe.weight"]
        tokens: dict[str, DeviceBuffer | float] = {
            "tokens": work.tokens, "positions": work.positions, "wte": wte, "wpe": wpe
        }  # fmt: skip
        squares = {"squares": work.squares} if work.squares.shape[0] else {}
        if squares:
            self.launch("embedding_centred", **tokens, out=x, **squares)  # (N, C)
        else:
            self.launch("embedding", **tokens, out=x)  # (N, C)
        if squares and self._plan.folds_all(batch * length):
            self._folded_layers(work, attend, qkv, attended)
            return False
        normed_ahead = False  # True: `normed` already holds this layer's ln_1, or at the end ln_f
        for layer in range(self._config.n_layer):
            w = self._layer_weights(layer)
            if not normed_ahead:
                self.launch("layernorm", x=x, **w("ln_1"), out=normed, eps=self._config.eps)  # (N, C)
            self.launch("linear", x=normed, **w("attn.c_attn"), out=work.qkv)  # (N, 3C)
            attend(layer, qkv, attended)  # (B, T, H, D)
            y = attended.reshape(batch * length, c)
            self._norm_between(w, y, x, normed, work.hidden, squares)  # (N, 4C)
            projection = w("mlp.c_proj")
            if not self._plan.parts(batch * length):
                self.launch("linear_residual", x=work.hidden, **projection, residual=x, out=x)  # (N, C)
                continue
            last = layer + 1 == self._config.n_layer
            norm = self._named("ln_f") if last else self._layer_weights(layer + 1)("ln_1")
            self.launch("linear_split_k", x=work.hidden, weight=projection["weight"], partial=work.partial)  # (Z, N, C)
            self.launch(
                "residual_layernorm", partial=work.partial, bias=projection["bias"], norm_weight=norm["weight"],
                norm_bias=norm["bias"], x=x, out=normed, eps=self._config.eps,
            )  # fmt: skip
            normed_ahead = True
        return normed_ahead

    def _norm_between(
        self, w: Callable[[str], dict[str, DeviceBuffer]], y: DeviceBuffer, x: DeviceBuffer, normed: DeviceBuffer,
        hidden: DeviceBuffer, squares: Mapping[str, DeviceBuffer],
    ) -> None:  # fmt: skip
        """Add attention's result to the residual stream, then norm it and run the MLP's first product."""
        eps = self._config.eps
        if squares:
            self.launch("linear_residual_squares", x=y, **w("attn.c_proj"), residual=x, out=x, **squares)  # (N, C)
            self.launch("rms_linear_gelu", x=x, **squares, **w("mlp.c_fc"), out=hidden, eps=eps)  # (N, 4C)
            return
        self.launch("linear_residual", x=y, **w("attn.c_proj"), residual=x, out=x)  # (N, C)
        self.launch("layernorm", x=x, **w("ln_2"), out=normed, eps=eps)  # (N, C)
        self.launch("linear_gelu", x=normed, **w("mlp.c_fc"), out=hidden)  # (N, 4C)

    def _folded_layers(self, work: Workspace, attend: AttendHere, qkv: DeviceBuffer, attended: DeviceBuffer) -> None:
        """The layers for many rows, with folded norms. A product that adds to the residual stream also writes the row
        sums of squares; the next product reads them and divides its rows by the root mean square."""
        x, squares, eps = work.x, work.squares, self._config.eps
        y = attended.reshape(*x.shape)
        for layer in range(self._config.n_layer):
            w = self._layer_weights(layer)
            self.launch("rms_linear", x=x, squares=squares, **w("attn.c_attn"), out=work.qkv, eps=eps)  # (N, 3C)
            attend(layer, qkv, attended)  # (B, T, H, D)
            self.launch(
                "linear_residual_squares", x=y, **w("attn.c_proj"), residual=x, out=x, squares=squares
            )  # (N, C)
            self.launch("rms_linear_gelu", x=x, squares=squares, **w("mlp.c_fc"), out=work.hidden, eps=eps)  # (N, 4C)
            if layer + 1 < self._config.n_layer:
                self.launch(
                    "linear_residual_squares", x=work.hidden, **w("mlp.c_proj"), residual=x, out=x, squares=squares
                )  # (N, C)
            else:  # the final norm is a launch of its own and needs no squares
                self.launch("linear_residual", x=work.hidden, **w("mlp.c_proj"), residual=x, out=x)  # (N, C)

    def launch(self, op: str, **args: DeviceBuffer | float) -> None:
        """Launch one op in the model's dtype for it."""
        self._launch(op, ops()[op].dtype_in(self._dtype), **args)

    def _layer_weights(self, layer: int) -> Callable[[str], dict[str, DeviceBuffer]]:
        return lambda name: self._named(f"h.{layer}.{name}")

    def _named(self, name: str) -> dict[str, DeviceBuffer]:
        """A weight and its bias."""
        return {part: self._weights[f"{name}.{part}"] for part in ("weight", "bias")}
