"""Continue texts token by token, greedily or by sampling, with a key-value cache."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError

from .config import GPTConfig
from .graphs import Steps
from .parallel import AnyGPT, open_session
from .sampling import Sampling

DEFAULT_COUNT = 200  # new tokens where nobody says how many, if the context has room for them
Text = Sequence[int] | NDArray[np.integer[Any]]  # tokens (T,) or (1, T)


def generate(
    model: AnyGPT,
    tokens: Text,
    *,
    max_new_tokens: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition_penalty: float = 1.0,
    seed: int = 0,
    stop: Collection[int] = (),
) -> Iterator[int]:
    """Yield new tokens until there are `max_new_tokens` (see `room`), or until the model chooses one of `stop` or of
    its config's `end_tokens`, which is not yielded. The other options: see `Sampling`. Raises UsageError at once for
    values that make no sense, before anything is launched."""
    sampling = Sampling(temperature, top_k, top_p, repetition_penalty, seed)
    steps = generate_batch(model, [tokens], max_new_tokens=max_new_tokens, sampling=sampling, stop=stop)
    return (token for (token,) in steps if token is not None)


def generate_batch(
    model: AnyGPT,
    texts: Sequence[Text],
    *,
    max_new_tokens: int | None = None,
    sampling: Sampling | None = None,
    stop: Collection[int] = (),
) -> Iterator[list[int | None]]:
    """Continue several texts at once, of any lengths. Yields the next token of each text, None for one that has ended
    with a token of `stop` or of the config's `end_tokens`, until all have. Each text draws with a generator of its own,
    so it does not depend on its neighbours. Raises UsageError at once."""
    count = room(model.config, texts, max_new_tokens)
    ends = {*stop, *model.config.end_tokens}
    return _generate(model, [as_tokens(text) for text in texts], count, sampling or Sampling(), ends)


def as_tokens(text: Text) -> NDArray[np.integer[Any]]:
    """A text as tokens (1, T). Raises UsageError if it is empty or several texts."""
    tokens = np.atleast_2d(text)
    if tokens.ndim > 2 or len(tokens) > 1:
        raise UsageError(
            f"generate continues one text; tokens of shape {list(tokens.shape)} are several",
            hint="generate_batch continues several",
        )
    if tokens.size == 0:
        raise UsageError("nothing to continue: the prompt is empty")
    return tokens


def room(config: GPTConfig, texts: Sequence[Text], wanted: int | None = None) -> int:
    """How many tokens each of the texts is continued by: `wanted`, or by default DEFAULT_COUNT if the context has room
    for them behind the longest text, else as many as it has room for. It needs no model, so a caller can ask before it
    loads one. Raises UsageError for texts that `generate` refuses, and where there is no room."""
    if not texts:
        raise UsageError("nothing to continue: there is no prompt")
    if wanted is not None and wanted < 0:
        raise UsageError(f"max_new_tokens is {wanted}: it cannot be negative")
    longest = max(as_tokens(text).size for text in texts)
    free = config.n_ctx - longest
    if free < (1 if wanted is None else wanted):
        more = "one more is" if wanted is None else f"{wanted} new ones are"
        raise UsageError(
            f"{longest} tokens and {more} more than the context of {config.n_ctx}",
            hint="shorten the prompt"
            if wanted is None or free < 1
            else f"shorten the prompt or ask for at most {free}",
        )
    return min(DEFAULT_COUNT, free) if wanted is None else wanted


def _generate(
    model: AnyGPT, texts: Sequence[NDArray[np.integer[Any]]], count: int, sampling: Sampling, stop: Collection[int]
) -> Iterator[list[int | None]]:
    if count == 0:
        return
    session = open_session(model, len(texts), max(text.size for text in texts) + count)
    rngs = [np.random.default_rng(sampling.seed) for _ in texts]
    seen = [set(text.reshape(-1).tolist()) for text in texts]
    ended = [False] * len(texts)

    def draw(index: int, logits: NDArray[Any]) -> int:
        if ended[index]:
            return 0
        token = sampling.draw(logits, rngs[index], seen[index])
        seen[index].add(token)
        return token

    drawn: list[int] = []
    for index, text in enumerate(texts):
        prompted = session.prefill(index, text)
        if sampling.on_device:
            drawn.append(int(prompted.likeliest()[0]))
        else:
            drawn.append(draw(index, prompted.numpy()[0]))  # (V,)
    decode: Steps | None = None
    for step in range(count):
        ended = [over or token in stop for over, token in zip(ended, drawn, strict=True)]
        if all(ended):
            return
        yield [None if over else token for over, token in zip(ended, drawn, strict=True)]
        if step + 1 == count:
            return
        if decode is None:
            decode = session.steps()
            decode.reset(np.array(drawn, np.int32))
        elif not sampling.on_device:  # a greedy step leaves its tokens where the next one reads them
            decode.feed(np.array(drawn, np.int32))
        decode.run()
        if sampling.on_device:
            drawn = decode.likeliest().tolist()
        else:
            drawn = [draw(index, row) for index, row in enumerate(decode.logits.numpy())]  # (B, V)
