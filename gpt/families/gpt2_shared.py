"""GPT-2's layers on one of R ranks: its heads, its part of the hidden layer, its logits, and what all ranks make of
theirs (see share.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.runtime import DeviceBuffer

from ..config import GPTConfig
from ..parameters.share import NOTHING, WHOLE, Share
from ..parameters.spread import ATTENTION, OF, OF_GELU, OWN, TO, Spread
from ..passes.layers import AttendHere
from ..passes.recorder import Recorder
from ..passes.workspace import Workspace
from .gpt2 import GPT2
from .shared_layers import SharedLayers

EMBEDDING = "wte.weight"


def device_weights(
    config: GPTConfig, weights: Mapping[str, NDArray[Any]], share: Share
) -> Iterator[tuple[str, NDArray[Any]]]:
    """The rank's weights, which `share.weights` made, as they lie on the device, one after the other."""
    more = share.ranks * share.vocabulary - config.vocab_size
    for name, tensor in weights.items():
        yield name, np.pad(tensor, ((0, more), (0, 0))) if name == EMBEDDING else tensor  # (padded V, C)


class SharedGPT2(SharedLayers, GPT2):
    """GPT-2's layers on one rank."""

    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        if (spread := self._share.spread(rows)) is not None:
            return self._spread(work, spread, attend)
        x, normed, eps = work.x, work.normed, self._config.eps
        self.launch(
            "embedding", tokens=work.tokens, positions=work.positions, wte=self._weights[EMBEDDING],
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

    def _spread(self, work: Workspace, spread: Spread, attend: AttendHere) -> bool:
        """The same where each rank has a piece of the rows, too (see spread.py)."""
        rank, eps, weights = self._share.rank, self._config.eps, self._weights
        x = spread.stream.select(0, rank)  # (N, C)
        self.launch(
            "embedding_centred", tokens=work.tokens, positions=work.positions, wte=weights[EMBEDDING],
            wpe=weights["wpe.weight"], out=x, squares=spread.squares[1].select(0, rank),
        )  # fmt: skip
        last = self._config.n_layer - 1
        for layer in range(last + 1):
            w = self._layer_weights(layer)
            rows = spread.of(OF) if layer else {**spread.of(OF), "sends": 0}  # all ranks have made all
            self.launch(OF, **rows, **w("attn.c_attn"), out=work.qkv, eps=eps)  # (N, 3C / R)
            attend(layer, work)  # spread.attended (R, N / R, C)
            projection = {"weight": weights[f"h.{layer}.attn.c_proj.{WHOLE}"], "bias": w("attn.c_proj")["bias"]}
            self.launch(OWN, **spread.of(OWN), **projection)
            self._send(spread)
            self.launch(OF_GELU, **spread.of(OF_GELU), **w("mlp.c_fc"), out=work.hidden, eps=eps)  # (N, 4C / R)
            if layer < last:
                self.launch(TO, **spread.of(TO), x=work.hidden, **w("mlp.c_proj"))
                self._send(spread)
        projection = self._layer_weights(last)("mlp.c_proj")
        self._add_up(replace(work, x=x), 1, work.hidden, projection, self._named("ln_f"))
        return True

    def attend(self, layer: int, work: Workspace, starts: DeviceBuffer, length: int) -> None:
        spread = self._share.spread(work.qkv.shape[0])
        if spread is None:
            super().attend(layer, work, starts, length)
            return
        q, k, v = self._heads(work, length)
        self.launch(ATTENTION, q=q, k=k, v=v, **spread.of(ATTENTION), scale=self._scale)

    def _send(self, spread: Spread) -> None:
        if not isinstance(self._launch, Recorder):  # which runs nothing
            spread.made()

    def _output_weight(self) -> DeviceBuffer:
        return self._own_tokens(self._weights[EMBEDDING])

    def _add_up(
        self, work: Workspace, turn: int, y: DeviceBuffer, projection: Mapping[str, DeviceBuffer],
        norm: Mapping[str, DeviceBuffer],
    ) -> None:  # fmt: skip
        """Makes this rank's part of a product, adds all ranks' parts and the bias to x, and norms the sum."""
        parts, own = self._parts(turn, y.shape[0])
        self.launch("linear", x=y, weight=projection["weight"], bias=self._weights[NOTHING], out=own)  # (N, C)
        self._add_parts(
            "all_reduce_layernorm", work, parts, bias=projection["bias"], norm_weight=norm["weight"],
            norm_bias=norm["bias"],
        )  # fmt: skip
