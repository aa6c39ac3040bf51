"""A cache of keys and values in pages, and the steps over it: memory follows the texts, which take pages from one pool.

B texts that are continued by a token, P pieces of prompts of PIECE rows, N = B + P PIECE rows, L pages of a text at
most, C = n_embd, H heads, V tokens in the vocabulary, Z spans of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.contract.expressions import cdiv
from toolchain.contract.op import ITEMSIZE
from toolchain.errors import UsageError

from ..graphs import ready
from ..model import GPT
from ..passes.layers import Cached, Paged
from ..passes.workspace import Workspace
from ..sampling import check_finite
from .pages import PAGE, PIECE, Pages
from .schedule import Step

SPAN = 256  # positions that one block of attention takes of a text
Array = NDArray[Any]


class PagedCache:
    """`pages` of PAGE positions each, for any texts, and behind them the few that rows without a text write to."""

    def __init__(self, model: GPT, pages: int, *, texts: int, pieces: int) -> None:
        """`texts`, `pieces`: the most that a step has. Raises UsageError for no pages, and for a context that is
        shorter than one."""
        config = model.config
        if model.cache:
            raise UsageError(
                f"a cache in {model.cache} has no pages", hint="texts of one batch take it; or leave it out"
            )
        if pages < 1 or config.n_ctx < PAGE:
            raise UsageError(f"no cache of {pages} pages of {PAGE} positions for a context of {config.n_ctx}")
        self.pages, self.nobodys = Pages(pages), pages
        unused = cdiv(first_behind(texts) + pieces * PIECE, PAGE)
        shape = (config.n_layer, 2, pages + unused, PAGE, config.kv_heads, config.head_size)
        self.memory = model.executor.empty(shape, model.storage)
        self.memory.fill(0)

    def layer(self, index: int) -> Cached:
        """Keys and values of one layer, each (R, PAGE, G, D)."""
        both = self.memory.select(0, index)
        return Cached(both.select(0, 0), both.select(0, 1))


def page_bytes(model: GPT) -> int:
    """Bytes of a page in all layers."""
    config = model.config
    return config.n_layer * 2 * PAGE * config.kv_heads * config.head_size * ITEMSIZE[model.storage]


class PagedStep:
    """A step of up to B texts and P pieces, texts of up to L pages: captured once, and run with any that fit. `logits`
    (B, V): of the texts that draw a token, in the order of `Step.drawing`. `graph`: as for `graphs.Forward`."""

    def __init__(
        self, model: GPT, cache: PagedCache, work: Workspace, texts: int, pieces: int, length: int, *,
        graph: bool = True,
    ) -> None:  # fmt: skip
        """`work`: of `rows_of(texts, pieces)` rows, which steps may share that do not run at the same time."""
        self._model, self._cache, self._texts, self._length = model, cache, texts, length
        config, empty = model.config, model.executor.empty
        sequences, rows = texts + pieces, rows_of(texts, pieces)
        sizes = (rows, rows, texts, texts, sequences, sequences * length)
        self._ints = empty((sum(sizes),), "i32")  # all that the host says to a step, in one copy
        self._host = np.zeros(sum(sizes), np.int32)
        stops = np.cumsum(sizes).tolist()
        views = [self._ints.slice(0, stop - size, stop) for size, stop in zip(sizes, stops, strict=True)]
        tokens, positions, last, self._next, starts, tables = views
        hosts = np.split(self._host, stops[:-1])
        self._tokens, self._positions, self._last, _, self._starts, flat = hosts
        self._tables = flat.reshape(sequences, length)
        work = replace(work, tokens=tokens, positions=positions)
        spans = cdiv(length * PAGE, SPAN)
        room = [empty((texts, config.n_head, spans, size), "f32") for size in (config.head_size, 2)]
        paged = Paged(
            cache.layer, tables.reshape(sequences, length), starts, texts, PIECE, (room[0], room[1])
        )  # fmt: skip
        ends = empty((texts, config.n_embd), model.storage), empty((texts, config.n_embd), model.storage)
        out, parts = model.new_logits(texts), model.new_parts(texts)
        self.logits, (self._largest, _) = model.visible(out), parts
        counted = empty((texts,), "i32")  # next_token also counts positions, which the host does here
        counted.fill(0)

        def launch() -> None:
            model.passes.paged(work, paged, last, ends, out)
            model.passes.next_token(self.logits, parts, self._next, counted)

        self._fill(Step([], []))
        self._ints.copy_from(self._host)
        self._run = ready(model, launch, graph=graph)

    def run(self, step: Step) -> None:
        """Starts a step. Raises UsageError if it does not fit."""
        self._fill(step)
        self._ints.copy_from(self._host)
        self._run()

    def likeliest(self, count: int) -> Sequence[int]:
        """The likeliest token of the first `count` texts that draw. Raises ConformanceError if one of their logits is
        NaN or positive infinity."""
        check_finite(self._largest.numpy()[:count])
        return self._next.numpy()[:count].tolist()

    def _fill(self, step: Step) -> None:
        self._nobodys()
        texts, count = step.decoding, len(step.decoding)
        self._tokens[:count] = [text.tokens[-1] for text in texts]
        self._positions[:count] = self._starts[:count] = [text.cached - 1 for text in texts]
        ends = list(range(count))
        for index, piece in enumerate(step.pieces):
            row, stop = self._texts + index * PIECE, piece.first + piece.count
            self._tokens[row : row + piece.count] = piece.text.tokens[piece.first : stop]
            self._positions[row : row + piece.count] = range(piece.first, stop)
            self._starts[self._texts + index] = piece.first
            if piece.last:
                ends.append(row + piece.count - 1)
        for index, text in enumerate(texts):  # behind its own pages none is asked for
            self._tables[index, : len(text.pages)] = text.pages
        own: dict[int, Array] = {}  # of texts with several pieces
        for index, piece in enumerate(step.pieces, self._texts):
            pages = own.get(piece.text.number)
            if pages is None:
                pages = own[piece.text.number] = np.array(piece.text.pages, np.int32)
            self._tables[index, : len(pages)] = pages
        self._last[: len(ends)] = ends

    def _nobodys(self) -> None:
        """Each sequence without a text writes to a place of its own, in pages that no text has."""
        self._tokens[:], self._positions[:], self._last[:], self._tables[:] = 0, 0, 0, 0
        pieces = np.arange(len(self._starts) - self._texts, dtype=np.int32)
        places = np.concatenate([np.arange(self._texts, dtype=np.int32), first_behind(self._texts) + pieces * PIECE])
        self._starts[:] = places % PAGE
        self._tables[:, 0] = self._cache.nobodys + places // PAGE


def rows_of(texts: int, pieces: int) -> int:
    """The rows of a step."""
    return texts + pieces * PIECE


def first_behind(rows: int) -> int:
    """The first multiple of PIECE behind so many rows: a piece lies in one page."""
    return cdiv(rows, PIECE) * PIECE
