"""Continue a text token by token, greedily or by sampling, with a key-value cache."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import ConformanceError, UsageError

from .config import GPTConfig
from .graphs import Decode
from .model import GPT, KVCache


def generate(
    model: GPT,
    tokens: Sequence[int] | NDArray[np.integer[Any]],
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    stop: Collection[int] = (),
) -> Iterator[int]:
    """Yield new tokens until there are `max_new_tokens`, or until the model chooses one of `stop`, which is not
    yielded.

    `temperature` 0 is greedy. `top_k`: only the k likeliest; `top_p`: only the likeliest that together reach this
    probability. Raises UsageError at once for values that make no sense, before anything is launched.
    """
    prompt = check(model.config, tokens, max_new_tokens, temperature, top_k, top_p, seed)
    return _generate(model, prompt, max_new_tokens, temperature, top_k, top_p, np.random.default_rng(seed), stop)


def check(
    config: GPTConfig,
    tokens: Sequence[int] | NDArray[np.integer[Any]],
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
) -> NDArray[np.integer[Any]]:
    """The text as tokens (1, T). Raises UsageError for arguments that `generate` refuses. It needs no model, so a
    caller can check before it loads one."""
    prompt = np.atleast_2d(tokens)  # (1, T)
    if prompt.ndim > 2 or len(prompt) > 1:
        raise UsageError(
            f"generate continues one text; tokens of shape {list(prompt.shape)} are several",
            hint="see KVCache for a batch",
        )
    if seed < 0:
        raise UsageError(f"seed is {seed}: it cannot be negative")
    if max_new_tokens < 0:
        raise UsageError(f"max_new_tokens is {max_new_tokens}: it cannot be negative")
    if not 0 <= temperature < np.inf:
        raise UsageError(f"temperature is {temperature}: it must be 0 (greedy) or above")
    if top_k is not None and top_k < 1:
        raise UsageError(f"top_k is {top_k}: it must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise UsageError(f"top_p is {top_p}: it must be above 0 and at most 1")
    if prompt.size == 0:
        raise UsageError("nothing to continue: the prompt is empty")
    if prompt.size + max_new_tokens > config.n_ctx:
        raise UsageError(
            f"{prompt.size} tokens and {max_new_tokens} new ones are more than the context of {config.n_ctx}",
            hint="shorten the prompt or ask for fewer tokens",
        )
    return prompt


def _generate(
    model: GPT,
    prompt: NDArray[np.integer[Any]],
    count: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    rng: np.random.Generator,
    stop: Collection[int],
) -> Iterator[int]:
    if count == 0:
        return
    cache = KVCache(model, batch=1, positions=prompt.size + count)
    logits = model.prefill(prompt, cache)  # (1, V)
    greedy = temperature == 0
    if greedy:
        check_finite(logits.numpy())
        token = int(model.argmax(logits)[0])
    else:
        token = sample(logits.numpy()[0], rng, temperature, top_k, top_p)
    decode: Decode | None = None
    for index in range(count):
        if token in stop:
            return
        yield token
        if index + 1 == count:
            return
        if decode is None:
            decode = Decode(model, cache)
        if index == 0 or not greedy:  # a greedy step leaves its token on the device, where the next step reads it
            decode.reset(np.array([token], np.int32))
        decode.run()
        if greedy:
            check_finite(decode.logits.numpy())  # with NaN among the logits, the device's token means nothing
            token = int(decode.tokens.numpy()[0])
        else:
            token = sample(decode.logits.numpy()[0], rng, temperature, top_k, top_p)


def sample(
    logits: NDArray[Any], rng: np.random.Generator, temperature: float, top_k: int | None, top_p: float | None
) -> int:
    """One token drawn from logits (V,). Raises ConformanceError if one of them is not finite."""
    check_finite(logits)
    exact = logits.astype(np.float64)
    order = np.argsort(-exact, kind="stable")  # likeliest first
    if top_k is not None:
        order = order[:top_k]
    with np.errstate(over="ignore"):  # a tiny temperature: the others are infinitely far below the first
        weights = np.exp((exact[order] - exact[order[0]]) / temperature)
    probabilities = weights / weights.sum()
    if top_p is not None:
        # the fewest that reach top_p: a token is kept if those before it do not reach it
        kept = np.cumsum(probabilities) - probabilities < top_p
        order, probabilities = order[kept], probabilities[kept] / probabilities[kept].sum()
    return int(rng.choice(order, p=probabilities))


def check_finite(logits: NDArray[Any]) -> None:
    """Raises ConformanceError if one of the logits is not finite."""
    if not np.isfinite(logits).all():
        raise ConformanceError(
            "the model's logits hold NaN or infinity: no token can be drawn from them",
            hint="f16 overflows above 65504: try bf16 or f32; if those fail too, run `tilestack matrix run`",
        )
