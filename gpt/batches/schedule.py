"""Decides what each step of a changing batch computes: which texts read a piece of their prompt, which are continued by
a token, and who has which pages. It only counts: nothing here knows a model.

Texts run in the order in which they came. A step continues every text that has its prompt behind it, and beside them
reads pieces of the prompts. A text takes pages as it grows. Where none is free, the text that came last gives all of
its pages back and begins again later, with the tokens that it has by then: so the first one always goes on, and
everything ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolchain.errors import UsageError

from .pages import PAGE, PIECE, Pages, pages_for


@dataclass(eq=False)
class Text:
    """A text that is continued. `tokens`: those that it has. `end`: it ends once it has so many. `cached`: how many of
    its tokens have their keys and values in `pages`."""

    number: int
    tokens: list[int]
    end: int
    cached: int = 0
    pages: list[int] = field(default_factory=list[int])

    @property
    def left(self) -> int:
        """Tokens whose keys and values are still to be computed. Behind the last of them comes a new token."""
        return len(self.tokens) - self.cached


@dataclass(frozen=True)
class Piece:
    """Tokens first .. first + count of a text, at most PIECE of them. `last`: the text has no tokens behind them."""

    text: Text
    first: int
    count: int

    @property
    def last(self) -> bool:
        return self.first + self.count == len(self.text.tokens)


@dataclass(frozen=True)
class Step:
    """What one step computes. `decoding`: texts of which only the last token is left."""

    decoding: Sequence[Text]
    pieces: Sequence[Piece]

    @property
    def drawing(self) -> list[Text]:
        """The texts that get a new token, first those of `decoding`."""
        return [*self.decoding, *(piece.text for piece in self.pieces if piece.last)]

    @property
    def longest(self) -> int:
        """The most pages that a text of this step has."""
        texts = [*self.decoding, *(piece.text for piece in self.pieces)]
        return max((len(text.pages) for text in texts), default=0)


class Schedule:
    """`texts`: how many run at the same time. `pieces`: the most pieces of prompts in a step. `positions`: the most of
    a text."""

    def __init__(self, pages: Pages, *, texts: int, pieces: int, positions: int) -> None:
        self.pages, self.positions = pages, positions
        self._texts, self._pieces = texts, pieces
        self._waiting: deque[Text] = deque()
        self._running: list[Text] = []  # in the order in which they came
        self._count = 0

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._running)

    @property
    def running(self) -> int:
        """How many texts run."""
        return len(self._running)

    def add(self, tokens: Sequence[int], count: int) -> Text:
        """A text that is to be continued by `count` tokens. Raises UsageError for one that is empty, that is to be
        continued by nothing, or that cannot fit."""
        if not tokens:
            raise UsageError("nothing to continue: the prompt is empty")
        if count < 1:
            raise UsageError(f"max_new_tokens is {count}: a text is continued by at least 1")
        room = min(self.positions, self.pages.count * PAGE)
        if len(tokens) + count > room:
            raise UsageError(
                f"{len(tokens)} tokens and {count} new ones are more than the {room} that one text may have",
                hint="shorten the prompt, or ask for fewer",
            )
        text = Text(self._count, list(tokens), len(tokens) + count)
        self._count += 1
        self._waiting.append(text)
        return text

    def next(self) -> Step:
        """What to compute now; its tokens count as cached from here on. Each text of `drawing` then takes its new token
        with `push`."""
        self._admit()
        decoding: list[Text] = []
        for text in list(self._running):
            if text.left == 1 and text in self._running and self._grow(text, len(text.tokens)):
                decoding.append(text)
        pieces: list[Piece] = []
        for text in list(self._running):
            if text.left > 1 and text in self._running:
                pieces += self._pieces_of(text, self._pieces - len(pieces))
        decoding = [text for text in decoding if text.pages]  # a text behind it may have needed its pages
        for text in decoding:
            text.cached += 1
        for piece in pieces:
            piece.text.cached += piece.count
        return Step(decoding, pieces)

    def push(self, text: Text, token: int, *, over: bool = False) -> bool:
        """Append a text's new token. True if it has ended with it, because it is as long as it may be or `over`: then
        its pages are free."""
        text.tokens.append(token)
        if over or len(text.tokens) >= text.end:
            self.remove(text)
            return True
        return False

    def remove(self, text: Text) -> None:
        """End a text, whether it runs or waits. One that has ended already stays so."""
        if text in self._running:
            self._running.remove(text)
        elif text in self._waiting:
            self._waiting.remove(text)
        self._free(text)

    def _admit(self) -> None:
        """Let texts in while there is room for all of their prompts."""
        free = self.pages.free - sum(map(_lacks, self._running))
        while self._waiting and len(self._running) < self._texts:
            free -= _lacks(self._waiting[0])
            if self._running and free < 0:
                return
            self._running.append(self._waiting.popleft())

    def _pieces_of(self, text: Text, most: int) -> list[Piece]:
        pieces: list[Piece] = []
        first = text.cached
        while len(pieces) < most and first < len(text.tokens):
            count = min(PIECE, len(text.tokens) - first)
            if not self._grow(text, first + count):
                return []
            pieces.append(Piece(text, first, count))
            first += count
        return pieces

    def _grow(self, text: Text, positions: int) -> bool:
        """Gives a text pages for so many positions, if need be those of the texts that came last. False if it had to
        give back its own."""
        while (missing := pages_for(positions) - len(text.pages)) > self.pages.free:
            youngest = self._running[-1]
            self._set_back(youngest)
            if youngest is text:
                return False
        text.pages += self.pages.take(max(missing, 0))
        return True

    def _set_back(self, text: Text) -> None:
        self._running.remove(text)
        self._free(text)
        text.cached = 0
        self._waiting.appendleft(text)

    def _free(self, text: Text) -> None:
        self.pages.give(text.pages)
        text.pages = []


def _lacks(text: Text) -> int:
    """The pages that a text needs for the tokens that it has and a new one."""
    return max(pages_for(len(text.tokens) + 1) - len(text.pages), 0)
