"""Which commands a mutation meets, and what their ends say; the commands are not the real ones."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ci.plan import mutations
from ci.plan.graph import Graph, Reach
from ci.plan.mutate import Mutation
from ci.plan.mutations import Row, judge, left, mirrored, table, wider
from toolchain.errors import UsageError

MUTANT = Mutation("ci/a.py", 1, 4, 5, "1", "2")
REACH = Reach("ci/a.py", "imported by what these stages run", frozenset({"gate"}))
Answer = Callable[[str, str], tuple[int, str]]  # of a command and the line as it is: exit code and output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "ci/a.py": "x = 1\n", "ci/b.py": "", "tests/unit/ci/test_a.py": "", "tests/unit/ci/test_b.py": "",
        "tests/compile/ci/test_a.py": "", "tests/unit/other/test_c.py": "from ci import a, b\n",
        "tests/unit/other/test_d.py": "from ci.ab import c\n", "tests/unit/ci/test_e.py": "from ci.a import x\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def judged(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer, stages: Sequence[str] = ("gate",)) -> Row:
    def run(words: Sequence[str], **_: Any) -> Any:
        code, said = answer(" ".join(words), (folder / "ci/a.py").read_text())
        return SimpleNamespace(returncode=code, stdout=said)

    monkeypatch.setattr(mutations.subprocess, "run", run)
    return judge(MUTANT, REACH, stages, [], [], folder)


def test_the_tests_of_a_path_then_those_that_know_it(folder: Path) -> None:
    assert mirrored("ci/a.py", folder) == ["tests/unit/ci/test_a.py", "tests/compile/ci/test_a.py"]
    assert len(mirrored("ci/new.py", folder)) == 4  # none is named so: all of the folder
    found = wider("ci/a.py", ["ci/b.py"], folder)
    assert found == ["tests/unit/ci/test_e.py", "tests/unit/other/test_c.py", "tests/unit/ci/test_b.py"]


def test_a_test_that_fails_on_the_mutant_alone_catches_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def answer(line: str, text: str) -> tuple[int, str]:
        ran.append(line)
        return (1, "FAILED tests/unit/ci/test_a.py::test_x - no\n") if text == "x = 2\n" else (0, "")

    row = judged(folder, monkeypatch, answer)
    assert (row.verdict, row.by) == ("caught", "tests") and len(ran) == 2
    assert ran[1].endswith(
        "no:cacheprovider tests/unit/ci/test_a.py::test_x"
    )  # the line as it was, and that test alone
    assert (folder / "ci/a.py").read_text() == "x = 1\n"


def test_what_fails_on_the_line_as_it_was_has_caught_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = judged(folder, monkeypatch, lambda _line, _text: (1, ""))
    assert row.verdict == "survived" and len(row.ran) == 6  # two of tests, one of the interpreter, each twice


@pytest.mark.parametrize(("stages", "verdict"), [(["compile"], "caught"), ([], "missed")])
def test_what_only_the_interpreter_finds_is_missed_by_a_plan_without_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stages: list[str], verdict: str
) -> None:
    row = judged(folder, monkeypatch, lambda line, text: (9 * ("matrix run" in line and "2" in text), ""), stages)
    assert (row.verdict, row.by) == (verdict, "interpreter")


def test_a_machine_that_is_too_busy_catches_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*_: str) -> tuple[int, str]:
        raise subprocess.TimeoutExpired("words", 1)

    assert judged(folder, monkeypatch, answer).verdict == "survived"


def test_no_test_at_all_is_no_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(folder, monkeypatch, lambda line, _: (5 * ("pytest" in line), "")).verdict == "survived"


def test_the_table_counts_by_what_the_plan_has() -> None:
    rows = [
        Row(MUTANT, [], "w", [], "caught", "tests"), Row(MUTANT, [], "no GPU", [], "missed", "interpreter"),
        Row(MUTANT, ["compile"], "w", ["gelu"], "caught", "interpreter"), Row(MUTANT, ["gate"], "w", []),
    ]  # fmt: skip
    said = "\n".join(table(rows))
    for line in (
        "| tests alone | 2 | 1 | 0 | 1 | 0 |", "| some ops | 1 | 0 | 1 | 0 | 0 |",
        "| some stages, every op | 1 | 0 | 0 | 0 | 1 |",
        "| ci/a.py:1:5: `1` becomes `2` | missed | tests alone: no GPU |",
    ):  # fmt: skip
        assert line in said


def test_those_that_were_not_caught_are_taken_again(tmp_path: Path) -> None:
    rows = [{"mutation": vars(MUTANT), "verdict": verdict} for verdict in ("caught", "survived")]
    (tmp_path / "out.json").write_text(json.dumps(rows))
    assert left(tmp_path / "out.json") == [MUTANT]
    (tmp_path / "out.json").write_text("{}")
    assert left(tmp_path / "out.json") == []
    (tmp_path / "out.json").write_text('[{"verdict": "survived"}]')
    with pytest.raises(UsageError, match=r"no output of ci\.plan\.mutations"):
        left(tmp_path / "out.json")


def test_who_imports_a_file(graph: Graph) -> None:
    assert "ci/plan/jobs.py" in graph.importers("ci/plan/graph.py") and graph.importers("kernels_mlir/gelu.mlir") == []
