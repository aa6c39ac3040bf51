"""How often the gate errs: recorded noise drawn anew, with a slow-down added.

A simulated run draws, for every cell, one of the recorded processes and blocks of neighbouring rounds from it, so that
what differs between processes and what drifts within one stays in. The second measurement draws another process, its
sign turned, as swapped roles turn it. Medians and their intervals move and scale with their rounds, so one draw serves
every slow-down, every scale of the noise and every threshold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report.svg import Panel, Picture, Scale
from toolchain.files import write_whole

from . import noise
from .measurement import Key
from .statistics import Floats, Split, median_interval, split
from .thresholds import Thresholds

NOISE = Path(__file__).parent / "noise"
SLOWER = (0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.10)
TOLD = (0.01, 0.03, 0.05, 0.10)  # of these, in the table
SCALES = (1, 2, 4)
TOLERANCES = (0.005, 0.01, 0.015, 0.02, 0.025)
BLOCK = 5
CHUNK = 500
COLORS = ("#1b6ca8", "#c05a11", "#7a3b9a")
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Drawn:
    """One measurement of a cell in each simulated run."""

    low: Floats
    high: Floats
    groups: Split

    def kinds(self, rules: Thresholds, slow_down: float, scale: float) -> dict[str, Bools]:
        """What `verdict.find` would say of each, with a slow-down added to the noise times `scale`."""
        added, tolerance, detect = math.log1p(slow_down), rules.verdict.tolerance, rules.verdict.detect
        low, high = (np.expm1(scale * bound + added) for bound in (self.low, self.high))
        groups = Split(scale * self.groups.gap, scale * self.groups.low + added, scale * self.groups.high + added)
        sure = ~groups.bimodal(rules.bimodal) | groups.beyond(tolerance)
        slower, faster = low > tolerance, high < -tolerance
        neutral = (low > -detect) & (high < detect) & ~slower & ~faster
        return {"slower": slower & sure, "faster": faster & sure, "neutral": neutral & sure}


@dataclass(frozen=True)
class DrawnCase:
    first: Drawn
    again: Drawn

    def verdicts(self, rules: Thresholds, slow_down: float, scale: float) -> dict[str, Bools]:
        """What `verdict.judge` would say; inconclusive is the rest."""
        first, again = (one.kinds(rules, slow_down, scale) for one in (self.first, self.again))
        moved = first["slower"] | first["faster"]
        return {
            "regression": first["slower"] & again["slower"], "improvement": first["faster"] & again["faster"],
            "neutral": first["neutral"] | (~moved & again["neutral"]),
        }  # fmt: skip


def draw(recorded: Floats, rounds: int, runs: int, rng: np.random.Generator) -> Floats:
    """(runs, rounds) from the (processes, rounds) that were recorded."""
    processes, length = recorded.shape
    process = rng.integers(0, processes, runs)
    blocks = math.ceil(rounds / BLOCK)
    starts = rng.integers(0, length, (runs, blocks, 1))
    places = ((starts + np.arange(BLOCK)) % length).reshape(runs, -1)[:, :rounds]
    return recorded[process[:, None], places]


def _judged(pairs: Floats, rules: Thresholds) -> Drawn:
    parts = [
        (*median_interval(pairs[at : at + CHUNK], rules.verdict.confidence)[1:],
         split(pairs[at : at + CHUNK], rules.bimodal.share))
        for at in range(0, len(pairs), CHUNK)
    ]  # fmt: skip
    groups = [part[2] for part in parts]
    joined = Split(*(np.concatenate([getattr(g, name) for g in groups]) for name in ("gap", "low", "high")))
    return Drawn(np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]), joined)


def drawn(recorded: Mapping[Key, Floats], rules: Thresholds, runs: int, seed: int = 0) -> dict[Key, DrawnCase]:
    """Both measurements of every cell in every simulated run."""
    rng = np.random.default_rng(seed)
    made: dict[Key, DrawnCase] = {}
    for key, rounds in recorded.items():
        first = draw(rounds, rules.measure.rounds, runs, rng)
        again = draw(-rounds, rules.measure.again, runs, rng)
        made[key] = DrawnCase(_judged(first, rules), _judged(again, rules))
    return made


@dataclass(frozen=True)
class Rate:
    """A share with Wilson's 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, count: int, trials: int, z: float = 1.96) -> Rate:
        share = count / trials
        middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
        half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
        return cls(share, max(0.0, middle - half), min(1.0, middle + half))

    def __str__(self) -> str:
        return f"{100 * self.value:.2f} % [{100 * self.low:.2f}, {100 * self.high:.2f}]"


def verdicts(cells: Mapping[Key, DrawnCase], rules: Thresholds, slow_down: float, scale: float) -> dict[str, Bools]:
    """Of each verdict (cells, runs): where every cell is slowed alike."""
    found = [cell.verdicts(rules, slow_down, scale) for cell in cells.values()]
    return {name: np.array([one[name] for one in found]) for name in ("regression", "improvement", "neutral")}


def _rate(found: Bools) -> Rate:
    return Rate.of(int(found.sum()), found.size)


def false_alarms(found: Mapping[str, Bools]) -> Rate:
    """Of the verdicts without a slow-down: the runs of the whole matrix in which some cell is said to have changed."""
    return _rate(np.any(found["regression"] | found["improvement"], axis=0))


def summarize(cells: Mapping[Key, DrawnCase], rules: Thresholds) -> dict[str, Any]:
    """Per scale of the noise: false alarms and inconclusive cells; per slow-down what became of the slowed cell."""
    return {
        "scales": [_of_scale(cells, rules, scale) for scale in SCALES],
        "tolerances": [_of_tolerance(cells, rules, tolerance) for tolerance in TOLERANCES],
    }


def _of_scale(cells: Mapping[Key, DrawnCase], rules: Thresholds, scale: float) -> dict[str, Any]:
    still = verdicts(cells, rules, 0, scale)
    undecided = ~(still["regression"] | still["improvement"] | still["neutral"])
    rows: list[dict[str, Any]] = []
    for slow_down in SLOWER:
        found = verdicts(cells, rules, slow_down, scale)
        worst = int(found["regression"].mean(axis=1).argmin())
        rows.append({
            "slow_down": slow_down, "caught": _rate(found["regression"]), "called_neutral": _rate(found["neutral"]),
            "worst_cell": " ".join(list(cells)[worst]), "worst": _rate(found["regression"][worst]),
        })  # fmt: skip
    return {"noise": scale, "false_alarms": false_alarms(still), "inconclusive": _rate(undecided), "slow_downs": rows}


def _of_tolerance(cells: Mapping[Key, DrawnCase], rules: Thresholds, tolerance: float) -> dict[str, Any]:
    other = replace(rules, verdict=replace(rules.verdict, tolerance=tolerance))
    found = {f"false_alarms_{scale}": false_alarms(verdicts(cells, other, 0, scale)) for scale in SCALES}
    caught = {f"caught_{100 * s:g}": _rate(verdicts(cells, other, s, 1)["regression"]) for s in (0.03, 0.05)}
    return {"tolerance": tolerance, **found, **caught}


def markdown(summary: Mapping[str, Any], about: Mapping[str, Any], cells: int, runs: int) -> str:
    """The tables of docs/gate.md."""
    head = ["| noise | false alarms, of runs | inconclusive, of cells |"]
    head[0] += "".join(f" {100 * s:g} % slower: caught (worst cell) |" for s in TOLD)
    lines = [*head, "|---|---|---|" + "---|" * len(TOLD)]
    for row in summary["scales"]:
        told = [one for one in row["slow_downs"] if one["slow_down"] in TOLD]
        caught = [f"{one['caught']} ({100 * one['worst'].value:.1f} %)" for one in told]
        words = [f"× {row['noise']}", str(row["false_alarms"]), str(row["inconclusive"]), *caught]
        lines.append(f"| {' | '.join(words)} |")
    lines += ["", "| noise | missed and called neutral, 5 % slower | 10 % slower |", "|---|---|---|"]
    for row in summary["scales"]:
        missed = [str(one["called_neutral"]) for one in row["slow_downs"] if one["slow_down"] in (0.05, 0.10)]
        lines.append(f"| × {row['noise']} | {' | '.join(missed)} |")
    lines += ["", "| tolerance | " + " | ".join(f"false alarms, noise × {s}" for s in SCALES) + " | 3 % | 5 % |"]
    lines.append("|---|" + "---|" * (len(SCALES) + 2))
    for row in summary["tolerances"]:
        words = [str(value) for name, value in row.items() if name != "tolerance"]
        lines.append(f"| {100 * row['tolerance']:g} % | {' | '.join(words)} |")
    told = f"{runs} simulated runs of {cells} cells on {about['gpu']}, driver {about['driver']}, commit"
    return "\n".join([f"{told} `{about['commit'][:12]}`, recorded {', '.join(about['dates'])}.", "", *lines, ""])


def picture(summary: Mapping[str, Any], title: str) -> Picture:
    """The share that is caught over the slow-down: of all cells, and dashed of the worst one."""
    made = Picture(640, 420, title)
    panel = Panel(made, Scale(0, 10, 70, 610), Scale(0, 100, 310, 50))
    panel.frame(title, "slow-down, %", "caught, %")
    for row, color in zip(summary["scales"], COLORS, strict=True):
        every = [(100 * one["slow_down"], 100 * one["caught"].value) for one in row["slow_downs"]]
        worst = [(100 * one["slow_down"], 100 * one["worst"].value) for one in row["slow_downs"]]
        panel.curve([(0.0, 0.0), *every], color, f"noise x {row['noise']}, all cells")
        panel.curve([(0.0, 0.0), *worst], color, f"noise x {row['noise']}, worst cell", "4 3", dots=False)
    shown = zip(SCALES, COLORS, strict=True)
    made.legend(70, 372, [(f"noise × {scale}; dashed: its worst cell", color, "") for scale, color in shown])
    return made


def simulate(rules: Thresholds, runs: int, output: Path, recorded_in: Sequence[Path] = ()) -> list[Path]:
    """For each file of noise, by default of each kind of GPU: `<gpu>.json`, `<gpu>.md`, `<gpu>.svg` in a folder. Raises
    UsageError for another file."""
    made: list[Path] = []
    for path in recorded_in or sorted(NOISE.glob("*.json")):
        about, recorded = noise.load(path)
        summary = summarize(drawn(recorded, rules, runs), rules)
        title = f"What the gate catches on {about['gpu']}"
        texts = {
            "json": json.dumps({**about, "runs": runs, **summary}, indent=1, default=asdict) + "\n",
            "md": markdown(summary, about, len(recorded), runs),
            "svg": picture(summary, title).render(),
        }
        for suffix, text in texts.items():
            made.append(output / f"{path.stem}.{suffix}")
            write_whole(made[-1], text, parents=True)
    return made
