"""The launches of a forward pass, a prefill and a decoding step. They are all launches, so a CUDA graph can capture it.

B sequences of T tokens, N = B * T rows, C = n_embd, V tokens in the vocabulary, P positions in a cache.
"""

from __future__ import annotations

from collections.abc import Callable

from toolchain.runtime import DeviceBuffer

from .kv_cache import Cached, CachedF8
from .layers import Layers, Paged, Spans
from .workspace import Workspace

CacheLayer = Callable[[int], Cached | CachedF8]


class Passes:
    """The passes of one model."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def forward(self, work: Workspace, batch: int, length: int, out: DeviceBuffer) -> None:
        """Compute logits `out` (N, padded V) of the tokens in `work`."""

        def attend(first: int, layer: int, chunk: Workspace) -> None:
            stop = first + chunk.qkv.shape[0] // length
            self._layers.attend(layer, chunk, work.starts.slice(0, first, stop), length)

        ready = self._layers.run(work, batch, length, attend)
        self._layers.all_logits(work, out, ready=ready)

    def prefill(
        self, work: Workspace, cached: CacheLayer, batch: int, length: int, start: int, out: DeviceBuffer
    ) -> None:
        """Append the tokens in `work` to a cache with `start` filled positions in each sequence, and compute logits
        `out` (B, padded V) after the last token."""
        end = start + length

        def attend(first: int, layer: int, chunk: Workspace) -> None:
            stop = first + chunk.qkv.shape[0] // length
            mine, starts = cached(layer).of(first, stop), work.starts.slice(0, first, stop)
            self._layers.attend_cached(layer, chunk, mine, starts, length, end)

        ready = self._layers.run(work, batch, length, attend)
        last = (work.normed if ready else work.x).unflatten(0, batch, length).select(1, -1)  # (B, C)
        self._layers.logits(last, last if ready else work.normed.slice(0, 0, batch), out, ready=ready)

    def decode(self, work: Workspace, cached: CacheLayer, batch: int, spans: Spans | None, out: DeviceBuffer) -> None:
        """Append one token to each sequence, at its position (`work` holds both), and compute logits `out`
        (B, padded V)."""

        def attend(_first: int, layer: int, chunk: Workspace) -> Spans | None:
            return self._layers.attend_one(layer, chunk, cached(layer), spans)

        ready = self._layers.run(work, batch, 1, attend)
        self._layers.logits(work.x, work.normed, out, ready=ready)

    def paged(
        self, work: Workspace, paged: Paged, last: DeviceBuffer, ends: tuple[DeviceBuffer, DeviceBuffer],
        out: DeviceBuffer,
    ) -> None:  # fmt: skip
        """Append the tokens in `work` (N) to a cache in pages, and compute logits `out` (M, padded V) after some of
        them: the rows `last` (M) i32. `ends`: room for these rows, twice (M, C)."""

        def attend(_first: int, layer: int, chunk: Workspace) -> None:
            self._layers.attend_paged(layer, chunk, paged)

        ready = self._layers.run(work, work.x.shape[0], 1, attend)
        x, normed = ends
        source, taken = (work.normed, normed) if ready else (work.x, x)
        self._layers.launch("token_embedding", tokens=last, wte=source, out=taken)  # takes rows
        self._layers.logits(x, normed, out, ready=ready)

    def next_token(
        self, logits: DeviceBuffer, parts: tuple[DeviceBuffer, DeviceBuffer], tokens: DeviceBuffer,
        positions: DeviceBuffer,
    ) -> None:  # fmt: skip
        """Write the likeliest token of each row of logits (M, V) to `tokens` (M), and add 1 to `positions` (M)."""
        self._layers.next_token(logits, parts, tokens, positions)

    def choose(
        self, parts: tuple[DeviceBuffer, DeviceBuffer], tokens: DeviceBuffer, positions: DeviceBuffer
    ) -> None:  # fmt: skip
        """The same, where the largest of each part of a row is known: `parts`, each (M, Z)."""
        self._layers.choose(parts, tokens, positions)
