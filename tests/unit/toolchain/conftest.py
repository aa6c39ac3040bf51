from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

Git = Callable[..., str]


@pytest.fixture
def git() -> Git:
    """Runs git in a folder, whatever this machine's settings of git are; returns what it prints."""
    identity = {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}

    def run(folder: Path, *arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    return run


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that cannot be listed."""
    folder, scandir = tmp_path / "closed", os.scandir
    folder.mkdir()

    def refuse(path: str | Path) -> object:  # root, who may run the tests, may list anything
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    return folder


@pytest.fixture
def signals_end_the_process() -> Generator[None]:
    """SIGTERM and SIGHUP do what they do in a new process, also under nohup; handlers belong to the whole process."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
