from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ci.gate import noise, simulate, thresholds
from ci.gate.measurement import Measurement
from ci.gate.simulate import DrawnCase, Rate, verdicts
from ci.gate.verdict import judge
from toolchain.errors import UsageError

RULES = thresholds.load()
STATE = {"sm_clock_mhz": "1980", "temperature_c": "50", "throttle": "none"}


@pytest.mark.parametrize(("slow_down", "scale"), [(0.0, 1), (0.03, 2), (0.05, 4), (-0.04, 1)])
def test_the_simulation_judges_as_the_gate_does(slow_down: float, scale: float) -> None:
    draw = np.random.default_rng(7)
    first, again = (0.02 * draw.standard_normal((60, 30)) + 0.03 * draw.integers(0, 2, (60, 1)) for _ in range(2))
    first[:20, ::2] += 0.04  # some of two modes
    cell = DrawnCase(simulate._judged(first, RULES), simulate._judged(again, RULES))
    found = cell.verdicts(RULES, slow_down, scale)
    for run in range(60):
        one, two = (
            Measurement("a", "mlir", (np.exp(scale * x[run]) * (1 + slow_down)).tolist(), [1.0] * 30, states=[STATE])
            for x in (first, again)
        )
        (real,) = judge({one.key: one}, {two.key: two}, RULES)
        said = next((name for name, mask in found.items() if mask[run]), "inconclusive")
        assert said == real.verdict


def test_quiet_noise_raises_no_alarm_and_hides_no_slow_down() -> None:
    quiet = {("a", "mlir"): 0.003 * np.random.default_rng(8).standard_normal((3, 30))}
    cells = simulate.drawn(quiet, RULES, 50)
    assert simulate.false_alarms(verdicts(cells, RULES, 0, 1)).value == 0
    assert verdicts(cells, RULES, 0.05, 1)["regression"].all()
    assert not verdicts(cells, RULES, 0.0, 1)["regression"].any()


def test_the_kept_noise_is_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "SCALES", (1,))
    monkeypatch.setattr(simulate, "COLORS", ("red",))
    made = simulate.simulate(RULES, 4, tmp_path)
    kinds = ("json", "md", "svg")
    assert [path.name for path in made] == [f"nvidia-{gpu}.{kind}" for gpu in ("h100", "h200") for kind in kinds]
    alone = simulate.simulate(RULES, 4, tmp_path, [simulate.NOISE / "nvidia-h200.json"])
    assert [path.name for path in alone] == [f"nvidia-h200.{kind}" for kind in kinds]


@pytest.mark.parametrize(
    ("gpu", "name", "processes"), [("h100", "NVIDIA H100 80GB HBM3", 2), ("h200", "NVIDIA H200", 5)]
)
def test_the_kept_noise_is_of_the_whole_matrix(gpu: str, name: str, processes: int) -> None:
    about, recorded = noise.load(simulate.NOISE / f"nvidia-{gpu}.json")
    assert about["gpu"] == name and len(recorded) == 100
    assert {rounds.shape for rounds in recorded.values()} == {(processes, 30)}


@pytest.mark.parametrize("text", [None, "{", "[]", "{}", '{"cells": [1]}'])
def test_a_file_without_noise_is_refused(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match="no noise of a GPU"):
        noise.load(path)


def test_wilsons_interval() -> None:
    found = Rate.of(0, 100)
    assert (found.value, found.low, found.high) == (0, 0, pytest.approx(0.037, abs=1e-3))
