"""The launches of a forward pass, a prefill and a decoding step. They are all launches, so a CUDA graph can capture it.

B sequences of T tokens, N = B * T rows, C = n_embd = H heads of D, V tokens in the vocabulary, P positions in a cache.
"""

from __future__ import annotations

from collections.abc import Callable

from toolchain.runtime import DeviceBuffer

from .layers import Layers
from .workspace import Workspace

Spans = tuple[DeviceBuffer, DeviceBuffer]  # partial (B, H, Z, D), stats (B, H, Z, 2), both f32
CacheLayer = Callable[[int], tuple[DeviceBuffer, DeviceBuffer]]  # a layer's keys and values, each (B, P, H, D)


class Passes:
    """The passes of one model. `scale`: the factor of attention's scores."""

    def __init__(self, layers: Layers, scale: float) -> None:
        self._layers, self._scale = layers, scale

    def forward(self, work: Workspace, batch: int, length: int, out: DeviceBuffer) -> None:
        """Compute logits `out` (N, padded V) of the tokens in `work`."""

        def attend(_first: int, _layer: int, qkv: DeviceBuffer, out: DeviceBuffer) -> None:
            q, k, v = (qkv.select(2, i) for i in range(3))  # (B, T, H, D) each
            self._layers.launch("attention", q=q, k=k, v=v, out=out, scale=self._scale)

        ready = self._layers.run(work, batch, length, attend)
        self._layers.logits(work.x, work.normed, out, ready=ready)

    def prefill(
        self, work: Workspace, cached: CacheLayer, batch: int, length: int, start: int, out: DeviceBuffer
    ) -> None:
        """Append the tokens in `work` to a cache with `start` filled positions in each sequence, and compute logits
        `out` (B, padded V) after the last token."""
        end = start + length

        def attend(first: int, layer: int, qkv: DeviceBuffer, out: DeviceBuffer) -> None:
            q, k, v = (qkv.select(2, i) for i in range(3))  # (B, T, H, D) each
            stop = first + q.shape[0]
            keys, values = (both.slice(0, first, stop) for both in cached(layer))
            starts = work.starts.slice(0, first, stop)
            self._layers.launch("kv_append", k=k, v=v, positions=starts, k_cache=keys, v_cache=values)
            k, v = keys.slice(1, 0, end), values.slice(1, 0, end)  # (B, S, H, D)
            self._layers.launch("attention", q=q, k=k, v=v, out=out, scale=self._scale)

        ready = self._layers.run(work, batch, length, attend)
        last = (work.normed if ready else work.x).unflatten(0, batch, length).select(1, -1)  # (B, C)
        self._layers.logits(last, last if ready else work.normed.slice(0, 0, batch), out, ready=ready)

    def decode(self, work: Workspace, cached: CacheLayer, batch: int, spans: Spans | None, out: DeviceBuffer) -> None:
        """Append one token to each sequence, at its position (`work` holds both), and compute logits `out`
        (B, padded V)."""

        def attend(_first: int, layer: int, qkv: DeviceBuffer, out: DeviceBuffer) -> None:
            q, k, v = (qkv.select(2, i).select(1, 0) for i in range(3))  # (B, H, D) each
            keys, values = cached(layer)
            token: dict[str, DeviceBuffer | float] = {
                "q": q, "k": k, "v": v, "positions": work.positions, "k_cache": keys, "v_cache": values,
                "scale": self._scale,
            }  # fmt: skip
            out = out.select(1, 0)
            if spans is None:
                self._layers.launch("decode_attention_unsplit", **token, out=out)
                return
            partial, stats = spans
            self._layers.launch("decode_attention", **token, partial=partial, stats=stats)
            self._layers.launch("merge_attention", partial=partial, stats=stats, out=out)

        ready = self._layers.run(work, batch, 1, attend)
        self._layers.logits(work.x, work.normed, out, ready=ready)

    def next_token(
        self, logits: DeviceBuffer, parts: tuple[DeviceBuffer, DeviceBuffer], tokens: DeviceBuffer,
        positions: DeviceBuffer,
    ) -> None:  # fmt: skip
        """Write the likeliest token of each row of logits (M, V) to `tokens` (M), and add 1 to `positions` (M)."""
        values, indices = parts
        self._layers.launch("argmax_parts", x=logits, values=values, indices=indices)
        self._layers.launch("next_token", values=values, indices=indices, tokens=tokens, positions=positions)
