from __future__ import annotations

import sys

import pytest

from benchmarks import launch
from toolchain.errors import UsageError


def test_the_ways_take_turns_and_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "LAUNCHES", 2)
    monkeypatch.setattr(launch, "ROUNDS", 3)
    done: list[str] = []
    found = launch.measure({"a": lambda: done.append("a"), "b": lambda: done.append("b")}, lambda: done.append("."))
    assert "".join(done) == 3 * ".aa.bb" + "."
    assert [(row.name, row.unit, row.samples) for row in found] == [("a", "us", 2), ("b", "us", 2)]
    assert all(0 < row.low <= row.median <= row.high for row in found)


def test_without_a_gpu_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "gpus", tuple)
    monkeypatch.setattr(sys, "argv", ["launch"])
    with pytest.raises(UsageError, match="there is no GPU here"):
        launch.main()
