from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.cases.cases import Case, DecodeCase, ForwardCase, OpCase
from benchmarks.cases.options import Options
from benchmarks.harness import apart
from benchmarks.report.result import BenchmarkRow, Results
from toolchain.bundles import checkout as checkouts
from toolchain.errors import ConformanceError

OPS: list[Case] = [OpCase("gelu", {"M": 8, "N": 256}), OpCase("softmax", {"M": 8, "N": 257})]
FORWARD, DECODE = ForwardCase("gpt2", 1, 64), DecodeCase("gpt2", 8, 1024)
SCALING = ForwardCase("gpt2", 1, 64, group="scaling", axis="T", compiled=False)


def test_only_models_beside_the_compiler_are_alone() -> None:
    cases = [OPS[0], FORWARD, DECODE, *OPS, SCALING]
    assert apart.parts(cases, ("graph", "compile")) == [[OPS[0]], [FORWARD], [DECODE], [*OPS, SCALING]]
    assert apart.parts(cases, ("eager", "graph")) == [cases]


def test_the_command_names_its_cases_alone() -> None:
    options = Options(Path("b"), Path("o"), sources=["py"], peers=["compile"], limit_s=7, tree={"commit": "c"},
                      against={"old": Path("c"), "e": Path("d")}, at_least=0.97)  # fmt: skip
    argv = apart.command(options, [FORWARD, *OPS], Path("o/1"), 3.5)
    said = options_of(argv)
    wanted = replace(options, output=Path("o/1"), only=["forward", "ops"], case=said.case, stop_after_s=3.5)
    assert said == wanted
    assert "--sources" not in apart.command(replace(options, sources=()), [FORWARD], Path("o/1"), 0)
    chosen = [c for c in [FORWARD, DECODE, *OPS, ForwardCase("gpt2", 1, 640)] if said.case.search(c.name)]
    assert chosen == [FORWARD, *OPS]


def options_of(argv: Sequence[str]) -> Options:
    return command.options(command.parser().parse_args(argv[3:]))


PARTS: list[list[Case]] = [[FORWARD], [DECODE], OPS]


class Processes:
    """Stands in for the processes. Each saves rows for the first of its cases, as many as `saves` says, and exits with
    its code."""

    def __init__(self, codes: Sequence[int], saves: Sequence[int]) -> None:
        self.codes, self.saves, self.started = list(codes), list(saves), 0

    def __call__(self, argv: Sequence[str]) -> int:
        options, number = options_of(argv), self.started
        tree = options.tree or checkouts.commit(options.bundle)
        rows = [
            BenchmarkRow("forward", case.name, "py", "bf16", "", {}, "ok", ours_ms=1.0)
            for case in PARTS[number][: self.saves[number]]
        ]
        if rows:
            Results({"gpu": "none", "driver": "", **tree}, {}, rows).save(options.output / "none.json")
        self.started += 1
        return self.codes[number]


@pytest.mark.parametrize(
    ("codes", "saves", "code"),
    [
        ([0, 0, 0], [1, 1, 2], 0),
        ([0, 1, 0], [1, 1, 2], 1),
        ([ConformanceError.exit_code, -11, 0], [1, 0, 2], ConformanceError.exit_code),
        ([0, -11, 0], [1, 0, 2], 1),
        ([0, 0, 0], [1, 0, 2], 1),
        ([0, 0, -9], [1, 1, 1], 1),
        ([0, 0, 0], [1, 1, 1], 1),
    ],
)
def test_what_one_process_loses_the_others_keep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], codes: list[int], saves: list[int], code: int
) -> None:
    old = tmp_path / "parts" / "1" / "none.json"  # of an earlier run: not ours
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    assert apart.run(Options(Path("b"), tmp_path), PARTS, Processes(codes, saves)) == code
    rows = Results.load(tmp_path / "none.json").rows
    kept = [case.name for part, saved in zip(PARTS, saves, strict=True) for case in part[:saved]]
    assert [row.case for row in rows] == kept
    lost = [
        [f"not measured, their process ended with code {ended}:", *(f"  {case.name}" for case in part[saved:])]
        for part, saved, ended in zip(PARTS, saves, codes, strict=True)
        if part[saved:]
    ]
    assert capsys.readouterr().out.splitlines()[:-1] == [line for lines in lost for line in lines]


def test_a_process_that_stops_in_time_has_lost_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began no case after `--stop-after`. The cases left out are reported and do not count as failures."""
    clock = itertools.count()  # a second passes at each look
    monkeypatch.setattr(apart.time, "perf_counter", lambda: next(clock))
    processes = Processes([0] * 3, [1, 1, 1])
    assert apart.run(Options(Path("b"), tmp_path, stop_after_s=3.5), PARTS, processes) == 0
    assert f"code 0:\n  {OPS[1].name}\n" in capsys.readouterr().out


def test_parts_that_are_written_into_a_checkout_are_of_one_tree(checkout: Path) -> None:
    """The folder is not ignored and its content counts, so the files of one part are new files for the next."""
    output = checkout / "kernels/out"
    options = Options(checkout, output, tree=checkouts.commit(checkout))
    assert apart.run(options, PARTS[:2], Processes([0, 0], [1, 1])) == 0
    assert [row.case for row in Results.load(output / "none.json").rows] == [FORWARD.name, DECODE.name]
    assert checkouts.commit(checkout)["changes"] != Results.load(output / "none.json").environment["changes"] == ""


def test_no_process_is_begun_after_the_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    processes = Processes([0] * 3, [True] * 3)
    apart.run(Options(Path("b"), tmp_path, stop_after_s=1e-9), PARTS, processes)
    assert processes.started == 0
    assert "4 cases are not measured" in capsys.readouterr().out
