"""Continues texts that come and go (continuous batching): each step continues those that are there by a token, and
reads pieces of new prompts beside them. What a text becomes does not depend on its neighbours, but for the rounding of
kernels that are chosen by the number of rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from toolchain.errors import UsageError

from ..model import GPT
from ..passes.workspace import Workspace
from ..sampling import Sampling
from .paged_cache import PagedCache, PagedStep, rows_of
from .pages import PIECE, pages_for
from .schedule import Schedule, Step, Text

MOST_TEXTS = 256
PIECES = (0, 2, 8, 32)  # how many a captured step may have
SHORTEST = 8  # pages of a text, the fewest that a captured step may have; the others have 4, 16, ... times as many


@dataclass(frozen=True)
class Drawn:
    """A new token of a text, by its number. `ended`: it is the text's last one, or (`token` None) ended it."""

    text: int
    token: int | None
    ended: bool


@dataclass
class _Drawing:
    """How a text is continued."""

    text: Text
    sampling: Sampling
    rng: np.random.Generator
    stop: Collection[int]


class Batching:
    """`texts`: how many run at the same time, at most 256; more wait. `pages`: of the cache, by default as many as so
    many whole contexts take. `pieces`: of prompts that a step reads, PIECE tokens each. `graph`: as for
    `graphs.Forward`."""

    def __init__(
        self, model: GPT, *, texts: int = MOST_TEXTS, pages: int | None = None, pieces: int = PIECES[-1],
        graph: bool = True,
    ) -> None:  # fmt: skip
        """Raises UsageError for sizes that make no sense."""
        if not 1 <= texts <= MOST_TEXTS or pieces not in PIECES[1:]:
            raise UsageError(f"{texts} texts and {pieces} pieces: 1 to {MOST_TEXTS}, and one of {PIECES[1:]}")
        self._model, self._graph = model, graph
        positions = model.config.n_ctx // PIECE * PIECE  # whole pieces
        pages = texts * pages_for(positions) if pages is None else pages
        self.cache = PagedCache(model, pages, texts=_power(texts, 1), pieces=pieces)
        self.schedule = Schedule(self.cache.pages, texts=texts, pieces=pieces, positions=positions)
        self.steps: dict[tuple[int, int, int], PagedStep] = {}
        self._workspaces: dict[int, Workspace] = {}  # by rows
        self._drawing: dict[int, _Drawing] = {}

    def add(
        self, tokens: Sequence[int], count: int, sampling: Sampling | None = None, stop: Collection[int] = ()
    ) -> int:
        """A text to continue by at most `count` tokens, until one of `stop` or of the config's `end_tokens`. Returns
        its number. Raises UsageError for one that is empty, too long, or not of this vocabulary: the others go on."""
        if tokens:
            self._model.check_tokens(np.array([tokens], np.int64))
        text = self.schedule.add(tokens, count)
        sampling = sampling or Sampling()
        rng = np.random.default_rng(sampling.seed)
        self._drawing[text.number] = _Drawing(text, sampling, rng, {*stop, *self._model.config.end_tokens})
        return text.number

    def cancel(self, number: int) -> None:
        """Ends a text at once: its pages are free. Raises UsageError for one that is not there, or has ended."""
        if number not in self._drawing:
            raise UsageError(f"text {number} is not there, or has ended")
        self.schedule.remove(self._drawing.pop(number).text)

    @property
    def busy(self) -> bool:
        return self.schedule.busy

    def step(self) -> list[Drawn]:
        """Computes one step, and returns the tokens that it drew."""
        todo = self.schedule.next()
        step = self._captured(*shape(len(todo.drawing), len(todo.pieces), todo.longest))
        step.run(todo)
        asked = [self._drawing[text.number] for text in todo.drawing]
        likeliest = step.likeliest(len(asked))
        if all(each.sampling.on_device for each in asked):
            return [self._push(each, token) for each, token in zip(asked, likeliest, strict=True)]
        logits = step.logits.slice(0, 0, len(asked)).numpy()  # (M, V)
        return [
            self._push(each, each.sampling.draw(row, each.rng, set(each.text.tokens)))
            for each, row in zip(asked, logits, strict=True)
        ]

    def warm(self, texts: int, pieces: Sequence[int], pages: int) -> None:
        """Captures and runs, without a text, the steps of all sizes up to these: so none is captured when it is first
        needed."""
        counts = {_power(count, 1) for count in range(1, texts + 1)}
        lengths = {shape(1, 0, length)[2] for length in range(1, pages + 1)}
        for count, some, length in product(sorted(counts), pieces, sorted(lengths)):
            self._captured(count, some, length).run(Step([], []))

    def _captured(self, texts: int, pieces: int, length: int) -> PagedStep:
        key = texts, pieces, length
        if key not in self.steps:
            rows = rows_of(texts, pieces)
            if rows not in self._workspaces:
                self._workspaces[rows] = self._model.new_workspace(rows, 1)
            self.steps[key] = PagedStep(self._model, self.cache, self._workspaces[rows], *key, graph=self._graph)
        return self.steps[key]

    def _push(self, drawing: _Drawing, token: int) -> Drawn:
        text = drawing.text
        stops = token in drawing.stop
        ended = self.schedule.push(text, token, over=stops)
        if ended:
            del self._drawing[text.number]
        return Drawn(text.number, None if stops else token, ended)


def shape(texts: int, pieces: int, length: int) -> tuple[int, int, int]:
    """The sizes of the captured step that is taken for so many texts, pieces, and pages of the longest text: there are
    few, so that each is captured soon."""
    return _power(texts, 1), next(most for most in PIECES if pieces <= most), _power(length, SHORTEST, 4)


def _power(count: int, first: int, factor: int = 2) -> int:
    """The first of `first`, `first` times `factor`, and so on, that is not below `count`."""
    while first < count:
        first *= factor
    return first
