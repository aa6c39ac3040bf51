"""The runners of a real pool: each GPU of this machine, and of others that a command such as ssh reaches."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from toolchain.errors import ToolchainError, UsageError

from .pool import Job, Work

GRACE = 15.0  # seconds for a runner that is asked to end: it gives its job 10
LISTED = 100.0  # seconds for the answer of a machine that is asked for its GPUs


@dataclass(frozen=True)
class Host:
    """A machine with GPUs. `reach`: a command that takes a line for a shell there, such as `ssh gpu-2`; empty for this
    machine. `folder`: of the checkout there. `python`: its Python. `options`: of `ci.runner job`, in words."""

    name: str = "here"
    reach: Sequence[str] = ()
    folder: str = ""
    python: str = sys.executable
    options: Sequence[str] = ()

    @classmethod
    def parse(cls, text: str) -> Host:
        """`gpu-2:/srv/tilestack` is reached with ssh. Raises UsageError."""
        name, colon, folder = text.partition(":")
        if not (name and colon and folder.startswith("/")) or name.startswith("-"):
            raise UsageError(f"--host {text!r} is not HOST:/FOLDER", hint="the folder of a checkout on that machine")
        return cls(name, ("ssh", "-o", "BatchMode=yes", name), folder, "python3")

    def command(self, action: str, *words: str) -> list[str]:
        """An action of `ci.runner` on that machine."""
        called = [self.python, "-m", "ci.runner", action, *words]
        if not self.reach:
            return called
        return [*self.reach, f"cd {shlex.quote(self.folder)} && exec {shlex.join(called)}"]

    def members(self, logs: Path) -> list[Gpu]:
        """Its GPUs as runners. Raises ToolchainError if it does not say which it has."""
        command = self.command("gpus")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LISTED, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolchainError(f"{self.name} does not say which GPUs it has: {error}") from error
        if done.returncode:
            raise ToolchainError(f"{self.name} does not say which GPUs it has:\n{done.stderr.strip()}")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return [Gpu(self, f"{self.name}/{row['index']}", row["name"], row["uuid"], logs) for row in rows]


@dataclass(frozen=True)
class Gpu:
    """A GPU of a host. `logs`: where what its jobs write is kept."""

    host: Host
    name: str
    gpu: str
    uuid: str
    logs: Path

    def start(self, job: Job | None) -> Work:
        words = ["--gpu", self.uuid, *self.host.options]
        if job:
            words += ["--name", f"{job.name} of {os.uname().nodename}", "--seconds", f"{job.seconds:g}"]
            words += ["--", "sh", "-c", job.command]
        return Process(self.host.command("job", *words), self.logs / f"{job.name if job else 'looks'}.{self.uuid}.log")


class Process:
    """`ci.runner job`, here or on another machine."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            self._started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file, start_new_session=True
            )
        assert self._started.stdout is not None
        self._descriptor = self._started.stdout.fileno()
        os.set_blocking(self._descriptor, False)
        self._log, self._rest, self._over = log, b"", ""

    @property
    def over(self) -> str:
        code = self._started.poll()
        return "" if code is None else f"its process ended with {code}; {self._log} has its words"

    def news(self) -> Sequence[Mapping[str, Any]]:
        with suppress(BlockingIOError):
            while block := os.read(self._descriptor, 1 << 16):
                self._rest += block
        *lines, self._rest = self._rest.split(b"\n")
        return [message for line in lines if (message := _message(line)) is not None]

    def stop(self) -> None:
        if self._started.poll() is None:
            self._started.terminate()
            ends = time.monotonic() + GRACE
            while self._started.poll() is None and time.monotonic() < ends:
                time.sleep(0.02)
            self._started.kill()
        self._started.wait()
        if self._started.stdout:
            self._started.stdout.close()


def _message(line: bytes) -> Mapping[str, Any] | None:
    """None for what is no message, such as the greeting of a machine."""
    with suppress(ValueError):
        read = json.loads(line)
        if isinstance(read, dict):
            return cast("Mapping[str, Any]", read)
    return None


class Clock:
    """The time of this machine."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
