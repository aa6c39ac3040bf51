"""What starts a workflow, and what is said of one that cannot be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.workflows.__main__ import main

JOBS = "jobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps: [{run: 'true'}]\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".github/workflows").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("on: push\n", "push"),
        ('"on": [push, schedule]\n', "push, schedule"),
        ("on:\n  workflow_call:\n", "called by others"),
    ],
)
def test_a_workflow_s_events_are_listed(
    repository: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / ".github/workflows/one.yml").write_text(text + JOBS)
    assert main(["--repository", str(repository)]) == 0
    assert capsys.readouterr().out.split(maxsplit=1) == ["one", f"{said}\n"]


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (JOBS, ["one"], "one.yml says nothing of what starts it"),
        ("- a\n", ["one"], "one.yml says nothing of what starts it"),
        ("on: push\n" + JOBS, ["two"], "no workflow two in"),
        ("on: push\n" + JOBS, ["one", "--event", "schedule"], "one.yml is started by push, not by schedule"),
        ("on: workflow_call\n" + JOBS, ["one"], "not by an event"),
        ("on: push\n" + JOBS, ["one", "--input", "x"], "x: it is no NAME=VALUE"),
    ],
)
def test_what_cannot_be_run_is_said(
    repository: Path, text: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / ".github/workflows/one.yml").write_text(text)
    output = repository / "out"
    assert main([*words, "--repository", str(repository), "--output", str(output)]) == 2
    assert said in capsys.readouterr().err
