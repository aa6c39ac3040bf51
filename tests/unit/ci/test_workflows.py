"""The workflows of .github: the commands that they call exist, and our own runner never runs a pull request."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

import benchmarks.__main__
import tilestack.__main__
from toolchain.knobs import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
PARSERS = {"tilestack": tilestack.__main__.parser, "benchmarks": benchmarks.__main__.parser}
SESSIONS = re.findall(r"@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text())


def load(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text())


def called(pattern: str) -> list[Any]:
    """All matches of a pattern in the scripts of the workflows."""
    jobs = [job for path in WORKFLOWS for job in load(path)["jobs"].values()]
    found = [match for job in jobs for step in job["steps"] for match in re.findall(pattern, step.get("run", ""))]
    assert found
    return found


@pytest.mark.parametrize(("module", "words"), called(r"-m (tilestack|benchmarks) (.*)"))
def test_what_they_call_takes_these_words(module: str, words: str) -> None:
    PARSERS[module]().parse_args([word.replace("$TARGET", "sm_90") for word in shlex.split(words)])


@pytest.mark.parametrize("session", called(r"nox\"? -s (\w+)"))
def test_the_sessions_are_on_the_menu(session: str) -> None:
    assert session in SESSIONS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_runner_of_ours_runs_no_pull_request(path: Path) -> None:
    workflow = load(path)
    triggers: dict[str, Any] = workflow[True]  # YAML takes the word `on` for that
    ours = [job for job in workflow["jobs"].values() if "self-hosted" in job["runs-on"]]
    if ours:
        assert triggers.keys() <= {"push", "workflow_dispatch"}
        assert triggers["push"] == {"branches": ["main"]}
        assert all(job["if"] == "github.ref == 'refs/heads/main'" for job in ours)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_may_read_the_commit_and_no_more(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}
    assert all(job["permissions"] == {"contents": "read"} for job in workflow["jobs"].values())


def test_every_night_all_tests_run() -> None:
    nightly = load(ROOT / ".github/workflows/nightly.yml")
    assert nightly[True]["schedule"]
    (job,) = nightly["jobs"].values()
    assert any(".ci/run" in step.get("run", "") for step in job["steps"])
    (tests,) = re.findall(r"nox -s tests -- (.*)", (ROOT / ".ci/run").read_text())
    assert "--all" in tests.split()
