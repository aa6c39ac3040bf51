from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.status import MACHINE, TRY_AGAIN
from benchmarks.report.result import BenchmarkRow, Results
from ci.gate import measure as gate_measure
from ci.gate import thresholds
from ci.gate.__main__ import main
from ci.gate.measure import Job, measure
from ci.gate.measurement import measurements
from conformance.retries import retries
from toolchain.errors import ToolFailed, UsageError

RULES = thresholds.load()
CASE = "gelu M=8192 N=3072 bf16"
STATE = {"sm_clock_mhz": "1980", "temperature_c": "50", "throttle": "none"}


def results(other: str, ratio: float, bundles: tuple[str, str], status: Any = "ok", case: str = CASE) -> Results:
    """Of a run whose kernels take `ratio` times as long as the other bundle's."""
    base = [100 + i % 5 for i in range(30)]
    row = BenchmarkRow(
        "ops", case, "mlir", "bf16", "", {}, status, "lost" if status != "ok" else "",
        peer=f"{other} mlir", peer_kind="against", ours_ms=0.1, gpu_before=STATE, gpu_after=STATE,
        ours_rounds_us=[us * ratio for us in base], peer_rounds_us=base,
    )  # fmt: skip
    against = {other: {"bundle": bundles[1], "commit": "o"}}
    return Results({"gpu": "NVIDIA H200", "bundle": bundles[0], "bundle_commit": "n", "against": against}, {}, [row])


class Fake:
    """Stands for `benchmarks gpu`: our kernels are `slower`, and `commands` is what was asked for."""

    def __init__(self, slower: float, status: str = "ok") -> None:
        self.slower, self.status, self.commands = slower, status, list[Sequence[str]]()

    def __call__(self, argv: Sequence[str]) -> int:
        self.commands.append(argv)
        name = argv[argv.index("--against") + 1].split("=")[0]
        ratio, bundles = (self.slower, ("n", "o")) if name == "base" else (1 / self.slower, ("o", "n"))
        made = results(name, ratio, bundles, self.status)
        made.save(Path(argv[argv.index("--output") + 1]) / made.file_name)
        return 0


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(Path("new"), Path("old"), tmp_path, ["ops"], f"^{CASE}", [])


def test_what_is_neutral_is_measured_once(job: Job) -> None:
    fake = Fake(1.0)
    assert measure(job, RULES, fake)[1] is None
    assert len(fake.commands) == 1


class Losing(Fake):
    """Loses the GPU in the first `losses` measurements."""

    def __init__(self, losses: int) -> None:
        super().__init__(1.0)
        self.losses = losses

    def __call__(self, argv: Sequence[str]) -> int:
        super().__call__(argv)
        if len(self.commands) > self.losses:
            return 0
        made = results("base", 1.0, ("n", "o"), "error")
        lost = replace(made, rows=[replace(row, detail=f"{MACHINE}memory of the GPU is damaged") for row in made.rows])
        lost.save(Path(argv[argv.index("--output") + 1]) / made.file_name)
        return TRY_AGAIN


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds: list[float] = []
    monkeypatch.setattr(gate_measure.time, "sleep", seconds.append)
    return seconds


def test_an_error_of_the_machine_is_tried_again_and_counted(job: Job, paused: list[float]) -> None:
    fake = Losing(1)
    first, again, why = measure(job, RULES, fake)
    assert (len(fake.commands), len(paused), again) == (2, 1, None)
    assert why == [f"{MACHINE}memory of the GPU is damaged"]
    assert Results.load(first).rows[0].status == "ok"


def test_a_gpu_that_stays_lost_leaves_no_verdict(job: Job, paused: list[float]) -> None:
    fake = Losing(99)
    first, _, why = measure(job, RULES, fake)
    assert len(fake.commands) == 1 + retries().job and len(why) == len(paused) == retries().job
    assert Results.load(first).rows[0].status == "error"


def test_a_doubt_is_measured_again_with_swapped_roles(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    fake = Fake(1.05)
    first, again, _ = measure(job, RULES, fake)
    assert again is not None
    argv = list(fake.commands[1])
    assert argv[argv.index("--bundle") + 1] == "old"
    assert argv[argv.index("--against") + 1] == "new=new"
    assert argv[argv.index("--samples") + 1] == str(RULES.measure.again)
    assert "measured again" in capsys.readouterr().out
    out = job.output / "out"
    words = ["judge", str(first), "--again", str(again), "--output", str(out), "--summary", str(job.output / "s.md")]
    assert main(words) == 1
    assert "| gelu M=8192 N=3072 bf16 mlir | regression | +5.0 %" in (job.output / "s.md").read_text()
    kept = job.output / "accepted.toml"
    accept = ["accept", str(out / "verdicts.json"), "--accepted", str(kept), "--cell", "gelu"]
    assert main([*accept, "--reason", "short"]) == 2
    assert main([*accept, "--reason", 'exact "tanh": half the error']) == 0
    assert main([*words, "--accepted", str(kept)]) == 0
    assert "regression, accepted" in (out / "summary.md").read_text()
    worse = results("base", 1.09, ("n", "o"))
    worse.save(first)
    results("new", 1 / 1.09, ("o", "n")).save(again)
    assert main([*words, "--accepted", str(kept)]) == 1  # more than was accepted
    results("base", 1.05, ("n2", "o")).save(first)
    results("new", 1 / 1.05, ("o", "n2")).save(again)
    assert main([*words, "--accepted", str(kept)]) == 1  # another bundle


def test_measurements_of_other_bundles_do_not_confirm(job: Job) -> None:
    first, again, _ = measure(job, RULES, Fake(1.05))
    assert again is not None
    results("new", 1 / 1.05, ("o", "else")).save(again)
    assert main(["judge", str(first), "--again", str(again), "--output", str(job.output / "out")]) == 2


@pytest.mark.parametrize(("status", "code"), [("error", 11), ("wrong", 9)])
def test_a_failure_is_not_tried_again_and_fails(job: Job, status: str, code: int) -> None:
    fake = Fake(1.0, status)
    first, again, _ = measure(job, RULES, fake)
    assert (again, len(fake.commands)) == (None, 1)
    assert main(["judge", str(first), "--output", str(job.output / "out")]) == code


def test_a_measurement_that_leaves_nothing_is_an_error(job: Job) -> None:
    old = job.output / "first/nvidia-h200.json"
    results("base", 1.0, ("n", "o")).save(old)  # of an earlier run
    with pytest.raises(ToolFailed, match="wrote 0 results"):
        measure(job, RULES, lambda _: 0)


def test_no_case_and_no_comparison_are_refused(job: Job) -> None:
    with pytest.raises(UsageError, match="no case"):
        measure(Job(job.bundle, job.base, job.output, ["ops"], "none such", []), RULES, Fake(1.0))
    with pytest.raises(UsageError, match="called 'base'"):
        measurements(results("other", 1.0, ("n", "o")), "base")
