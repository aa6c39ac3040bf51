"""How much worse one model predicts a text than another: perplexities, of logits that whoever asks computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError

AT_ONCE = 8  # pieces in a forward pass
PIECES = 32  # each as long as the context


def pieces(tokens: Sequence[int], length: int, count: int = PIECES, seed: int = 0) -> NDArray[np.int32]:
    """So many pieces (N, T) of a text, each from a place of its own, which a seed draws. Raises UsageError for a text
    that is no longer than a piece."""
    if len(tokens) <= length:
        raise UsageError(f"a text of {len(tokens)} tokens has no pieces of {length}", hint="a longer text")
    starts = np.random.default_rng(seed).integers(0, len(tokens) - length, count)
    return np.stack([np.asarray(tokens[start : start + length], np.int32) for start in starts])


def losses(model: Any, tokens: NDArray[np.int32], *, steps: bool = False) -> NDArray[np.float64]:
    """The negative log likelihood, in nats, that a `GPT` gives each token of (N, T) but the first: (N, T - 1).
    `steps`: token by token, so that a cache in 8 bits counts."""
    parts = [tokens[i : i + AT_ONCE] for i in range(0, len(tokens), AT_ONCE)]
    logits = np.concatenate([model.logits(part, steps=steps) for part in parts])
    wide = logits[:, :-1].astype(np.float64)
    wide -= wide.max(axis=-1, keepdims=True)
    chances = wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(chances, tokens[:, 1:, None].astype(np.int64), axis=2)[..., 0]


def compared(found: NDArray[np.float64], base: NDArray[np.float64]) -> str:
    """Two perplexities in words, and how much larger the first is: the mean over pieces and its standard error.
    `found`, `base`: what `losses` gave for the same tokens."""
    each = (found - base).mean(axis=1)
    more, error = np.expm1(each.mean()), each.std(ddof=1) / np.sqrt(len(each))
    before, after = (float(np.exp(one.mean())) for one in (base, found))
    return f"perplexity {after:.4f}, {before:.4f} before: {more:+.2%} ± {error:.2%}, of {found.size} tokens"
