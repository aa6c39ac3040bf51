from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ci.gate import thresholds
from ci.gate.measurement import Measurement
from ci.gate.verdict import CaseVerdict, doubtful, find, judge

RULES = thresholds.load()
KEY = ("forward a", "mlir")


def verdict(first: Measurement, again: Measurement | None = None) -> CaseVerdict:
    (cell,) = judge({first.key: first}, {again.key: again} if again else {}, RULES)
    return cell


@pytest.mark.parametrize(
    ("change", "kind"), [(0.0, "neutral"), (0.01, "neutral"), (0.05, "slower"), (-0.05, "faster"), (0.2, "slower")]
)
def test_the_interval_decides(measured: Any, change: float, kind: str) -> None:
    found = find(measured(change), RULES, 1980)
    assert found.kind == kind
    assert found.change is not None
    assert found.change.low <= change <= found.change.high
    assert (doubtful({KEY: measured(change)}, RULES) == []) == (kind == "neutral")


def test_rounds_that_spread_too_far_are_never_neutral(measured: Any) -> None:
    found = find(measured(0.0, spread=0.15), RULES, 1980)
    assert (found.kind, found.reason) == ("inconclusive", "too noisy: a change of 5 % is not ruled out")


def state(**changes: str) -> Mapping[str, str]:
    return {"sm_clock_mhz": "1980", "temperature_c": "50", "throttle": "none", **changes}


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (state(throttle="thermal (software), power cap"), "thermal (software)"),
        (state(throttle="power brake"), "power brake"),
        (state(temperature_c="88"), "88 °C"), (state(sm_clock_mhz="900"), "an SM clock of 900 MHz"),
        (state(temperature_c="[N/A]"), "unknown"), ({}, "unknown"),
    ],
)  # fmt: skip
def test_a_gpu_out_of_order_judges_nothing(measured: Any, after: Mapping[str, str], why: str) -> None:
    found = find(measured(0.1, states=[state(), after]), RULES, 1980)
    assert found.kind == "inconclusive"
    assert found.reason.startswith("throttled")
    assert why in found.reason


def test_a_power_cap_is_no_throttling(measured: Any) -> None:
    capped = state(throttle="power cap", sm_clock_mhz="1545")
    assert find(measured(states=[capped, capped]), RULES, 1980).kind == "neutral"


def test_a_base_that_drifts_is_throttled(measured: Any) -> None:
    one = measured()
    slower = [us * (1 + i / 60) for i, us in enumerate(one.base_us)]
    found = find(measured(ours_us=slower, base_us=slower), RULES, 1980)
    assert found.reason.startswith("throttled: the base's own time drifted")


def test_two_modes_are_inconclusive_unless_both_say_the_same(measured: Any) -> None:
    base = measured().base_us
    both = [us * (1.06 if i % 2 else 1.0) for i, us in enumerate(base)]
    found = find(measured(ours_us=both, base_us=base), RULES, 1980)
    assert found.reason.startswith("bimodal: rounds gather at +0.0 % and +5.8 %")
    slower = [us * (1.12 if i % 2 else 1.06) for i, us in enumerate(base)]
    assert find(measured(ours_us=slower, base_us=base), RULES, 1980).kind == "slower"


def test_only_what_two_measurements_find_is_a_verdict(measured: Any) -> None:
    assert verdict(measured(0.05), measured(0.05, seed=1, swapped=True)).verdict == "regression"
    assert verdict(measured(-0.05), measured(-0.05, seed=1)).verdict == "improvement"
    assert verdict(measured(0.05)).verdict == "inconclusive"
    unlike = verdict(measured(0.05), measured(0.0, seed=1))
    assert unlike.verdict == "inconclusive"
    assert unlike.reason.startswith("two measurements do not agree: slower (+5.")
    assert verdict(measured(0.0, spread=0.15), measured(0.0, seed=1)).verdict == "neutral"
    assert verdict(measured(0.0, spread=0.15), measured(0.05, seed=1)).verdict == "inconclusive"


def test_what_could_not_be_compared_is_never_neutral(measured: Any) -> None:
    failed = measured(ours_us=[], base_us=[], failure="error: lost")
    cell = verdict(failed, measured())
    assert (cell.verdict, cell.compared, len(cell.findings)) == ("inconclusive", False, 1)
    assert doubtful({KEY: failed}, RULES) == []
    few = verdict(measured(rounds=9))
    assert (few.verdict, few.reason) == ("inconclusive", "too few rounds: 9 of at least 10")
    found = judge({KEY: measured()}, {}, RULES, ["forward a", "forward b"])
    assert [(c.case, c.verdict, c.compared) for c in found] == [
        ("forward a", "neutral", True), ("forward b", "inconclusive", False),
    ]  # fmt: skip
