"""What the layers of every family share: the chunks, the call that launches an op, and what a family says of itself.
All work is launches, so that a CUDA graph can capture it.

B sequences of T tokens, N = B * T rows, C = n_embd, H heads of queries and G of keys and values, each of D numbers, V
tokens in the vocabulary, P positions in a cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from toolchain.contract.op import ops
from toolchain.runtime import DeviceBuffer

from .kv_cache import Cached, CachedF8
from .plan import ModelPlan
from .workspace import Workspace

Spans = tuple[DeviceBuffer, DeviceBuffer]  # partial (B, H, Z, D), stats (B, H, Z, 2), both f32
# Makes a chunk's `attended` from its `qkv`. Arguments: the chunk's first sequence in the batch, the layer, the chunk.
# If it returns spans, they are not merged yet, and `attended` is not made: that is left to the product behind.
Attend = Callable[[int, int, Workspace], Spans | None]
AttendHere = Callable[[int, Workspace], Spans | None]  # the same, with the first sequence already bound


@dataclass(frozen=True)
class Paged:
    """The rows of a step over a cache in pages: B texts of which each row is the last token, then P pieces of prompts
    of `piece` rows each. `cached`: of a layer, its pages of keys and of values, each (R, PAGE, G, D). `tables` (B + P,
    L) i32: the pages of each text or piece, in the order of its positions. `starts` (B + P) i32: the first position of
    each. `spans`: room for the results of the B texts."""

    cached: Callable[[int], Cached]
    tables: DeviceBuffer
    starts: DeviceBuffer
    decoding: int
    piece: int
    spans: Spans

    def parts(self) -> Iterator[PagedRows]:
        """The texts, then the pieces, where there are any."""
        count = self.tables.shape[0]
        for first, stop, row, length in (
            (0, self.decoding, 0, 1), (self.decoding, count, self.decoding, self.piece)
        ):  # fmt: skip
            if first < stop:
                tables, starts = self.tables.slice(0, first, stop), self.starts.slice(0, first, stop)
                yield PagedRows(row, stop - first, length, tables, starts)


@dataclass(frozen=True)
class PagedRows:
    """B sequences of T rows each, from row `first` of a step on: see Paged."""

    first: int
    batch: int
    length: int
    tables: DeviceBuffer  # (B, L) i32
    starts: DeviceBuffer  # (B) i32

    def of(self, buffer: DeviceBuffer) -> DeviceBuffer:
        """These rows of a buffer (N, ...), as (B, T, ...)."""
        return buffer.narrow(0, self.first, self.batch * self.length).unflatten(0, self.batch, self.length)


class Launch(Protocol):
    """A callable that runs an op, as a Launcher does, or records it, as a Recorder does."""

    def __call__(self, op: str, dtype: str, /, **args: DeviceBuffer | float) -> None: ...


class Layers(ABC):
    """The layers of one model. `launch` is called for each op; `dtype` is the model's."""

    def __init__(self, launch: Launch, weights: Mapping[str, DeviceBuffer], plan: ModelPlan, dtype: str) -> None:
        self._launch, self._weights, self._plan, self._dtype = launch, weights, plan, dtype
        self._config = plan.config
        self._scale = plan.config.head_size**-0.5  # of attention's scores

    def run(self, work: Workspace, batch: int, length: int, attend: Attend) -> bool:
        """Compute the last residual stream `work.x` (N, C) from the tokens, one chunk of sequences after the other.

        Returns True if `work.normed` already holds its final norm."""
        first, ready = 0, False
        for count in self._plan.chunk_sizes(batch, length):
            chunk = work.chunk(first * length, count * length)
            ready = self._chunk(chunk, count * length, partial(attend, first))
            first += count
        return ready

    def launch(self, op: str, **args: DeviceBuffer | float) -> None:
        """Launch one op in the model's dtype for it."""
        self._launch(op, ops()[op].dtype_in(self._dtype), **args)

    def next_token(
        self, logits: DeviceBuffer, parts: tuple[DeviceBuffer, DeviceBuffer], tokens: DeviceBuffer,
        positions: DeviceBuffer,
    ) -> None:  # fmt: skip
        """Write the likeliest token of each row of logits (M, V) to `tokens` (M), and add 1 to `positions` (M)."""
        values, indices = parts
        self.launch("argmax_parts", x=logits, values=values, indices=indices)
        self.choose(parts, tokens, positions)

    def choose(
        self, parts: tuple[DeviceBuffer, DeviceBuffer], tokens: DeviceBuffer, positions: DeviceBuffer
    ) -> None:  # fmt: skip
        """The same of what is known of the parts of a row: the largest value of each, and its index, each (M, Z)."""
        values, indices = parts
        self.launch("next_token", values=values, indices=indices, tokens=tokens, positions=positions)

    @abstractmethod
    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        """Runs a chunk through all layers. Returns True if `work.normed` then holds the final norm."""

    @abstractmethod
    def logits(self, x: DeviceBuffer, normed: DeviceBuffer, out: DeviceBuffer, *, ready: bool) -> None:
        """Apply the final norm (unless `normed` is `ready`) and the output weights: (M, C) -> (M, padded V)."""

    def all_logits(self, work: Workspace, out: DeviceBuffer, *, ready: bool) -> None:
        """The same of every row of the residual stream."""
        self.logits(work.x, work.normed, out, ready=ready)

    @abstractmethod
    def attend(self, layer: int, work: Workspace, starts: DeviceBuffer, length: int) -> None:
        """Attention of whole sequences of T tokens. `starts` (B): zeros."""

    @abstractmethod
    def attend_cached(
        self, layer: int, work: Workspace, cached: Cached | CachedF8, starts: DeviceBuffer, length: int, end: int
    ) -> None:
        """The same of T tokens behind those of a cache, which they are appended to: each sequence has `end` then."""

    @abstractmethod
    def attend_one(self, layer: int, work: Workspace, cached: Cached | CachedF8, spans: Spans | None) -> Spans | None:
        """The same of one token of each sequence, at its own position. Returns the spans that are not merged yet: the
        product behind merges them itself, where the plan says so."""

    def seen(self, work: Workspace, cached: Cached | CachedF8, end: int) -> Cached:
        """The first `end` positions of a cache as attention takes them, (B, S, G, D) each: those in 8 bits are
        widened."""
        if isinstance(cached, Cached):
            return Cached(*(both.slice(1, 0, end) for both in cached))
        shape = (cached.keys.shape[0], end, *cached.keys.shape[2:])
        k, v = (work.widened.select(0, part).narrow(0, 0, shape[0] * end).reshape(*shape) for part in range(2))
        self.launch("kv_from_f8", **cached.until(end).named(), k=k, v=v)
        return Cached(k, v)

    def attend_in_f8(self, q: DeviceBuffer, work: Workspace, cached: CachedF8, spans: Spans | None) -> Spans | None:
        """Attention of one token of each sequence, whose queries are (B, G, Q, D), over a cache in 8 bits. Returns the
        same."""
        assert spans is not None, "such a cache is always read in spans"
        partial, stats = (both.unflatten(1, q.shape[1], q.shape[2]) for both in spans)  # (B, G, Q, Z, ...)
        self.launch(
            "grouped_decode_attention_f8", q=q, **cached.named(), positions=work.positions, partial=partial,
            stats=stats, scale=self._scale,
        )  # fmt: skip
        return self.merge(work, spans)

    def merge(self, work: Workspace, spans: Spans) -> Spans | None:
        """Merges what attention made of the spans of a cache, or returns them, for the product behind it."""
        batch, _, count, _ = spans[0].shape
        if self._plan.merges_in_product(batch, count):
            return spans
        out = work.attended.reshape(-1, self._config.n_head, self._config.head_size)  # (B, H, D)
        self.launch("merge_attention", partial=spans[0], stats=spans[1], out=out)
        return None

    def attend_paged(self, layer: int, work: Workspace, paged: Paged) -> None:
        """The same of the rows of a step over a cache in pages."""
        config = self._config
        sizes = config.kv_heads, config.group, config.head_size
        for rows in paged.parts():
            keys, values = paged.cached(layer)
            q = self.append_to_pages(layer, rows.of(work.qkv), Cached(keys, values), rows)  # (B, T, G, Q, D)
            out = rows.of(work.attended)  # (B, T, G Q D)
            seen: dict[str, DeviceBuffer | float] = {
                "q": q, "k_cache": keys, "v_cache": values, "positions": rows.starts, "tables": rows.tables,
                "scale": self._scale,
            }  # fmt: skip
            if rows.length > 1:
                self.launch("paged_attention", **seen, out=out.unflatten(2, *sizes))
                continue
            partial, stats = paged.spans  # (B, H, Z, ...)
            by_head = [both.unflatten(1, *sizes[:2]) for both in (partial, stats)]  # (B, G, Q, Z, ...)
            self.launch("paged_decode_attention", **seen, partial=by_head[0], stats=by_head[1])
            heads = out.select(1, 0).unflatten(1, config.n_head, config.head_size)  # (B, H, D)
            self.launch("merge_attention", partial=partial, stats=stats, out=heads)

    @abstractmethod
    def append_to_pages(self, layer: int, qkv: DeviceBuffer, pages: Cached, rows: PagedRows) -> DeviceBuffer:
        """Appends the keys and values of some rows, qkv (B, T, ...), to pages, at their positions. Returns the queries
        (B, T, G, Q, D)."""
