from __future__ import annotations

from pathlib import Path

import pytest

from ci import simulate
from ci.matrix import Matrix
from ci.simulate import CORES, FOUND, Compile, main, makespan, measured
from toolchain.knobs import ROOT

WORK = [Compile("a", 4.0), Compile("a", 2.0), Compile("b", 3.0)]


def test_the_makespan_by_hand() -> None:
    assert makespan([4, 3, 3, 2], 2) == 6
    assert makespan([4, 3, 3, 2], 9) == 4
    assert makespan([], 3) == 0


def test_a_run_by_hand() -> None:
    seconds = Matrix.load().seconds
    found = simulate.simulate(WORK, {"a"}, 3, seconds, 1)
    assert CORES == 2
    checking = seconds.gpu_start + seconds.gpu_gate + 3 * seconds.gpu_cell
    assert found.seconds == pytest.approx(seconds.hosted_start + 4 + checking)
    assert found.gpu_minutes == pytest.approx(checking / 60)
    nothing = simulate.simulate(WORK, set(), 3, seconds, 100)
    assert nothing.seconds == pytest.approx(seconds.hosted_start + FOUND + seconds.gpu_start + seconds.gpu_gate)
    assert nothing.gpu_minutes == pytest.approx((3 * seconds.gpu_start + 3 * seconds.gpu_cell + seconds.gpu_gate) / 60)


def test_the_times_are_measured_ones() -> None:
    times = measured()
    assert len(times) > 1000 and all(0 < each < 60 for each in times.values())


def test_the_same_numbers_give_the_same_files(tmp_path: Path) -> None:
    for folder in "ab":
        assert main(["--output", str(tmp_path / folder)]) == 0
    for name in ("runners.md", "runners.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    told = (tmp_path / "a/runners.md").read_text()
    assert told.count("\n| ") == len(simulate.RUNNERS) + 1
    assert (ROOT / "docs/runners/runners.svg").is_file()
