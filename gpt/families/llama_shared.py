"""A Llama's layers on one of R ranks: its heads of keys with their heads of queries, its part of the hidden layer, its
logits, and what all ranks make of theirs (see share.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from toolchain.runtime import DeviceBuffer

from ..config import GPTConfig
from ..parameters.share import Share
from ..passes.layers import AttendHere
from ..passes.workspace import Workspace
from .llama import EMBEDDING, HEAD, Llama, laid_out
from .shared_layers import SharedLayers


def device_weights(
    config: GPTConfig, weights: Mapping[str, NDArray[Any]], share: Share
) -> Iterator[tuple[str, NDArray[Any]]]:
    """The rank's weights, which `share.weights` made, as they lie on the device, one after the other."""
    padded = {EMBEDDING: share.ranks * share.vocabulary, HEAD: share.vocabulary}
    return ((name, made()) for name, made in laid_out(config, weights, padded))


class SharedLlama(SharedLayers, Llama):
    """The layers of a Llama on one rank."""

    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        del rows
        normed, weights = work.normed, self._weights
        self.launch("token_embedding", tokens=work.tokens, wte=weights[EMBEDDING], out=work.x)  # (N, C)
        self._norm("layers.0.input_layernorm", work.x, normed)  # (N, C)
        for layer in range(self._config.n_layer):
            at, mlp = f"layers.{layer}.self_attn", f"layers.{layer}.mlp"
            last = layer + 1 == self._config.n_layer
            self.launch("matmul", x=normed, weight=weights[f"{at}.qkv"], out=work.qkv)  # (N, G (Q + 2) D / R)
            attend(layer, work)  # work.attended (N, G Q D / R)
            self._add_up(work, 0, work.attended, f"{at}.o_proj", f"layers.{layer}.post_attention_layernorm")
            gate, up = weights[f"{mlp}.gate_proj"], weights[f"{mlp}.up_proj"]
            self.launch("swiglu", x=normed, gate=gate, up=up, out=work.hidden)  # (N, F / R)
            norm = "norm" if last else f"layers.{layer + 1}.input_layernorm"
            self._add_up(work, 1, work.hidden, f"{mlp}.down_proj", norm)  # x and normed (N, C)
        return True

    def _output_weight(self) -> DeviceBuffer:
        return self._own_tokens(self._weights[EMBEDDING]) if self._config.tied else self._weights[HEAD]

    def _add_up(self, work: Workspace, turn: int, y: DeviceBuffer, product: str, norm: str) -> None:
        """Makes this rank's part of a product, adds all ranks' parts to x, and norms the sum."""
        parts, own = self._parts(turn, y.shape[0])
        self.launch("matmul", x=y, weight=self._weights[product], out=own)  # (N, C)
        self._add_parts("all_reduce_rmsnorm", work, parts, norm_weight=self._weights[f"{norm}.weight"])
