"""A mixed load: requests of many lengths, which come at random times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LONGEST, MOST_NEW = 4096, 256  # tokens of a prompt, and new ones


@dataclass(frozen=True)
class Arrival:
    """A request: its prompt, how many tokens it is continued by, and when it comes, in seconds."""

    tokens: Sequence[int]
    count: int
    at_s: float


def mixed(count: int, rate: float, vocabulary: int, *, longest: int = LONGEST, seed: int = 0) -> list[Arrival]:
    """`count` requests, `rate` of them a second on average, as independent users send them (a Poisson process); all at
    once if it is infinite. Prompts have from 1 to `longest` tokens and answers from 1 to MOST_NEW, each octave of
    lengths as often as another. The prompts of a seed are the same at each rate."""
    rng = np.random.default_rng(seed)
    waits = rng.exponential(1.0, count)
    prompts, answers = (_lengths(rng, count, most) for most in (longest, MOST_NEW))
    times = np.cumsum(waits) / rate
    return [
        Arrival(rng.integers(0, vocabulary, prompt).tolist(), answer, at)
        for prompt, answer, at in zip(prompts, answers, times.tolist(), strict=True)
    ]


def _lengths(rng: np.random.Generator, count: int, most: int) -> list[int]:
    """The shortest and the longest are among them."""
    lengths = np.exp(rng.uniform(0, np.log(most + 1), count)).astype(int)
    lengths[:1], lengths[-1:] = 1, most
    return lengths.tolist()
