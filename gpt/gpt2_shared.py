"""GPT-2's layers on one of R ranks: its heads, its part of the hidden layer, its logits, and what all ranks make of
theirs (see share.py)."""

from __future__ import annotations

from collections.abc import Mapping

from toolchain.runtime import DeviceBuffer

from .gpt2 import GPT2
from .layers import AttendHere, Launch
from .plan import ModelPlan
from .share import NOTHING, Share
from .workspace import Workspace


class SharedGPT2(GPT2):
    """The plan's config has the rank's heads and hidden layer; embeddings and norms are whole."""

    def __init__(
        self, launch: Launch, weights: Mapping[str, DeviceBuffer], plan: ModelPlan, dtype: str, share: Share
    ) -> None:
        super().__init__(launch, weights, plan, dtype)
        self._share = share

    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        del rows
        x, normed, eps = work.x, work.normed, self._config.eps
        self.launch(
            "embedding", tokens=work.tokens, positions=work.positions, wte=self._weights["wte.weight"],
            wpe=self._weights["wpe.weight"], out=x,
        )  # fmt: skip
        self.launch("layernorm", x=x, **self._named("h.0.ln_1"), out=normed, eps=eps)  # (N, C)
        for layer in range(self._config.n_layer):
            w = self._layer_weights(layer)
            last = layer + 1 == self._config.n_layer
            self.launch("linear", x=normed, **w("attn.c_attn"), out=work.qkv)  # (N, 3C / R)
            attend(layer, work)  # work.attended (N, C / R)
            self._add_up(work, 0, work.attended, w("attn.c_proj"), w("ln_2"))  # x and normed (N, C)
            self.launch("linear_gelu", x=normed, **w("mlp.c_fc"), out=work.hidden)  # (N, 4C / R)
            norm = self._named("ln_f" if last else f"h.{layer + 1}.ln_1")
            self._add_up(work, 1, work.hidden, w("mlp.c_proj"), norm)  # x and normed (N, C)
        return True

    def logits(self, x: DeviceBuffer, normed: DeviceBuffer, out: DeviceBuffer, *, ready: bool) -> None:
        """Those of this rank's tokens: (M, C) -> (M, padded V / R)."""
        del x
        assert ready, "the last sum over the ranks also norms"
        first, count = self._share.tokens.start, self._share.vocabulary
        own = self._weights["wte.weight"].slice(0, first, first + count)
        self.launch("logits", x=normed, weight=own, out=out)

    def next_token(
        self, logits: DeviceBuffer, parts: tuple[DeviceBuffer, DeviceBuffer], tokens: DeviceBuffer,
        positions: DeviceBuffer,
    ) -> None:  # fmt: skip
        share, rows = self._share, logits.shape[0]
        values, indices = parts
        self.launch("argmax_parts", x=logits, values=values, indices=indices)
        all_values, all_indices = share.likeliest(rows)
        self.launch(
            "next_token_of_ranks", values=all_values, indices=all_indices, tokens=tokens, positions=positions,
            width=share.vocabulary, **share.arguments,
        )  # fmt: skip

    def _add_up(
        self, work: Workspace, turn: int, y: DeviceBuffer, projection: Mapping[str, DeviceBuffer],
        norm: Mapping[str, DeviceBuffer],
    ) -> None:  # fmt: skip
        """Makes this rank's part of a product, adds all ranks' parts and the bias to x, and norms the sum."""
        parts = self._share.part(turn, y.shape[0])  # (R, N, C)
        own, nothing = parts.select(0, self._share.rank), self._weights[NOTHING]
        self.launch("linear", x=y, weight=projection["weight"], bias=nothing, out=own)  # (N, C)
        self.launch(
            "all_reduce_layernorm", parts=parts, bias=projection["bias"], norm_weight=norm["weight"],
            norm_bias=norm["bias"], x=work.x, out=work.normed, eps=self._config.eps, **self._share.arguments,
        )  # fmt: skip
