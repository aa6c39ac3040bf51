"""`tilestack matrix plan`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def test_a_plan_needs_a_checkout(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_plan, "CHECKOUT", False)
    assert main(["matrix", "plan"]) == 2
    assert "next: clone" in capsys.readouterr().err
