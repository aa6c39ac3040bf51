"""`tilestack matrix plan`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci.plan.changes import Changes
from tilestack.__main__ import main
from tilestack.cli import matrix_plan


def test_a_plan_is_printed_and_appended_for_the_jobs_that_follow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, summary = tmp_path / "output", tmp_path / "summary"
    output.write_text("before=1\n")
    words = ["--changed", "ci/gate.toml", "--github-output", str(output), "--summary", str(summary)]
    assert main(["matrix", "plan", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["estimate"]["jobs"] == 2
    assert output.read_text().startswith("before=1\ncompile={")
    assert "| `ci/gate.toml` | gate |" in summary.read_text()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (Changes(None, "the base abc is not in this clone"), "planned: everything; the base abc is not in this clone"),
        (Changes([], "nothing differs from abc"), "planned: no job; nothing differs from abc"),
        (
            Changes(["ci/gate/judge.py", "ci/gate/verdict.py"], "2 paths", {"ci/gate/judge.py": "ci/gate/verdict.py"}),
            "planned: what the change reaches; 2 paths",
        ),
    ],
)
def test_a_plan_says_what_is_planned_and_why(
    changes: Changes, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ci.plan.changes.changed_since", lambda _: changes)
    assert main(["matrix", "plan", "--base", "abc", "--summary", str(tmp_path / "summary")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == said
    if changes.renamed:
        assert lines[1] == "ci/gate/judge.py reaches gate: it is ci/gate/verdict.py now"
    assert f"P{said[1:]}." in (tmp_path / "summary").read_text()


def test_a_plan_of_an_event_that_takes_everything_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", "plan", "--event", "nightly"]) == 0
    assert capsys.readouterr().out.startswith("planned: everything; the event nightly takes everything")


def test_a_plan_needs_a_checkout(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_plan, "CHECKOUT", False)
    assert main(["matrix", "plan"]) == 2
    assert "next: clone" in capsys.readouterr().err
