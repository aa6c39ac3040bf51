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
from ci.gate.measure import Job, Measured, measure
from ci.gate.measurement import Measurement, measurements
from ci.gate.verdict import judge
from conformance.jobs.retries import retries
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
def job(tmp_path: Path, stored: Any) -> Job:
    """Of two bundles whose gelu differs, from MLIR alone."""
    new = stored("new", {"mlir/gelu_any_bf16": b"other"})
    return Job(new.root, stored("old").root, tmp_path, ["ops"], f"^{CASE}", ["mlir"])


@pytest.fixture
def unchanged(job: Job, stored: Any) -> Job:
    return replace(job, bundle=stored("renamed").root, sources=[])


def test_cells_of_the_same_machine_code_are_neutral_without_a_measurement(unchanged: Job, capsys: Any) -> None:
    def start(_: Sequence[str]) -> int:
        raise AssertionError("nothing is to be measured")

    assert measure(unchanged, RULES, start) == Measured(
        None, None, [(CASE, name) for name in ("mlir", "py", "fastest")]
    )
    words = ["--bundle", str(unchanged.bundle), "--base", str(unchanged.base), "--case", unchanged.case]
    assert main(["run", *words, "--only", "ops", "--output", str(unchanged.output / "out")]) == 0
    said = (unchanged.output / "out/summary.md").read_text()
    assert "3 neutral · nothing was measured" in said
    assert "3 of 3 cells have the same machine code in both bundles" in said
    assert '"same_machine_code": 3' in (unchanged.output / "out/verdicts.json").read_text()
    assert "3 of 3 cells" in capsys.readouterr().out


def test_all_cells_are_measured_where_that_is_asked_for(unchanged: Job) -> None:
    fake = Fake(1.0)
    assert measure(replace(unchanged, all_cells=True), RULES, fake).same == []
    assert "--sources" not in fake.commands[0]


def test_only_what_differs_is_measured_and_the_rest_is_neutral_though_it_was_slow(job: Job) -> None:
    fake = Fake(1.0)
    measured = measure(replace(job, sources=[]), RULES, fake)
    argv = list(fake.commands[0])
    assert argv[argv.index("--sources") + 1] == "mlir,fastest" and measured.same == [(CASE, "py")]
    slow = {(CASE, "mlir"): 1.0, (CASE, "py"): 1.2}
    found = {key: Measurement(*key, [100.0 * x] * 30, [100.0] * 30, states=[STATE, STATE]) for key, x in slow.items()}
    verdicts = {cell.source: cell.verdict for cell in judge(found, {}, RULES, [CASE], measured.same)}
    assert verdicts == {"mlir": "neutral", "py": "neutral"}
    wrong = {(CASE, "py"): Measurement(CASE, "py", [], [], "wrong: an element", wrong=True)}
    assert [cell.wrong for cell in judge(wrong, {}, RULES, [CASE], measured.same)] == [True]


def test_what_is_neutral_is_measured_once(job: Job) -> None:
    fake = Fake(1.0)
    assert measure(job, RULES, fake).again is None
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
    made = measure(job, RULES, fake)
    assert (len(fake.commands), len(paused), made.again) == (2, 1, None)
    assert made.retries == [f"{MACHINE}memory of the GPU is damaged"]
    assert made.first and Results.load(made.first).rows[0].status == "ok"


def test_a_gpu_that_stays_lost_leaves_no_verdict(job: Job, paused: list[float]) -> None:
    fake = Losing(99)
    made = measure(job, RULES, fake)
    assert len(fake.commands) == 1 + retries().job and len(made.retries) == len(paused) == retries().job
    assert made.first and Results.load(made.first).rows[0].status == "error"


def test_a_doubt_is_measured_again_with_swapped_roles(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    fake = Fake(1.05)
    made = measure(job, RULES, fake)
    first, again = made.first, made.again
    assert first and again
    argv = list(fake.commands[1])
    assert argv[argv.index("--bundle") + 1] == str(job.base)
    assert argv[argv.index("--against") + 1] == f"new={job.bundle}"
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
    made = measure(job, RULES, Fake(1.05))
    first, again = made.first, made.again
    assert first and again
    results("new", 1 / 1.05, ("o", "else")).save(again)
    assert main(["judge", str(first), "--again", str(again), "--output", str(job.output / "out")]) == 2


@pytest.mark.parametrize(("status", "code"), [("error", 11), ("wrong", 9)])
def test_a_failure_is_not_tried_again_and_fails(job: Job, status: str, code: int) -> None:
    fake = Fake(1.0, status)
    made = measure(job, RULES, fake)
    assert (made.again, len(fake.commands)) == (None, 1)
    assert main(["judge", str(made.first), "--output", str(job.output / "out")]) == code


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
