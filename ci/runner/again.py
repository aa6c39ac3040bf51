"""Runs the jobs of a workflow again whose runner was lost or whose GPU was found sick. A job that failed by itself is
not: it would fail again.

Only annotations tell: GitHub writes one for a lost runner, and the check before a job (job-started.sh) one for a GPU.
GitHub is asked with its own program `gh`, which takes the token from its environment.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolchain.errors import ToolFailed

LOST = re.compile(r"lost communication with the server|this GPU is not fit for a job")
TRIES = 3  # runs of one workflow at most, the first among them: a job may be what breaks its runners
PAGE = 100  # of what GitHub lists, at most

Ask = Callable[[Sequence[str]], Any]


@dataclass(frozen=True)
class Failed:
    """A job that failed. `lost`: what its annotations say of its runner; empty if they say nothing."""

    number: int
    name: str
    lost: str


def gh(words: Sequence[str]) -> Any:
    """What `gh api` answers. Raises ToolFailed."""
    line = ["gh", "api", *words]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolFailed(line, 127, str(error), version="gh", hint="it is on GitHub's machines") from error
    if done.returncode:
        raise ToolFailed(line, done.returncode, done.stderr.strip(), version="gh", hint="may the token do this?")
    return json.loads(done.stdout) if done.stdout.strip() else None


def failed(repository: str, run: int, ask: Ask) -> list[Failed]:
    """The jobs of a run's last attempt that failed."""
    listed, page = list[Any](), 1
    while True:
        found = ask([f"repos/{repository}/actions/runs/{run}/jobs?filter=latest&per_page={PAGE}&page={page}"])["jobs"]
        listed += found
        if len(found) < PAGE:
            break
        page += 1
    jobs: list[Failed] = []
    for job in listed:
        if job["conclusion"] not in ("failure", "cancelled"):
            continue
        notes = ask([f"repos/{repository}/check-runs/{job['id']}/annotations?per_page={PAGE}"])
        said = (str(note["message"]) for note in notes)
        lost = next((line for line in said if LOST.search(line)), "")
        jobs.append(Failed(job["id"], job["name"], lost))
    return jobs


def again(repository: str, run: int, attempt: int, say: Callable[[str], object], ask: Ask = gh) -> int:
    """Plans the lost jobs of a run anew. Returns how many. Where others failed by themselves, one lost job is run again
    at a time, for GitHub can only run all that failed or one; the end of that attempt calls this again."""
    found = failed(repository, run, ask)
    lost = [job for job in found if job.lost]
    for job in found:
        say(f"{job.name}: {job.lost.splitlines()[0]}" if job.lost else f"{job.name}: it failed by itself")
    if not lost:
        return 0
    if attempt >= TRIES:
        say(f"not run again: {attempt} attempts, and {TRIES} is the most; a job may be what breaks its runners")
        return 0
    if len(lost) == len(found):
        ask(["--method", "POST", f"repos/{repository}/actions/runs/{run}/rerun-failed-jobs"])
        say(f"run again: {len(lost)} jobs")
        return len(lost)
    ask(["--method", "POST", f"repos/{repository}/actions/jobs/{lost[0].number}/rerun"])
    say(f"run again: {lost[0].name}")
    return 1
