"""A measurement of the CPU part: a name, a unit, and the spread of its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from . import stats


@dataclass(frozen=True)
class Measurement:
    """The median of `samples` times and its 95 % interval (with fewer than six samples, their extremes). `detail`: True
    for one of many rows that are written to the file and not printed."""

    name: str
    unit: str
    median: float
    low: float
    high: float
    samples: int
    detail: bool = False

    @classmethod
    def of(cls, name: str, unit: str, times: Sequence[float], *, detail: bool = False) -> Measurement:
        return cls(name, unit, *stats.median(times), len(times), detail)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        spread = f"{self.low:.4g}..{self.high:.4g}"
        return f"{self.name:58} {self.median:>9.4g} {self.unit:3} {spread:>20}  of {self.samples}"
