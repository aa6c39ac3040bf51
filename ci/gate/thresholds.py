"""`ci/gate.toml`: what the gate decides by."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cases.cases import GROUPS
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

TABLE = ROOT / "ci/gate.toml"
FEWEST_ROUNDS = 5


@dataclass(frozen=True)
class Measure:
    only: Sequence[str]
    rounds: int
    again: int

    def __post_init__(self) -> None:
        _require(set(self.only) <= set(GROUPS) and bool(self.only), f"measure.only: groups are {', '.join(GROUPS)}")
        _require(min(self.rounds, self.again) >= FEWEST_ROUNDS, f"measure: at least {FEWEST_ROUNDS} rounds")


@dataclass(frozen=True)
class Verdicts:
    confidence: float
    tolerance: float
    detect: float
    rounds: int
    required: str

    def __post_init__(self) -> None:
        _require(0.5 < self.confidence < 1, "verdict.confidence lies between 0.5 and 1")
        _require(0 < self.tolerance < self.detect < 1, "verdict: 0 < tolerance < detect < 1")
        _require(self.rounds >= FEWEST_ROUNDS, f"verdict.rounds: at least {FEWEST_ROUNDS}")
        try:
            re.compile(self.required)
        except re.error as error:
            raise ValueError(f"verdict.required is no regular expression: {error}") from error


@dataclass(frozen=True)
class Throttled:
    reasons: Sequence[str]
    temperature_c: float
    clock: float
    drift: float

    def __post_init__(self) -> None:
        _require(0 < self.clock < 1 and 0 < self.drift < 1, "throttled: clock and drift lie between 0 and 1")


@dataclass(frozen=True)
class Bimodal:
    gap: float
    half: float
    share: float

    def __post_init__(self) -> None:
        _require(0 < self.gap < 1 and 0 < self.half < 1, "bimodal: gap and half lie between 0 and 1")
        _require(0 < self.share <= 0.5, "bimodal.share lies between 0 and 0.5")


@dataclass(frozen=True)
class Thresholds:
    """The tables of the file; its comments say what each value means."""

    measure: Measure
    verdict: Verdicts
    throttled: Throttled
    bimodal: Bimodal

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def load(path: Path = TABLE) -> Thresholds:
    """Raises UsageError if the file is missing, or lacks a value, or has one that makes no sense."""
    try:
        table = tomllib.loads(path.read_text())
        if unknown := set(table) - {"measure", "verdict", "throttled", "bimodal"}:
            raise ValueError(f"unknown tables: {', '.join(sorted(unknown))}")
        return Thresholds(
            Measure(**table["measure"]), Verdicts(**table["verdict"]),
            Throttled(**table["throttled"]), Bimodal(**table["bimodal"]),
        )  # fmt: skip
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: {type(error).__name__}: {error}", hint="docs/gate.md explains the values") from error


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(rule)
