"""Runs act, and reads its log: a JSON document a line."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolchain.errors import ToolFailed

from .actions import Found
from .repository import MAIN, NAME, TOKEN, Repository

ACT = Path(sys.executable).parent / "act"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Step:
    """A step that has ended: `result` is success, failure or skipped."""

    name: str
    result: str
    seconds: float


@dataclass
class Job:
    """A job that was started. `result`: success or failure, or empty if it never ended. `lines`: what its steps
    wrote."""

    name: str
    result: str = ""
    steps: list[Step] = field(default_factory=list[Step])
    lines: list[str] = field(default_factory=list[str])
    summary: str = ""

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def failed(self) -> str:
        """The name of the first step that failed."""
        return next((step.name for step in self.steps if step.result == "failure"), "")


@dataclass(frozen=True)
class Run:
    """What came of a workflow. `errors`: of act itself, which belong to no step."""

    code: int
    jobs: Sequence[Job]
    errors: Sequence[str]


@dataclass(frozen=True)
class Options:
    """`job`: this one and what it needs. `matrix`: only jobs with these values. `variables`: of the repository, `vars`.
    `path`: folders before PATH. `scratch`: where act works, emptied by the caller. `ref`: of the event.
    `local`: folders of repositories whose workflows are called, by OWNER/NAME@REF."""

    scratch: Path
    ref: str = MAIN
    job: str = ""
    matrix: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    path: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    local: Mapping[str, Path] = field(default_factory=dict[str, Path])


def command(workflow: str, event: str, repository: Repository, actions: Iterable[Found], options: Options) -> list[str]:
    """act's command line: jobs on this machine, the clone for GitHub's repository, no fetch of an action."""
    run = f"{NAME}/{workflow}@{options.ref}"  # which act leaves out
    environment = {**repository.environment, "STAND_IN": str(options.scratch), "GITHUB_WORKFLOW_REF": run}
    environment["UV_LINK_MODE"] = "hardlink"  # each job installs the toolchain, 1.4 GB, into a folder that nobody keeps
    environment |= options.environment
    words = [
        str(ACT), event, "-C", str(repository.folder), "-W", str(repository.folder / workflow),
        "-e", str(repository.event), "--json", "--no-skip-checkout", "--action-offline-mode", "--no-cache-server",
        "--action-cache-path", str(options.scratch / "act"), "-P", "ubuntu-24.04=-self-hosted",
        "-P", "self-hosted=-self-hosted", "-s", f"GITHUB_TOKEN={TOKEN}", "--artifact-server-addr", "127.0.0.1",
        "--artifact-server-port", str(_free_port()), "--artifact-server-path", str(options.scratch / "server"),
    ]  # fmt: skip
    for found in actions:
        used = found.used
        words += ["--local-repository", f"https://github.com/{used.name}@{used.commit}={found.folder}"]
    for name, folder in options.local.items():
        words += ["--local-repository", f"https://github.com/{name}={folder}"]
    for key, values in (("--env", environment), ("--var", options.variables)):
        words += [word for name, value in values.items() for word in (key, f"{name}={value}")]
    words += [word for value in options.matrix for word in ("--matrix", value)]
    words += ["-j", options.job] if options.job else []
    if not options.path:
        return words
    return ["sh", "-c", 'PATH="$0:$PATH" exec "$@"', ":".join(map(str, options.path)), *words]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Log:
    """Makes jobs of act's lines."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.errors: list[str] = []

    def read(self, line: str) -> tuple[Job, Step | None] | None:
        """Takes a line. Returns the job and, at the end of a step, the step; a job that ended has its result. Other
        lines return None."""
        try:
            entry: dict[str, Any] = json.loads(line)
        except ValueError:
            if line.strip():
                self.errors.append(line.strip())
            return None
        said = COLOURS.sub("", str(entry.get("msg", ""))).rstrip()
        if "job" not in entry:
            if entry.get("level") in ("error", "fatal"):
                self.errors.append(said)
            return None
        job = self.jobs.setdefault(" ".join(entry["job"].split()), Job(" ".join(entry["job"].split())))
        if entry.get("raw_output"):
            job.lines.append(said)
        elif entry.get("command") == "error" or entry.get("level") == "error":
            job.lines.append(str(entry.get("arg") or said))
        elif entry.get("command") == "summary" or said.lstrip("⚙ ").startswith("Summary - "):
            job.summary += said.partition("Summary - ")[2] + "\n"
        if "jobResult" in entry:
            job.result = entry["jobResult"]
            return job, None
        whole = len(entry.get("stepID", ())) == 1  # else a step inside an action
        if "stepResult" in entry and entry.get("stage") == "Main" and whole:
            step = Step(entry["step"], entry["stepResult"], entry.get("executionTime", 0) / 1e9)
            job.steps.append(step)
            return job, step
        return None


def run(words: Sequence[str], told: Callable[[Job, Step | None], None], raw: Path) -> Run:
    """Run act. `told` hears of each step and job that ends; `raw` keeps act's own lines. Raises ToolFailed if it ends
    before any job."""
    log = Log()
    piped = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with raw.open("w") as kept, piped as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                kept.write(line)
                if ended := log.read(line):
                    told(*ended)
        except BaseException:
            process.terminate()  # act ends its jobs
            raise
        code = process.wait()
    if not log.jobs:
        raise ToolFailed(words, code, "\n".join(log.errors), version="act", hint="nox -s lint checks the workflows")
    ran = [job for job in log.jobs.values() if job.result or job.steps or job.lines]  # else it called a workflow
    return Run(code, ran, log.errors)
