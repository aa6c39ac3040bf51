"""Steps of a set-up that can be run again: each looks first, and acts only where something is missing."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolchain.errors import ToolchainError, ToolFailed

SECONDS = 1800  # for a command: apt-get on a slow line
BLOCK = 1 << 20

State = Literal["ok", "done", "would", "missing", "not run"]


@dataclass(frozen=True)
class Command:
    """A command that changes this machine."""

    words: Sequence[str]

    def __str__(self) -> str:
        return shlex.join(self.words)

    def act(self) -> None:
        try:
            done = subprocess.run(self.words, capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolchainError(f"{self}: {error}") from error
        if done.returncode:
            raise ToolFailed(self.words, done.returncode, done.stderr or done.stdout, version=self.words[0])


@dataclass(frozen=True)
class Write:
    """A file with this content."""

    path: Path
    content: bytes
    mode: int = 0o644

    def __str__(self) -> str:
        return f"write {self.path} ({len(self.content)} bytes, mode {self.mode:o})"

    def there(self) -> bool:
        if not self.path.is_file():
            return False
        return self.path.read_bytes() == self.content and self.path.stat().st_mode & 0o777 == self.mode

    def act(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(self.content)
        self.path.chmod(self.mode)


@dataclass(frozen=True)
class Fetch:
    """A file of this hash, from the network or, if `source` is a path, from this machine."""

    source: str
    path: Path
    sha256: str

    def __str__(self) -> str:
        return f"fetch {self.source} to {self.path}, only if its sha256 is {self.sha256}"

    def there(self) -> bool:
        if not self.path.is_file():
            return False
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256

    def act(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        begun = self.path.with_suffix(".part")
        digest = hashlib.sha256()
        try:
            address = self.source if "://" in self.source else Path(self.source).absolute().as_uri()
            with urllib.request.urlopen(address, timeout=60) as answer, begun.open("wb") as file:
                while block := answer.read(BLOCK):
                    digest.update(block)
                    file.write(block)
            if digest.hexdigest() != self.sha256:
                raise ToolchainError(
                    f"{self.source} has sha256 {digest.hexdigest()}, not {self.sha256}",
                    hint="compare with the release's page; never install it as it is",
                )
            begun.replace(self.path)
        except (OSError, urllib.error.URLError) as error:
            raise ToolchainError(
                f"{self.source} cannot be fetched: {error}", hint="give a copy of it: --archive FILE"
            ) from error
        finally:
            begun.unlink(missing_ok=True)


@dataclass(frozen=True)
class Step:
    """`missing` says what is missing, or nothing if all is there. `actions` bring it; with none, `advice` says what the
    operator does. `needs`: the names of steps that must be well before."""

    name: str
    missing: Callable[[], str]
    actions: Sequence[Command | Write | Fetch] = ()
    advice: str = ""
    needs: Sequence[str] = ()


@dataclass(frozen=True)
class Result:
    """What became of a step. `lines`: what was done or would be, or why not."""

    name: str
    state: State
    lines: Sequence[str] = ()


def follow(steps: Sequence[Step], *, dry: bool, say: Callable[[Result], object]) -> list[Result]:
    """Take the steps in turn. One that fails ends those that need it, and no others."""
    results: dict[str, Result] = {}
    for step in steps:
        results[step.name] = result = _take(step, results, dry)
        say(result)
    return list(results.values())


def _take(step: Step, before: dict[str, Result], dry: bool) -> Result:
    if lacking := [name for name in step.needs if before[name].state in ("missing", "not run")]:
        return Result(step.name, "not run", [f"needs {', '.join(lacking)}"])
    missing = step.missing()
    if not missing:
        return Result(step.name, "ok")
    if not step.actions:
        return Result(step.name, "missing", [missing, *_next(step.advice)])
    if dry:
        return Result(step.name, "would", [str(action) for action in step.actions])
    try:
        for action in step.actions:
            action.act()
    except (ToolchainError, OSError) as error:
        return Result(step.name, "missing", [missing, *str(error).splitlines(), *_next(step.advice)])
    if still := step.missing():
        return Result(step.name, "missing", [f"after {len(step.actions)} actions: {still}", *_next(step.advice)])
    return Result(step.name, "done", [str(action) for action in step.actions])


def _next(advice: str) -> list[str]:
    return [f"next: {advice}"] if advice else []
