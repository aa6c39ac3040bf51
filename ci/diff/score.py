"""How suspicious a change of a kernel's resources is: points from the rules in rules.toml."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolchain.compiling.cubin import Usage

TABLE = Path(__file__).parent / "rules.toml"
STRONG = ("HGMMA", "IGMMA", "QGMMA", "BGMMA", "UTC")  # products of more than one warp, as their names begin
INSTRUCTION_BYTES = 16  # of code, on every GPU since sm_70


@dataclass(frozen=True)
class Rule:
    """A row of rules.toml, whose head explains it. `start`: its `from`."""

    measure: str
    worse: Literal["more", "less"]
    points: float
    start: float
    per_percent: float
    most: float
    why: str

    def score(self, before: float, after: float) -> float:
        """The points of a change; 0 for one in the other direction."""
        low, high = (before, after) if self.worse == "more" else (after, before)
        if high <= low:
            return 0.0
        if low == 0:
            return self.points
        percent = 100 * abs(after - before) / before
        return min(self.most, self.per_percent * max(0.0, percent - self.start))


@dataclass(frozen=True)
class Rules:
    """All rules, and the points from which a kernel is suspicious."""

    threshold: float
    rules: tuple[Rule, ...]


@functools.cache
def rules() -> Rules:
    """The content of rules.toml."""
    table = tomllib.loads(TABLE.read_text())
    rows = tuple(Rule(**{("start" if key == "from" else key): v for key, v in row.items()}) for row in table["rule"])
    return Rules(table["threshold"], rows)


@dataclass(frozen=True)
class Reason:
    """A measure that changed, with its points: suspicious (above 0), an improvement (below 0) or neither."""

    measure: str
    before: int
    after: int
    points: float

    def __str__(self) -> str:
        name = LABELS[self.measure]
        if self.measure == "serialised":
            if self.before and self.after:
                return f"products that wait one for another {self.before} to {self.after}"
            return name if self.after else "products no longer wait one for another"
        percent = f" ({100 * (self.after - self.before) / self.before:+.0f} %)" if self.before and self.after else ""
        return f"{name} {self.before} to {self.after}{percent}"


LABELS: Mapping[str, str] = {
    "serialised": "products wait one for another",
    "tensor_core": "tensor-core instructions",
    "strong_tensor_core": "warp-group products",
    "copy_engine": "copy-engine instructions",
    "spills": "spill instructions",
    "stack": "stack and local bytes",
    "registers": "registers",
    "shared": "shared bytes",
    "instructions": "instructions",
}


def measures(usage: Usage) -> dict[str, int]:
    """What is compared. `shared`, `stack` (with local memory): bytes; `registers`: of a thread; `serialised`: products
    that each wait for the one before; the others count instructions in the code, not how often they run."""
    return {
        "serialised": usage.serialised,
        "tensor_core": sum(usage.tensor_core.values()),
        "strong_tensor_core": sum(n for name, n in usage.tensor_core.items() if name.startswith(STRONG)),
        "copy_engine": sum(usage.copy_engine.values()),
        "spills": usage.spills,
        "stack": usage.stack + usage.local,
        "registers": usage.registers,
        "shared": usage.shared,
        "instructions": usage.instructions,
    }


def reasons(before: Usage, after: Usage) -> list[Reason]:
    """The measures that changed, the most points first."""
    one, two = measures(before), measures(after)
    found: list[Reason] = []
    for rule in rules().rules:
        was, now = one[rule.measure], two[rule.measure]
        if was != now:
            found.append(Reason(rule.measure, was, now, rule.score(was, now) - rule.score(now, was)))
    return sorted(found, key=lambda reason: -reason.points)


def total(found: Sequence[Reason]) -> float:
    """The suspicion: the points above 0. An improvement elsewhere does not make up for them."""
    return sum(max(0.0, reason.points) for reason in found)


def gain(found: Sequence[Reason]) -> float:
    """The points of improvements."""
    return sum(max(0.0, -reason.points) for reason in found)
