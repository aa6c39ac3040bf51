from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import apart
from benchmarks.cases import Case, DecodeCase, ForwardCase, OpCase
from benchmarks.options import Options
from benchmarks.result import Results, Row
from toolchain.errors import ConformanceError

OPS: list[Case] = [OpCase("gelu", {"M": 8, "N": 256}), OpCase("softmax", {"M": 8, "N": 257})]
FORWARD, DECODE = ForwardCase("gpt2", 1, 64), DecodeCase("gpt2", 8, 1024)
SCALING = ForwardCase("gpt2", 1, 64, group="scaling", axis="T")


def test_only_models_beside_the_compiler_are_alone() -> None:
    cases = [OPS[0], FORWARD, DECODE, *OPS, SCALING]
    assert apart.parts(cases, ("graph", "compile")) == [[OPS[0]], [FORWARD], [DECODE], [*OPS, SCALING]]
    assert apart.parts(cases, ("eager", "graph")) == [cases]


def test_the_command_names_its_cases_alone() -> None:
    options = Options(Path("b"), Path("o"), sources=("py",), peers=("compile",), limit_s=7)
    argv = apart.command(options, [FORWARD, *OPS], Path("o/1"), 3.5)
    said = dict(zip(argv[4::2], argv[5::2], strict=True))
    assert said["--only"] == "forward,ops"
    assert (said["--peers"], said["--sources"], said["--limit"], said["--stop-after"]) == ("compile", "py", "7", "3.5")
    assert "--sources" not in apart.command(replace(options, sources=()), [FORWARD], Path("o/1"), 0)
    chosen = [c for c in [FORWARD, DECODE, *OPS, ForwardCase("gpt2", 1, 640)] if re.search(said["--case"], c.name)]
    assert chosen == [FORWARD, *OPS]


class Processes:
    """Stands for the processes: each saves a row of its case, but for those that crash."""

    def __init__(self, codes: Sequence[int], saves: Sequence[bool]) -> None:
        self.codes, self.saves, self.started = list(codes), list(saves), 0

    def __call__(self, argv: Sequence[str]) -> int:
        said = dict(zip(argv[4::2], argv[5::2], strict=True))
        if self.saves[self.started]:
            row = Row("forward", f"case {self.started}", "py", "bf16", "", {}, "ok", ours_ms=1.0)
            environment = {"gpu": "none", "driver": "1", "commit": "c", "changes": ""}
            Results(environment, {}, [row]).save(Path(said["--output"]) / "none.json")
        self.started += 1
        return self.codes[self.started - 1]


PARTS: list[list[Case]] = [[FORWARD], [DECODE], OPS]


@pytest.mark.parametrize(
    ("codes", "saves", "code"),
    [
        ([0, 0, 0], [True, True, True], 0),
        ([0, 1, 0], [True, True, True], 1),
        ([ConformanceError.exit_code, -11, 0], [True, False, True], ConformanceError.exit_code),
        ([0, -11, 0], [True, False, True], 1),
        ([0, 0, 0], [True, False, True], 1),
    ],
)
def test_what_one_process_loses_the_others_keep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], codes: list[int], saves: list[bool], code: int
) -> None:
    old = tmp_path / "parts" / "1" / "none.json"  # of an earlier run: not ours
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    assert apart.run(Options(Path("b"), tmp_path), PARTS, Processes(codes, saves)) == code
    rows = Results.load(tmp_path / "none.json").rows
    assert [row.case for row in rows] == [f"case {n}" for n, saved in enumerate(saves) if saved]
    assert ("left no results" in capsys.readouterr().out) == (False in saves)


def test_no_process_is_begun_after_the_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    processes = Processes([0] * 3, [True] * 3)
    apart.run(Options(Path("b"), tmp_path, stop_after_s=1e-9), PARTS, processes)
    assert processes.started == 0
    assert "4 cases are not measured" in capsys.readouterr().out
