"""Steps in one launch are compared with those in many before they are timed."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.collectives import model as module
from benchmarks.collectives.model import LAUNCH, check_steps
from toolchain.errors import ConformanceError


def _nothing(*_: Any) -> None:
    pass


def _steps(off: float) -> Any:
    def made(_: Any, batch: int, variant: str) -> Any:
        logits = np.linspace(-1, 1, 8)[None] * batch + off * (variant == LAUNCH)
        return SimpleNamespace(
            reset=_nothing, feed=_nothing, run=_nothing, likeliest=_nothing,
            logits=SimpleNamespace(numpy=lambda: logits),
        )  # fmt: skip

    return made


@pytest.mark.parametrize(
    ("off", "found"),
    [
        (0.02, nullcontext()),
        (0.05, pytest.raises(ConformanceError, match=r"off by 0\.05, where the largest logit is 1")),
        (np.nan, pytest.raises(ConformanceError)),
    ],
)
def test_steps_in_one_launch_are_near_those_in_many(off: float, found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_steps", _steps(off))
    given: Any = SimpleNamespace(config=SimpleNamespace(vocab_size=8), peers=SimpleNamespace(synchronize=_nothing))
    with found:
        check_steps(given)
