"""Perplexities, of logits that say what they are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gpt.reference.perplexity import compared, losses, pieces
from toolchain.errors import UsageError


def test_pieces_are_of_the_text_and_the_same_each_time() -> None:
    text = list(range(100, 200))
    found = pieces(text, 16, 5)
    assert found.shape == (5, 16) and (np.diff(found, axis=1) == 1).all() and len({*found[:, 0].tolist()}) > 1
    assert np.array_equal(found, pieces(text, 16, 5))
    with pytest.raises(UsageError, match="a text of 16 tokens has no pieces of 16"):
        pieces(text[:16], 16, 1)


def test_a_token_costs_what_its_chance_says() -> None:
    """The next token is twice as likely as each of the three others: 2 / 5."""
    tokens = np.array([[0, 1, 2, 3], [3, 2, 1, 0]] * 5, np.int32)

    def logits(given: np.ndarray, *, steps: bool) -> np.ndarray:
        asked.add(steps)
        assert len(given) <= 8, "a forward pass of all pieces would take too much memory"
        made = np.zeros((*given.shape, 4), np.float32)
        after = np.roll(given, -1, axis=1)
        np.put_along_axis(made, after[..., None], np.float32(np.log(2)), axis=2)
        return made + 800  # exp of which is too large

    asked: set[bool] = set()
    assert np.array_equal(
        losses(SimpleNamespace(logits=logits), tokens, steps=True), losses(SimpleNamespace(logits=logits), tokens)
    )
    assert asked == {True, False}
    found = losses(SimpleNamespace(logits=logits), tokens)
    assert found.shape == (10, 3) and np.allclose(found, np.log(5 / 2), atol=1e-4)
    said = compared(found + np.log(1.02), found)
    assert said == "perplexity 2.5500, 2.5000 before: +2.00% ± 0.00%, of 30 tokens"
