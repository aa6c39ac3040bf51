"""act's command line and its log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ci.workflows import runner, show
from ci.workflows.repository import Repository
from toolchain.errors import ToolFailed


def lines(*entries: dict[str, Any]) -> str:
    common = {"job": "ci/Run  it", "msg": ""}
    return "".join(json.dumps({**common, **entry}) + "\n" for entry in entries)


STEP = {"step": "Test", "stepID": ["1"], "stage": "Main"}
LOG = lines(
    {"raw_output": True, "msg": "\x1b[36mone\x1b[0m\n"},
    {**STEP, "stage": "Pre", "stepResult": "success"},
    {**STEP, "stepID": ["1", "0"], "stepResult": "success"},  # inside an action
    {"command": "error", "arg": "it is wrong", "level": "error"},
    {**STEP, "stepResult": "failure", "executionTime": 1_500_000_000},
    {"jobResult": "failure"},
)


def test_a_log_is_read_as_steps_and_lines() -> None:
    log = runner.Log()
    ended = [found for line in LOG.splitlines() if (found := log.read(line))]
    (job,) = log.jobs.values()
    assert job == runner.Job("ci/Run it", "failure", [runner.Step("Test", "failure", 1.5)], ["one", "it is wrong"])
    assert [show.line(*each) for each in ended] == ["  ci/Run it: Test: failure, 1.5 s", "ci/Run it: failure, 1.5 s"]


def act(tmp_path: Path, text: str, code: int) -> list[str]:
    """The command line of what stands for act: it writes this and ends so."""
    (tmp_path / "log").write_text(text)
    return ["sh", "-c", f"cat {tmp_path / 'log'}; exit {code}"]


def test_the_table_names_the_step_and_ends_with_the_job_s_last_lines(tmp_path: Path) -> None:
    run = runner.run(act(tmp_path, LOG + "Error: Job failed\n", 1), lambda *_: None, tmp_path / "raw")
    shown = list(show.table(run, tmp_path))
    assert shown[1] == "failure       1.5 s  ci/Run it, at the step: Test"
    assert shown[3:5] == ["  one", "  it is wrong"] and "act: Error: Job failed" in shown
    show.write(run, tmp_path)
    assert (tmp_path / "logs/00-ci-Run-it.log").read_text() == "one\nit is wrong\n"


def test_an_act_that_starts_no_job_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="workflow is not valid"):
        runner.run(act(tmp_path, "Error: workflow is not valid\n", 1), lambda *_: None, tmp_path / "raw")


def test_the_command_gives_act_the_clone_and_no_network(tmp_path: Path) -> None:
    options = runner.Options(
        tmp_path, "refs/tags/v1.0.0", "docs", ["target:sm_90"], {"A": "b"}, [tmp_path / "bin"], {"C": "d"}
    )
    repository = Repository(tmp_path / "clone", tmp_path / "event.json", "0" * 40)
    words = runner.command(".github/workflows/ci.yml", "push", repository, [], options)
    assert words[:4] == ["sh", "-c", 'PATH="$0:$PATH" exec "$@"', str(tmp_path / "bin")]
    assert words[-2:] == ["-j", "docs"] and "--action-offline-mode" in words and "--no-skip-checkout" in words
    assert f"GIT_CONFIG_KEY_0=url.file://{tmp_path / 'clone'}.insteadOf" in words
    assert "GITHUB_WORKFLOW_REF=example/repository/.github/workflows/ci.yml@refs/tags/v1.0.0" in words
    assert [words[i + 1] for i, word in enumerate(words) if word in ("--var", "--matrix")] == ["A=b", "target:sm_90"]
