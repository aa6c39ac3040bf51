"""The rules by which a change is suspicious."""

from __future__ import annotations

import pytest

from ci.diff.score import LABELS, Rule, gain, measures, reasons, rules, total

from .conftest import PLAIN, other


def test_each_measure_has_one_rule_and_a_label() -> None:
    measured = [rule.measure for rule in rules().rules]
    assert sorted(measured) == sorted(measures(PLAIN)) == sorted(LABELS)


@pytest.mark.parametrize(
    ("before", "after", "points"),
    [(0, 5, 40), (5, 0, 0), (7, 7, 0), (100, 105, 0), (100, 115, 3), (100, 900, 30), (100, 50, 0)],
)
def test_points_of_what_should_not_grow(before: int, after: int, points: float) -> None:
    rule = Rule("spills", "more", points=40, start=5, per_percent=0.3, most=30, why="")
    assert rule.score(before, after) == pytest.approx(points)


@pytest.mark.parametrize(("before", "after", "points"), [(8, 0, 100), (0, 8, 0), (10, 5, 6), (10, 9, 0)])
def test_points_of_what_should_not_shrink(before: int, after: int, points: float) -> None:
    rule = Rule("tensor_core", "less", points=100, start=20, per_percent=0.2, most=10, why="")
    assert rule.score(before, after) == pytest.approx(points)


@pytest.mark.parametrize(
    "worse",
    [
        other(serialised=16), other(tensor_core={}), other(tensor_core={"HMMA": 128}), other(copy_engine={}),
        other(spills=2), other(stack=64), other(local=64), other(registers=128),
    ],
)  # fmt: skip
def test_what_is_suspicious_one_way_is_better_the_other_way(worse: object) -> None:
    threshold = rules().threshold
    assert total(reasons(PLAIN, worse)) >= threshold > total(reasons(worse, PLAIN))  # type: ignore[arg-type]
    assert gain(reasons(worse, PLAIN)) == total(reasons(PLAIN, worse))  # type: ignore[arg-type]


def test_a_few_more_registers_and_instructions_are_not_suspicious() -> None:
    found = reasons(PLAIN, other(registers=66, instructions=420))
    assert {reason.measure for reason in found} == {"registers", "instructions"} and total(found) == 0
    assert str(reasons(PLAIN, other(registers=80))[0]) == "registers 64 to 80 (+25 %)"


def test_an_improvement_does_not_make_up_for_a_loss() -> None:
    found = reasons(other(spills=50), other(serialised=16))
    assert total(found) == 100 and gain(found) == 40
    assert [reason.measure for reason in found] == ["serialised", "spills"]
