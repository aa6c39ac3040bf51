"""Rotary positions: the angle by which each pair of numbers of a head is turned, position by position.

Su et al., RoFormer, arXiv:2104.09864, section 3.4.2. A pair is (i, i + D/2) of a head of D numbers, as in Hugging
Face's files. Others, such as Llama's in GGUF, have pairs of neighbours, (2i, 2i + 1); loading puts them in our order.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .config import GPTConfig

F64 = NDArray[np.float64]


def frequencies(config: GPTConfig) -> F64:
    """The angle per position of each pair (D/2,), in radians: base ** (-2i / D), divided by `rope_scaling`."""
    size = config.head_size
    plain = config.rope_base ** (-np.arange(0, size, 2) / size)
    return plain if config.rope_scaling is None else plain / np.array(config.rope_scaling)


def table(config: GPTConfig, positions: NDArray[np.integer[Any]]) -> tuple[F64, F64]:
    """Cosines and sines (T, D/2) of the angles at the positions (T,)."""
    angles = positions[:, None] * frequencies(config)
    return np.cos(angles), np.sin(angles)


def llama3_divisors(base: float, size: int, scaling: Mapping[str, float]) -> tuple[float, ...]:
    """What Llama 3.1 divides the frequencies of its D/2 pairs by, so that it reads further than the positions it was
    trained on: long waves by `factor`, short ones by 1, and between the two it goes over smoothly. The keys of
    `scaling` are those of `rope_parameters` in config.json (`rope_type` llama3)."""
    original, factor = scaling["original_max_position_embeddings"], scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    waves = original * base ** (-np.arange(0, size, 2) / size) / (2 * pi)  # how many turns in the original context
    short = np.clip((waves - low) / (high - low), 0, 1)  # 1: a short wave, which stays
    return tuple((1 / ((1 - short) / factor + short)).tolist())
