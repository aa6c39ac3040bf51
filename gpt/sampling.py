"""How the next token is drawn from a model's logits."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import ConformanceError, UsageError

# Probabilities that lack no more than this of top_p reach it: 8 of 10 equal ones add up to 0.7999999999999999. It is
# far above the rounding of such a sum, and far below what logits can tell.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Sampling:
    """`temperature` 0 takes the likeliest token. `top_k`: only the k likeliest; `top_p`: only the likeliest that
    together reach this probability. `repetition_penalty`: the logits of tokens that the text has already are divided
    by it if they are positive, else multiplied (Keskar et al., CTRL, arXiv:1909.05858, section 4.1). Raises UsageError
    for values that make no sense."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"seed is {self.seed}: it cannot be negative")
        if not 0 <= self.temperature < np.inf:
            raise UsageError(f"temperature is {self.temperature}: it must be 0 (greedy) or above")
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"top_k is {self.top_k}: it must be at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError(f"top_p is {self.top_p}: it must be above 0 and at most 1")
        if not 0 < self.repetition_penalty < np.inf:
            raise UsageError(f"repetition_penalty is {self.repetition_penalty}: it must be above 0; 1 is none")

    @property
    def on_device(self) -> bool:
        """True if the device can choose the token: it takes the likeliest, whatever the text has already."""
        return self.temperature == 0 and self.repetition_penalty == 1

    def draw(self, logits: NDArray[Any], rng: np.random.Generator, seen: Collection[int]) -> int:
        """One token from logits (V,), after the tokens `seen`. Raises ConformanceError for logits that are not
        finite."""
        if self.repetition_penalty != 1:
            logits = penalized(logits, seen, self.repetition_penalty)
        if self.temperature == 0:
            check_finite(logits)
            return int(logits.argmax())
        return sample(logits, rng, self.temperature, self.top_k, self.top_p)


def penalized(logits: NDArray[Any], seen: Collection[int], penalty: float) -> NDArray[np.float64]:
    """A copy of logits (V,) in which those of the tokens `seen` are lower if `penalty` is above 1."""
    found = logits.astype(np.float64)
    tokens = np.fromiter(set(seen), np.int64)
    values = found[tokens]
    found[tokens] = np.where(values > 0, values / penalty, values * penalty)
    return found


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
    if top_p is not None and top_p < 1:  # the fewest that reach it; the one that reaches it is the last
        reached = np.cumsum(weights)
        kept = int(np.searchsorted(reached, (top_p - ROUNDING) * reached[-1])) + 1
        order, weights = order[:kept], weights[:kept]
    return int(rng.choice(order, p=weights / weights.sum()))


def check_finite(logits: NDArray[Any]) -> None:
    """Raises ConformanceError if one of the logits is not finite."""
    if not np.isfinite(logits).all():
        raise ConformanceError(
            "the model's logits hold NaN or infinity: no token can be drawn from them",
            hint="f16 overflows above 65504: try bf16 or f32; if those fail too, run `tilestack matrix run`",
        )
