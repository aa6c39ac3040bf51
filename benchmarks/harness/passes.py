"""A pass of a model that is ready to be timed, ours or a peer's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pass:
    """A pass that is ready to be run, and what sets it back before each run. `logits`: (rows, V) after a run.
    `time_us`: sets it back, and runs it."""

    run: Callable[[], object]
    prepare: Callable[[], object]
    logits: Callable[[], NDArray[np.float32]]
    time_us: Callable[[], float]
