"""Many prompts on one model: each is continued as there is room for it, and its text comes once it has ended."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from toolchain.errors import UsageError

from ..generate import room
from ..model import GPT
from ..parallel import AnyGPT
from ..sampling import Sampling
from ..text import Until
from ..tokens.tokenizer import Decoder, Tokenizer
from .batching import MOST_TEXTS, PIECES, Batching
from .paged_cache import page_bytes
from .pages import pages_for

MOST_BYTES = 4 << 30  # of the cache, unless one text needs more


@dataclass(frozen=True)
class Answer:
    """What became of the prompt with this index: its continuation, or why there is none. `tokens`: how many are new."""

    index: int
    text: str = ""
    error: UsageError | None = None
    tokens: int = 0


@dataclass
class _Growing:
    """A text so far."""

    index: int
    decoder: Decoder
    until: Until
    text: str = ""
    tokens: int = 0


class Many:
    """Continues prompts, by at most `count` tokens each (None: see `generate.room`), up to a string of `stop`. Raises
    UsageError at once for what is wrong with all of them; a prompt that is empty, not UTF-8 or too long is an answer,
    and the others go on."""

    def __init__(
        self, tokenizer: Tokenizer, prompts: Sequence[str], *, count: int | None, sampling: Sampling,
        stop: Collection[str],
    ) -> None:  # fmt: skip
        Until(list(stop))
        if not prompts:
            raise UsageError("nothing to continue: there is no prompt")
        if count is not None and count < 1:
            raise UsageError(f"max_new_tokens is {count}: a text is continued by at least 1")
        self._tokenizer, self._count, self._sampling, self._stop = tokenizer, count, sampling, list(stop)
        self._prompts = prompts

    @property
    def together(self) -> int:
        """How many run at the same time, at most."""
        return min(len(self._prompts), MOST_TEXTS)

    def answers(self, model: GPT) -> Iterator[Answer]:
        """The answers as they come: those that end first, first."""
        refused: list[Answer] = []
        texts: dict[int, tuple[list[int], int]] = {}
        for index, prompt in enumerate(self._prompts):
            try:
                tokens = self._tokenizer.encode(prompt)
                texts[index] = tokens, room(model.config, [tokens], self._count)
            except UsageError as error:
                refused.append(Answer(index, error=error))
        yield from refused
        if texts:
            yield from self._continued(model, texts)

    def _continued(self, model: GPT, texts: dict[int, tuple[list[int], int]]) -> Iterator[Answer]:
        sizes = [len(tokens) + count for tokens, count in texts.values()]
        batching = Batching(model, texts=self.together, pages=pages_of(model, sizes, self.together))
        growing: dict[int, _Growing] = {}
        for index, (tokens, count) in texts.items():
            try:
                number = batching.add(tokens, count, self._sampling, {self._tokenizer.end_of_text})
            except UsageError as error:
                yield Answer(index, error=error)
            else:
                growing[number] = _Growing(index, self._tokenizer.decoder(), Until(self._stop))
        while batching.busy:
            for drawn in batching.step():
                text = growing[drawn.text]
                if drawn.token is not None:
                    text.tokens += 1
                    text.text += text.until.push(text.decoder.push(drawn.token))
                if text.until.found and not drawn.ended:
                    batching.cancel(drawn.text)
                if text.until.found or drawn.ended:
                    text.text += text.until.push(text.decoder.end()) + text.until.end()
                    yield Answer(text.index, text.text, tokens=text.tokens)


def on_one(model: AnyGPT, what: str = "many prompts are continued") -> GPT:
    """The model, if it is one that does `what`. Raises UsageError for one that several devices share."""
    if not isinstance(model, GPT):
        raise UsageError(f"{what} on one device", hint="leave out the number of devices")
    return model


def warm(model: AnyGPT, texts: int) -> None:
    """Launches what so many prompts may launch, once and without a text."""
    Batching(on_one(model), texts=texts, pages=1, graph=False).warm(texts, PIECES, 1)


def pages_of(model: GPT, sizes: Sequence[int], together: int) -> int:
    """The pages that so many of the longest texts take, or MOST_BYTES of them, but those of the longest text."""
    needed = sorted(map(pages_for, sizes), reverse=True)[:together]
    return max(needed[0], min(sum(needed), MOST_BYTES // page_bytes(model)))
