"""Takes one job after the other. Each has a runner of its own: registered just in time, unpacked anew, gone afterwards.

The token comes on standard input and stays in this process, which is root's; jobs run as another user. A registration
is good for one job. Its format: "Create configuration for a just-in-time runner" in GitHub's REST API.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from toolchain.errors import DeviceError, ToolchainError, UsageError
from toolchain.tables import check_keys, read_table, text, texts

from . import health
from .gpus import Gpu
from .listener import Waits, Watch, unpacked
from .lock import Held, end_stale, hold
from .table import load

API = "https://api.github.com"
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

    def is_busy(self, number: int) -> bool | None:
        """True if the runner has a job; None if GitHub no longer knows the runner. Raises ToolchainError."""
        found = self._ask("GET", str(number), None, fine=404)
        return None if found is None else bool(found["busy"])

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


@dataclass(frozen=True)
class Slot:
    """The machine or GPU that a service takes jobs for: the whole machine if there is no `gpu`. `state`: the folder of
    the service. `locks`: the folder of the GPUs' locks."""

    state: Path
    locks: Path
    gpu: Gpu | None = None

    @property
    def reason(self) -> Path:
        """Where it says why it takes no jobs."""
        return self.gpu.reason(self.state) if self.gpu else self.state / "sick.json"

    @property
    def back(self) -> str:
        """How somebody who has repaired it says so."""
        return f"python3 -m ci.runner back {self.gpu.uuid}" if self.gpu else f"rm {self.reason}"

    @property
    def folder(self) -> Path:
        """Of its job."""
        return self.state / (f"job-{self.gpu.uuid}" if self.gpu else "job")

    @contextmanager
    def held(self, say: Callable[[str], object]) -> Generator[int | None]:
        """The lock of the GPU; what a service that was killed left running on it is ended. Raises Held."""
        if self.gpu is None:
            yield None
            return
        path, name = self.gpu.lock(self.locks), "a runner of GitHub"
        try:
            with hold(path, name) as (descriptor, _):
                yield descriptor
        except Held as held:
            if not held.stale:
                raise
            say(f"{held.args[0]}: they are ended")
            end_stale(path)
            with hold(path, name) as (descriptor, _):
                yield descriptor


def serve(
    settings: Settings, github: GitHub, slot: Slot, hook: Path, *, say: Callable[[str], object], jobs: int = 0,
    waits: Waits | None = None,
) -> None:  # fmt: skip
    """Take jobs until the GPU is sick, which raises DeviceError and leaves the slot's reason. `jobs`: how many at most,
    0 for no end. Raises ToolchainError if GitHub or its runner refuses, or if several runners in a row fail."""
    archive, waits = slot.state / "actions-runner.tar.gz", waits or Waits.load()
    if not archive.is_file():
        raise UsageError(f"no {archive}", hint="python3 -m ci.runner setup")
    with slot.held(say) as lock:
        _serve(settings, github, slot, lock, hook, say, jobs, waits)


def _serve(
    settings: Settings, github: GitHub, slot: Slot, lock: int | None, hook: Path, say: Callable[[str], object],
    jobs: int, waits: Waits,
) -> None:  # fmt: skip
    archive, taken, failed = slot.state / "actions-runner.tar.gz", 0, 0
    prefix = f"{settings.runner}-{slot.gpu.index}" if slot.gpu else settings.runner
    while True:
        _check_health(slot)
        if jobs and taken == jobs:
            return
        name = f"{prefix}-{uuid.uuid4().hex[:12]}"
        number, configuration = github.register(name, settings.labels)
        say(f"{name}: waits for a job")
        began = time.monotonic()
        try:
            only = slot.gpu.uuid if slot.gpu else ""
            with unpacked(archive, slot.folder, hook, settings.user, only, lock) as listener:
                watch = Watch(partial(github.is_busy, number), waits, say)
                end = listener.job(configuration, watch, waits, say)
        finally:
            github.remove(number)
        say(f"{name}: the runner {end.means}")
        if end.then == "stop":
            raise ToolchainError(f"GitHub's runner {end.means}", hint=end.hint)
        taken += end.then == "done"
        failed = failed + 1 if end.then == "anew" else 0
        if failed == waits.tries:
            raise ToolchainError(f"{failed} runners in a row failed, the last {end.means}", hint=end.hint)
        if failed:
            time.sleep(min(waits.pause * 2**failed, waits.longest))
        elif time.monotonic() - began < waits.quick:  # it had hardly a job, and GitHub is not to be asked so often
            time.sleep(waits.pause)


def _check_health(slot: Slot) -> None:
    """Raises DeviceError if the GPU is sick, or was and nobody has said that it is repaired."""
    if slot.reason.exists():
        raise DeviceError(f"this runner is out of service: {slot.reason} says why", hint=f"repair it, then {slot.back}")
    only = (slot.gpu.uuid, slot.gpu.address) if slot.gpu else ("", "")
    findings = health.check(load(), slot.state, *only)
    if sick := health.faults(findings):
        health.write_reason(slot.reason, findings)
        lines = "\n  ".join(map(str, sick))
        raise DeviceError(f"the GPU takes no more jobs:\n  {lines}", hint=f"repair it, then {slot.back}")
