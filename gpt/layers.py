"""Runs tokens through a model's layers. All work is launches, so that a CUDA graph can capture it. To compare with the
GPT-2 paper read `_unfolded`: each line is one op, with the shape of its result.

B sequences of T tokens, N = B * T rows, C = n_embd = H heads of D, V tokens in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from toolchain.contract.entry import ops
from toolchain.runtime import DeviceBuffer

from .plan import ModelPlan
from .workspace import Workspace

# Arguments: the index of the chunk's first sequence in the batch, the layer, qkv (B, T, 3, H, D), out (B, T, H, D)
Attend = Callable[[int, int, DeviceBuffer, DeviceBuffer], None]
AttendHere = Callable[[int, DeviceBuffer, DeviceBuffer], None]  # the same, with the first sequence already bound
Attended = Callable[[int], DeviceBuffer]  # attention's result (N, C) in a layer, from the workspace's qkv


class Launch(Protocol):
    """A callable that runs an op, as a Launcher does, or records it, as a Recorder does."""

    def __call__(self, op: str, dtype: str, /, **args: DeviceBuffer | float) -> None: ...


class Layers:
    """The layers of one model. `launch` is called for each op; `dtype` is the model's."""

    def __init__(self, launch: Launch, weights: Mapping[str, DeviceBuffer], plan: ModelPlan, dtype: str) -> None:
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
        """Runs a chunk through all layers, on the route that its number of rows takes. All routes compute the same, and
        differ in where the norms are. Returns True if `work.normed` then holds the final norm."""
        c, h, d = self._config.n_embd, self._config.n_head, self._config.head_size
        rows = batch * length
        qkv = work.qkv.reshape(batch, length, 3, h, d)
        out = work.attended.reshape(batch, length, h, d)

        def attended(layer: int) -> DeviceBuffer:
            attend(layer, qkv, out)
            return out.reshape(rows, c)

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
        projection, last = self._named(f"h.{layer}.mlp.c_proj"), layer + 1 == self._config.n_layer
        norm = self._named("ln_f" if last else f"h.{layer + 1}.ln_1")
        partial = work.partial
        self.launch("linear_split_k", x=work.hidden, weight=projection["weight"], partial=partial)  # (Z, N, C)
        self.launch(
            "residual_layernorm", partial=partial, bias=projection["bias"], norm_weight=norm["weight"],
            norm_bias=norm["bias"], x=work.x, out=work.normed, eps=self._config.eps,
        )  # fmt: skip

    def launch(self, op: str, **args: DeviceBuffer | float) -> None:
        """Launch one op in the model's dtype for it."""
        self._launch(op, ops()[op].dtype_in(self._dtype), **args)

    def _layer_weights(self, layer: int) -> Callable[[str], dict[str, DeviceBuffer]]:
        return lambda name: self._named(f"h.{layer}.{name}")

    def _named(self, name: str) -> dict[str, DeviceBuffer]:
        """A weight and its bias."""
        return {part: self._weights[f"{name}.{part}"] for part in ("weight", "bias")}
