"""Measurements as an H200 gives them, drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ci.gate.measurement import Measurement

STATE = {
    "sm_clock_mhz": "1980",
    "memory_clock_mhz": "3201",
    "temperature_c": "50",
    "power_w": "300",
    "throttle": "none",
}
MakeMeasurement = Callable[..., Measurement]


@pytest.fixture
def measured() -> MakeMeasurement:
    """A measurement of a kernel that is `change` slower; `spread`: of each round's ratio."""

    def make(change: float = 0.0, spread: float = 0.005, rounds: int = 30, seed: int = 0, **other: Any) -> Measurement:
        draw = np.random.default_rng(seed)
        base = 100 * (1 + 0.03 * draw.random(rounds))  # the clock: both sides of a round feel it
        ours = base * (1 + change) * np.exp(spread * draw.standard_normal(rounds))
        fields: dict[str, Any] = {
            "case": "forward a", "source": "mlir", "ours_us": ours.tolist(), "base_us": base.tolist(),
            "states": [STATE, STATE],
        }  # fmt: skip
        return Measurement(**{**fields, **other})

    return make
