"""From measurements to a verdict.

One measurement gives a finding. A finding in doubt is measured a second time, in a new process and with the roles of
the two bundles swapped: where a kernel's memory lies can make one side of a pair faster by up to a percent, in each
process anew, and with swapped roles the other side gains. Only what both measurements find is a regression or an
improvement, so that a false alarm needs two independent errors in the same cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .measurement import Key, Measurement, highest_clock, number
from .statistics import drift, median_interval, split
from .thresholds import Thresholds, Throttled

Kind = Literal["slower", "faster", "neutral", "inconclusive"]
Verdict = Literal["regression", "improvement", "neutral", "inconclusive"]
CONFIRMED: Mapping[str, Verdict] = {"slower": "regression", "faster": "improvement", "neutral": "neutral"}


@dataclass(frozen=True)
class Change:
    """Our time over the base's, less one: 0.05 is 5 % slower. With its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:+.1f} % [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


@dataclass(frozen=True)
class Finding:
    """What one measurement says. `change` is None where there was nothing to compare."""

    kind: Kind
    reason: str
    change: Change | None
    rounds: int
    swapped: bool


@dataclass(frozen=True)
class CaseVerdict:
    """A case and source with its verdict. `compared`: whether both bundles ran it. `wrong`: an output was outside its
    bound. `required`: whether the run fails if this is inconclusive. `accepted`: why a regression is allowed. `same`:
    both bundles have the same machine code for it, so it was not measured."""

    case: str
    source: str
    verdict: Verdict
    reason: str
    findings: Sequence[Finding]
    compared: bool
    wrong: bool
    required: bool
    accepted: str = ""
    same: bool = False

    @property
    def key(self) -> Key:
        return self.case, self.source

    @property
    def change(self) -> Change | None:
        """Of the last measurement that has one."""
        return next((finding.change for finding in reversed(self.findings) if finding.change), None)


def find(one: Measurement, rules: Thresholds, clock_mhz: float) -> Finding:
    """`clock_mhz`: the highest SM clock of the run."""
    rounds = len(one.ours_us)

    def doubt(reason: str, change: Change | None = None) -> Finding:
        return Finding("inconclusive", reason, change, rounds, one.swapped)

    if one.failure:
        return doubt(f"not compared: {one.failure}")
    if rounds < rules.verdict.rounds:
        return doubt(f"too few rounds: {rounds} of at least {rules.verdict.rounds}")
    pairs = one.log_changes
    if not np.isfinite(pairs).all():
        return doubt("not compared: a round has no time")
    change = Change(*(float(np.expm1(x)) for x in median_interval(pairs, rules.verdict.confidence)))
    if why := _throttled(one, rules.throttled, clock_mhz):
        return doubt(f"throttled: {why}", change)
    groups = split(pairs, rules.bimodal.share)
    if groups.bimodal(rules.bimodal) and not groups.beyond(rules.verdict.tolerance):
        return doubt(f"bimodal: rounds gather at {100 * groups.low:+.1f} % and {100 * groups.high:+.1f} %", change)
    kind = kind_of(change, rules)
    reason = (
        f"too noisy: a change of {100 * rules.verdict.detect:g} % is not ruled out" if kind == "inconclusive" else ""
    )
    return Finding(kind, reason, change, rounds, one.swapped)


def kind_of(change: Change, rules: Thresholds) -> Kind:
    """What an interval says of a GPU in order."""
    tolerance, detect = rules.verdict.tolerance, rules.verdict.detect
    if change.low > tolerance:
        return "slower"
    if change.high < -tolerance:
        return "faster"
    return "neutral" if -detect < change.low and change.high < detect else "inconclusive"


def _throttled(one: Measurement, rule: Throttled, clock_mhz: float) -> str:
    """Why the GPU's state rules a judgement out, or nothing."""
    for state in one.states:
        held = [reason for reason in rule.reasons if reason in state.get("throttle", "")]
        if held:
            return ", ".join(held)
        temperature, clock = number(state, "temperature_c"), number(state, "sm_clock_mhz")
        if temperature is None or clock is None or "throttle" not in state:
            return "the GPU's state is unknown: nvidia-smi gave none"
        if temperature >= rule.temperature_c:
            return f"{temperature:g} °C"
    last = number(one.states[-1], "sm_clock_mhz") if one.states else None
    if last is None:
        return "the GPU's state is unknown: the results have none"
    if last < rule.clock * clock_mhz:
        return f"an SM clock of {last:g} MHz, where the run reached {clock_mhz:g}"
    drifted = float(drift(np.asarray(one.base_us, float)))
    return f"the base's own time drifted by {100 * drifted:.0f} %" if drifted > rule.drift else ""


def doubtful(first: Mapping[Key, Measurement], rules: Thresholds) -> list[Key]:
    """The cells that need a second measurement: those that are not neutral. What failed is not tried again: neither a
    wrong number nor a kernel that does not run becomes right by it."""
    clock = highest_clock(first)
    return [
        key for key, one in first.items() if not one.failure and find(one, rules, clock).kind != "neutral"
    ]  # fmt: skip


def judge(
    first: Mapping[Key, Measurement], again: Mapping[Key, Measurement], rules: Thresholds,
    expected: Sequence[str] = (), same: Sequence[Key] = (),
) -> list[CaseVerdict]:  # fmt: skip
    """A verdict for each cell. `again`: the second measurements, of those in doubt. `expected`: the cases that were
    asked for; one that no row names becomes a cell that was not compared. `same`: the cells of the same machine code,
    which are neutral, although some were measured along with another source's; but a failure there counts."""
    clocks = highest_clock(first), highest_clock(again)
    cells: list[CaseVerdict] = []
    for key, one in first.items():
        if key in same and not one.failure:
            continue
        both = [(one, clocks[0]), *([(again[key], clocks[1])] if key in again and not one.failure else [])]
        cells.append(_settle([m for m, _ in both], [find(m, rules, clock) for m, clock in both], rules))
    settled = {cell.key for cell in cells}
    cells += [_unmeasured(key, rules) for key in same if key not in settled]
    seen = {case for case, _ in (*first, *same)}
    missing = [case for case in dict.fromkeys(expected) if case not in seen]
    lost = [Measurement(case, "all", [], [], "the run has no row of it") for case in missing]
    return cells + [_settle([one], [find(one, rules, 0.0)], rules) for one in lost]


def _unmeasured(key: Key, rules: Thresholds) -> CaseVerdict:
    """Of a cell whose machine code is the same in both bundles."""
    required = bool(re.search(rules.verdict.required, key[0]))
    return CaseVerdict(*key, "neutral", "the same machine code", (), True, wrong=False, required=required, same=True)


def _settle(measured: Sequence[Measurement], findings: Sequence[Finding], rules: Thresholds) -> CaseVerdict:
    one = measured[0]
    verdict, reason = _combine(findings)
    return CaseVerdict(
        one.case, one.source, verdict, reason, findings, compared=not one.failure,
        wrong=any(m.wrong for m in measured), required=bool(re.search(rules.verdict.required, one.case)),
    )  # fmt: skip


def _combine(findings: Sequence[Finding]) -> tuple[Verdict, str]:
    first = findings[0]
    if first.kind == "neutral" or (first.change is None and first.kind == "inconclusive"):
        return first.kind, first.reason
    if len(findings) < 2:
        return "inconclusive", first.reason or f"{first.kind} in the only measurement: {first.change}"
    second = findings[1]
    if second.kind == first.kind and second.kind != "inconclusive":
        return CONFIRMED[second.kind], ""
    if first.kind == "inconclusive" and second.kind == "neutral":
        return "neutral", f"the first measurement was {first.reason}"
    told = "; then ".join(f"{finding.reason or finding.kind} ({finding.change})" for finding in findings)
    return "inconclusive", f"two measurements do not agree: {told}" if first.kind != second.kind else told
