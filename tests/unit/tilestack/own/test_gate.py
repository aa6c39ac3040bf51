"""The gate of somebody's own ops, on recordings that nothing compiled and made-up times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.report.result import BenchmarkRow, Results
from ci.gate.__main__ import main as ci_gate
from tilestack.own.gate import Asked, gate, same_cells, thresholds
from tilestack.own.recording import Launch, Recording
from toolchain.contract.artifact import Form
from toolchain.errors import ToolFailed, UsageError

from .conftest import MakeRecording

STATE = {"sm_clock_mhz": "1980", "temperature_c": "50", "throttle": "none"}
F32, F16 = "axpy M=2 N=3 f32", "axpy M=2 N=3 f16"


class Timed:
    """Stands for `tilestack time`: the new kernels take `slower` times as long as the base's."""

    def __init__(self, new: Recording, base: Recording, slower: float = 1.0, status: str = "ok") -> None:
        self.new, self.base, self.slower, self.status = new, base, slower, status
        self.words: list[Sequence[str]] = []

    def __call__(self, words: Sequence[str]) -> int:
        self.words.append(words)
        one, (name, _, other) = words[4], words[words.index("--against") + 1].partition("=")
        rounds = int(words[words.index("--samples") + 1])
        draw = np.random.default_rng(len(self.words))
        times = {str(self.new.root): 100 * self.slower, str(self.base.root): 100.0}
        ours, theirs = (times[path] * np.exp(0.002 * draw.standard_normal(rounds)) for path in (one, other))
        row = BenchmarkRow(
            "ops", F32, "own", "f32", "M=2 N=3", {"M": 2, "N": 3}, self.status, "off by 1" * (self.status != "ok"),  # pyright: ignore[reportArgumentType]
            ours_ms=0.1, peer=f"{name} own", peer_kind="against", gpu_before=STATE, gpu_after=STATE,
            ours_rounds_us=ours.tolist(), peer_rounds_us=theirs.tolist(),
        )  # fmt: skip
        sides = {"bundle": self.new.sha256, "gpu": "NVIDIA H200", "against": {name: {"bundle": "b"}}}
        Results(sides, {}, [row]).save(Path(words[words.index("--output") + 1]) / "nvidia-h200.json")
        return 9 if self.status == "wrong" else 0


@pytest.fixture
def asked(recorded: MakeRecording, tmp_path: Path) -> Asked:
    """The code of f32 differs, that of f16 and bf16 is the same."""
    new, base = recorded("new", {"f32": b"other"}), recorded("base")
    return Asked(new.root, base.root, tmp_path / "gate", accepted=tmp_path / "accepted.toml")


def timed(asked: Asked, slower: float = 1.0, status: str = "ok") -> Timed:
    return Timed(Recording.load(asked.new), Recording.load(asked.base), slower, status)


def test_only_cells_of_other_machine_code_are_measured(asked: Asked) -> None:
    start = timed(asked)
    report = gate(asked, thresholds(), ["again"], start)
    assert report.exit_code == 0 and report.same == 2 and len(start.words) == 1
    pattern = start.words[0][start.words[0].index("--case") + 1]
    assert pattern == f"^(?:{F32.replace(' ', chr(92) + ' ').replace('=', '=')})$"
    assert "2 of 3 cells have the same machine code" in report.markdown()


def test_a_slower_kernel_is_a_regression_that_two_measurements_found(asked: Asked) -> None:
    start = timed(asked, 1.1)
    report = gate(asked, thresholds(), ["again"], start)
    assert report.exit_code == 1 and [cell.key for cell in report.regressions] == [(F32, "own")]
    first, again = start.words
    assert first[4] == again[again.index("--against") + 1].partition("=")[2] == str(asked.new)
    assert f"--accepted {asked.accepted}" in report.markdown()


def test_an_accepted_regression_passes_in_that_recording_alone(asked: Asked, recorded: MakeRecording) -> None:
    report = gate(asked, thresholds(), ["again"], timed(asked, 1.1))

    path = asked.output / "verdicts.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(report.to_json()))
    words = ["--cell", "^axpy", "--reason", "it reads the row twice", "--accepted", str(asked.accepted)]
    assert ci_gate(["accept", str(path), *words]) == 0
    assert gate(asked, thresholds(), ["again"], timed(asked, 1.1)).exit_code == 0
    recorded("new", {"f32": b"yet another"})
    assert gate(asked, thresholds(), ["again"], timed(asked, 1.1)).exit_code == 1


def test_a_wrong_output_is_not_made_good_by_speed(asked: Asked) -> None:
    assert gate(asked, thresholds(), ["again"], timed(asked, 0.5, "wrong")).exit_code == 9


def test_every_cell_must_have_a_verdict(asked: Asked) -> None:
    start = timed(asked)
    report = gate(replace(asked, all_cells=True), thresholds(), ["again"], start)
    assert report.exit_code == 11  # the made-up times have no row of the other two
    assert {cell.case for cell in report.undecided} == {F16, F16.replace("f16", "bf16")}


def test_a_measurement_that_leaves_nothing_is_an_error(asked: Asked) -> None:
    with pytest.raises(ToolFailed, match="wrote 0 results"):
        gate(asked, thresholds(), ["again"], lambda _: 4)


def test_what_is_new_or_gone_is_said_and_not_judged(asked: Asked, recorded: MakeRecording) -> None:
    base = recorded("less", dtypes=("f16",))
    report = gate(replace(asked, base=base.root), thresholds(), ["again"], timed(asked))
    assert report.exit_code == 0 and f"New, with nothing to compare: {F32}." in report.notes
    report = gate(replace(asked, new=base.root), thresholds(), ["again"], timed(asked))
    assert report.exit_code == 0 and f"No longer there: {F32}." in report.markdown()


def test_the_first_op_of_a_repository_has_nothing_to_compare_with(asked: Asked, recorded: MakeRecording) -> None:
    start = timed(asked)
    report = gate(replace(asked, base=recorded("none", dtypes=()).root), thresholds(), ["again"], start)
    assert report.exit_code == 0 and not start.words and not report.cells and len(report.notes) == 3
    with pytest.raises(UsageError, match=r"no timed cell of .* matches"):
        gate(replace(asked, case="^gelu"), thresholds(), ["again"], start)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"symbol": "other"}, 3),  # a name alone
        ({"form": Form(version="13.3")}, 3),  # of the bytecode
        ({"grid": (4, 1, 1)}, 0),
        ({"parameters": [{"array": 0}, {"array": 2}, {"number": ["f32", 0.5]}]}, 0),
    ],
)
def test_what_a_launch_depends_on_counts(recorded: MakeRecording, change: dict[str, object], same: int) -> None:
    one = recorded("one")

    def changed(launch: Launch) -> Launch:
        fields: dict[str, Any] = {**vars(launch), **change}
        return Launch(**fields)

    assert len(same_cells(recorded("other", changed=changed), one)) == same


def test_other_targets_prove_nothing(recorded: MakeRecording) -> None:
    assert same_cells(recorded("one", targets=("sm_90", "sm_100")), recorded("other")) == []
