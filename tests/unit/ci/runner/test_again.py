"""Jobs whose runner was lost are run again; `gh` is a function, or a script on PATH."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ci.runner.__main__ import main
from ci.runner.again import TRIES, again

GONE = "The self-hosted runner: gpu-1 lost communication with the server. Verify the machine is running."
SICK = "error: this GPU is not fit for a job: 1 of 14 checks failed"
OWN = "Process completed with exit code 9."


class GitHub:
    """Jobs by name, each with its conclusion and annotations."""

    def __init__(self, **jobs: tuple[str, ...]) -> None:
        self.jobs = list(jobs.items())
        self.posted: list[str] = []

    def __call__(self, words: Sequence[str]) -> Any:
        if words[0] == "--method":
            self.posted.append(words[-1])
            return None
        if "/annotations" in words[0]:
            number = int(words[0].split("/")[4])
            return [{"message": message} for message in self.jobs[number][1][1:]]
        page = int(words[0].rpartition("=")[2])
        rows = [{"id": n, "name": name, "conclusion": row[0]} for n, (name, row) in enumerate(self.jobs)]
        return {"jobs": rows[100 * (page - 1) : 100 * page]}


def ran(github: GitHub, attempt: int = 1) -> list[str]:
    said: list[str] = []
    again("own/er", 5, attempt, said.append, github)
    return said


def test_all_that_failed_were_lost() -> None:
    github = GitHub(
        a=("success",), b=("failure", OWN, GONE), c=("failure", SICK), d=("cancelled", GONE), e=("skipped",)
    )
    assert ran(github)[-1] == "run again: 3 jobs"
    assert github.posted == ["repos/own/er/actions/runs/5/rerun-failed-jobs"]


def test_a_job_that_failed_by_itself_is_not_run_again() -> None:
    github = GitHub(a=("failure", OWN), b=("failure", GONE), c=("failure", GONE))
    assert ran(github) == ["a: it failed by itself", f"b: {GONE}", f"c: {GONE}", "run again: b"]
    assert github.posted == ["repos/own/er/actions/jobs/1/rerun"]
    github = GitHub(a=("failure", OWN), b=("cancelled",))
    ran(github)
    assert not github.posted


def test_a_job_that_loses_every_runner_is_given_up() -> None:
    github = GitHub(a=("failure", GONE))
    assert ran(github, TRIES - 1) and github.posted
    github.posted.clear()
    assert "may be what breaks its runners" in ran(github, TRIES)[-1] and not github.posted


def test_jobs_of_further_pages_count() -> None:
    jobs = {f"job-{n}": ("success",) for n in range(100)}
    github = GitHub(**jobs, last=("failure", GONE))
    assert ran(github)[-1] == "run again: 1 jobs"


def test_the_command_asks_gh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = json.dumps({"jobs": [{"id": 3, "name": "a job", "conclusion": "failure"}]})
    (tmp_path / "gh").write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/log\ncase "$*" in *annotations*) echo \'[{{"message": "{GONE}"}}]\';;'
        f" *POST*) ;; *) echo '{jobs}';; esac\n"
    )
    (tmp_path / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    words = ["again", "--repository", "own/er", "--run", "5", "--attempt", "1"]
    assert main(words) == 0 and "run again: 1 jobs" in capsys.readouterr().out
    assert "api --method POST repos/own/er/actions/runs/5/rerun-failed-jobs" in (tmp_path / "log").read_text()
    (tmp_path / "gh").write_text("#!/bin/sh\necho no rights >&2; exit 1\n")
    assert main(words) == 4 and "no rights" in capsys.readouterr().err
