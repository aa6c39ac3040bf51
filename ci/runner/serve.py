"""Takes one job after the other. Each has a runner of its own: registered just in time, unpacked anew, gone afterwards.

The token comes on standard input and stays in this process, which is root's; jobs run as another user. A registration
is good for one job. Its format: "Create configuration for a just-in-time runner" in GitHub's REST API.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.errors import DeviceError, ToolchainError, UsageError
from toolchain.tables import check_keys, read_table, text, texts

from . import health
from .table import load

API = "https://api.github.com"
HOOK = "ACTIONS_RUNNER_HOOK_JOB_STARTED"
VERSION = "2022-11-28"  # of the interface


@dataclass(frozen=True)
class Settings:
    """What set-up wrote: whose runner this is."""

    repository: str
    runner: str
    labels: Sequence[str]
    user: str

    @classmethod
    def load(cls, path: Path) -> Settings:
        """Raises UsageError if set-up has not run, or the file is damaged."""
        table = read_table(path)
        check_keys(table, {"repository": text, "runner": text, "labels": texts, "user": text}, str(path))
        return cls(**table)


@dataclass(frozen=True)
class GitHub:
    """The part of GitHub's interface that adds and removes runners of a repository."""

    repository: str
    token: str
    api: str = API

    def __repr__(self) -> str:  # a traceback must not show the token
        return f"GitHub({self.repository!r})"

    def register(self, name: str, labels: Sequence[str]) -> tuple[int, str]:
        """A runner for one job: its number, and the configuration that it starts with. Raises ToolchainError."""
        wanted = {"name": name, "runner_group_id": 1, "labels": list(labels), "work_folder": "_work"}
        made = self._ask("POST", "generate-jitconfig", wanted)
        return int(made["runner"]["id"]), str(made["encoded_jit_config"])

    def remove(self, number: int) -> None:
        """A runner that had its job is gone already."""
        self._ask("DELETE", str(number), None, fine=404)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None, fine: int = 0) -> Any:
        request = urllib.request.Request(
            f"{self.api}/repos/{self.repository}/actions/runners/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.token}", "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": VERSION,
            },
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                if error.code == fine:
                    return None
                said = error.read(500).decode(errors="replace")
            raise ToolchainError(
                f"GitHub refused {method} of a runner for {self.repository}: {error.code} {said}",
                hint="the token must be allowed to administer the repository, and be valid still",
            ) from error
        except OSError as error:
            raise ToolchainError(f"GitHub does not answer: {error}") from error
        return json.loads(content) if content else None


def serve(
    settings: Settings, github: GitHub, state: Path, hook: Path, *, say: Callable[[str], object], jobs: int = 0
) -> None:
    """Take jobs until the GPU is sick, which raises DeviceError and leaves `state`/sick.json. `jobs`: how many at most,
    0 for no end."""
    archive, reason, taken = state / "actions-runner.tar.gz", state / "sick.json", 0
    if not archive.is_file():
        raise UsageError(f"no {archive}", hint="python3 -m ci.runner setup")
    while True:
        if reason.exists():
            raise DeviceError(f"this runner is out of service: {reason} says why", hint=f"repair it, then rm {reason}")
        findings = health.check(load(), state)
        if sick := health.faults(findings):
            health.write_reason(reason, findings)
            lines = "\n  ".join(map(str, sick))
            raise DeviceError(f"the GPU takes no more jobs:\n  {lines}", hint=f"repair it, then rm {reason}")
        if jobs and taken == jobs:
            return
        name = f"{settings.runner}-{uuid.uuid4().hex[:12]}"
        number, configuration = github.register(name, settings.labels)
        say(f"{name}: waits for a job")
        try:
            code = _one_job(settings, archive, state / "job", hook, configuration)
        finally:
            github.remove(number)
        say(f"{name}: the runner ended with {code}")
        if code:
            raise ToolchainError(f"GitHub's runner ended with {code}", hint="its words are above; is it too old?")
        taken += 1


def _one_job(settings: Settings, archive: Path, folder: Path, hook: Path, configuration: str) -> int:
    """Unpack a fresh runner, let it do its job, and remove all that it left."""
    if folder.exists():  # of a service that was killed
        shutil.rmtree(folder)
    user = pwd.getpwnam(settings.user)
    folder.mkdir(parents=True)
    try:
        subprocess.run(["tar", "--no-same-owner", "-xzf", str(archive), "-C", str(folder)], check=True)
        (folder / ".env").write_text(f"{HOOK}={hook}\n")
        root = os.getuid() == 0
        for path in (folder, *folder.rglob("*")) if root else ():
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        started = subprocess.Popen(
            [str(folder / "run.sh"), "--jitconfig", configuration],
            cwd=folder,
            env={"HOME": str(folder), "USER": user.pw_name, "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            user=user.pw_uid if root else None,
            group=user.pw_gid if root else None,
            extra_groups=os.getgrouplist(user.pw_name, user.pw_gid) if root else None,
        )
        try:
            return started.wait()
        finally:
            _end(started)
    finally:
        shutil.rmtree(folder)


def _end(started: subprocess.Popen[bytes]) -> None:
    """Ends what the job left running: it has a session of its own."""
    if started.poll() is None:
        started.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it is killed below
            started.wait(timeout=60)
    try:
        os.killpg(started.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    started.wait()
