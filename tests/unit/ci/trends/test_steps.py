from __future__ import annotations

from collections.abc import Sequence

import pytest

from ci.trends.nights import Cell, Measured, Night, Time
from ci.trends.page import all_steps, cells, commands
from ci.trends.steps import bisect, steps

from .synthetic import H100, H200

ON = (H200, "sm_90")
CELL = Cell("gelu", "py")


def test_the_steps_that_were_put_in_are_found_and_no_others(ten: list[Night]) -> None:
    found = {(step.cell.name.split()[0], step.cell.source, step.on[0], step.night) for step in all_steps(ten)}
    assert found == {
        ("gelu", "py", H100, 6), ("gelu", "py", H200, 6), ("linear", "mlir", H100, 3), ("linear", "mlir", H200, 3),
        ("attention", "py", H200, 7), ("layernorm", "mlir", H200, 9),
    }  # fmt: skip
    assert len(all_steps(ten)) == 12 and len(cells(ten)) == 20


def test_a_step_says_what_else_changed(ten: list[Night]) -> None:
    by = {(step.cell.name.split()[0], step.on[0]): step for step in all_steps(ten)}
    assert by["gelu", H200].causes == ["another cubin"]
    assert by["gelu", H100].before == 4  # the H100 did not run in night 5
    assert by["attention", H200].causes == ["the same cubins", "driver 580.159.04 to 590.44.01"]
    assert not by["layernorm", H200].confirmed and by["gelu", H200].confirmed
    assert by["linear", H200].kind == "faster" and by["linear", H200].change == pytest.approx(-0.12, abs=0.02)


def test_a_step_of_a_kernel_names_the_bisection_and_one_of_the_machine_none(ten: list[Night]) -> None:
    by = {(step.cell.name.split()[0], step.on[0]): step for step in all_steps(ten)}
    first, last = ten[5].commit[:12], ten[6].commit[:12]
    assert commands(ten, by["gelu", H200]) == [
        f"tilestack bisect {first} {last} --commits --source py --entry gelu_bf16 --target sm_90"
    ]
    assert commands(ten, by["attention", H200]) == []


@pytest.mark.parametrize("entries", [[], list("abcd")])
def test_many_or_unknown_kernels_are_compared_first(entries: Sequence[str]) -> None:
    assert bisect(CELL, entries, "sm_90", "a" * 40, "b" * 40) == [
        f"git checkout {'b' * 12} && nox -s bundles -- --target sm_90 --base {'a' * 12}",
        "tilestack diff build/before build/bundle && tilestack bisect build/before build/bundle",
    ]


def made(times: Sequence[float | None], spread: float = 0.01) -> list[Night]:
    """Nights of one cell on one GPU."""
    nights: list[Night] = []
    for at, us in enumerate(times):
        night = Night(f"2026-11-{at + 1:02}", "00:00", str(at))
        if us is not None:
            time = Time(us, us * (1 - spread), us * (1 + spread))
            night.add(Measured(night.day, night.minute, night.commit, ON, "580", {}, {}, {CELL: time}))
        nights.append(night)
    return nights


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ([100, 100, 108, 108], [(2, 1, "slower", True)]),
        ([100, 100, 130, 100, 100], []),  # a bad night
        ([100, 100, 108], [(2, 1, "slower", False)]),
        ([100, None, None, 90, 90], [(3, 0, "faster", True)]),
        ([100, 103.9, 104, 104], []),  # the interval begins below the tolerance
        ([100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110], [(8, 7, "slower", True)]),  # it creeps
        ([100, 110, 90, 90], [(2, 0, "faster", True)]),  # bad once, then faster
        ([100], []), ([100, 100], []),
    ],
)  # fmt: skip
def test_a_step_needs_two_nights(times: Sequence[float | None], found: Sequence[object]) -> None:
    rows = [(step.night, step.before, step.kind, step.confirmed) for step in steps(made(times), CELL, ON)]
    assert rows == found


def test_a_spread_that_reaches_back_is_no_step() -> None:
    assert steps(made([100, 108, 108], 0.06), CELL, ON) == []
