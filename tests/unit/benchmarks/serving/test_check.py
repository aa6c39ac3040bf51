from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.serving.check import check_alone
from toolchain.errors import ConformanceError


class OneHot:
    """Continues each token with the next number; the one after that is nearly as likely."""

    def forward(self, tokens: np.ndarray) -> Any:
        logits = np.zeros((*tokens.shape, 10))
        for at, token in enumerate(tokens[0]):
            logits[0, at, (token + 1) % 10], logits[0, at, (token + 2) % 10] = 8.0, 7.9
        return SimpleNamespace(numpy=lambda: logits)


def test_tokens_that_the_text_alone_has_too() -> None:
    model: Any = OneHot()
    assert check_alone(model, [3, 1], [2, 3, 4]) == (3, 0.0)
    assert check_alone(model, [3, 1], [2, 4]) == (1, pytest.approx(0.0125))
    with pytest.raises(ConformanceError, match="token 1 of a text in a batch, 7"):
        check_alone(model, [3, 1], [2, 7])
