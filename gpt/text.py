"""Texts while a model writes them: prompts in, pieces of text out, up to a stop string."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from toolchain.errors import UsageError

from .config import GPTConfig
from .generate import generate_batch, room
from .parallel import AnyGPT
from .sampling import Sampling
from .tokens.tokenizer import Tokenizer


class Until:
    """Passes on a text that comes in pieces, up to the stop string that is complete first, which is left out. What may
    turn out to be the beginning of one is held back. `found`: whether one has come."""

    def __init__(self, stops: Sequence[str]) -> None:
        """Raises UsageError for an empty stop string."""
        if "" in stops:
            raise UsageError("a stop string is empty: every text has it at its start")
        self._stops, self._held, self.found = stops, "", False

    def push(self, piece: str) -> str:
        """What can be shown once the text goes on with `piece`."""
        if self.found:
            return ""
        text = self._held + piece
        places = [(place + len(stop), place) for stop in self._stops if (place := text.find(stop)) >= 0]
        if places:
            self.found, self._held = True, ""
            return text[: min(places)[1]]
        kept = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def end(self) -> str:
        """What was held back, once it is known that nothing follows."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` that `stop` begins with."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)


@dataclass(frozen=True)
class Request:
    """Prompts to continue, as text and as tokens. `count`: the most new tokens of each. `stop`: strings that end a
    text."""

    prompts: Sequence[str]
    tokens: Sequence[Sequence[int]]
    count: int
    sampling: Sampling = field(default_factory=Sampling)
    stop: Sequence[str] = ()

    @classmethod
    def of(
        cls, config: GPTConfig, tokenizer: Tokenizer, prompts: Sequence[str], *, max_new_tokens: int | None = None,
        sampling: Sampling | None = None, stop: Sequence[str] = (),
    ) -> Request:  # fmt: skip
        """Checks everything before a model is loaded. Raises UsageError for a prompt that is empty, not UTF-8 or too
        long for the context, and for an empty stop string."""
        Until(stop)
        tokens = [tokenizer.encode(prompt) for prompt in prompts]
        return cls(prompts, tokens, room(config, tokens, max_new_tokens), sampling or Sampling(), stop)

    @classmethod
    def answer(
        cls, config: GPTConfig, tokens: Sequence[int], *, max_new_tokens: int | None = None,
        sampling: Sampling | None = None, stop: Sequence[str] = (),
    ) -> Request:  # fmt: skip
        """The answer to a conversation's tokens: see `gpt.tokens.chat`. Checks and raises as `of` does."""
        Until(stop)
        return cls([""], [tokens], room(config, [tokens], max_new_tokens), sampling or Sampling(), stop)


class Writer:
    """Continues the prompts of a request: an iterator over steps, each the new piece of every text, which may be empty.
    `tokens`: how many new ones there are so far. `ended`: whether each text has all its pieces."""

    def __init__(self, model: AnyGPT, tokenizer: Tokenizer, request: Request) -> None:
        self.tokens = 0
        self.ended = [False] * len(request.prompts)
        self._decoders = [tokenizer.decoder() for _ in request.prompts]
        self._untils = [Until(request.stop) for _ in request.prompts]
        self._steps = generate_batch(
            model, request.tokens, max_new_tokens=request.count, sampling=request.sampling,
            stop={tokenizer.end_of_text},
        )  # fmt: skip

    def __iter__(self) -> Iterator[list[str]]:
        for drawn in self._steps:
            yield [self._piece(index, token) for index, token in enumerate(drawn)]
            if all(self.ended):
                return
        yield [self._piece(index, None) for index in range(len(self.ended))]

    def _piece(self, index: int, token: int | None) -> str:
        """What a token adds to a text. None: the text has ended, so what was held back comes now."""
        if self.ended[index]:
            return ""
        until, decoder = self._untils[index], self._decoders[index]
        self.tokens += token is not None
        self.ended[index] = token is None
        piece = until.push(decoder.end() if token is None else decoder.push(token))
        if until.found:
            self.ended[index] = True
        return piece + until.end() if self.ended[index] else piece
