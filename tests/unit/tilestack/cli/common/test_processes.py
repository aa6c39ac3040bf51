"""A command in several processes: one output, all errors, and the exit code of the first that fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilestack.cli.common import processes
from tilestack.cli.common.processes import run_processes

START = subprocess.Popen
# `after` waits until the end of another rank has been seen: till then it is there, if only as a zombie.
FAILS = """\
import os, signal, sys, time
rank = int(os.environ["RANK"])
print("rank", rank, os.environ["WORLD_SIZE"], os.environ["LOCAL_RANK"], *sys.argv[1:], flush=True)
os.symlink(str(os.getpid()), f"{folder}/rank{{rank}}")

def after(other):
    while not os.path.lexists(f"{folder}/rank{{other}}") or os.path.exists(
        "/proc/" + os.readlink(f"{folder}/rank{{other}}")
    ):
        time.sleep(0.01)

"""


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a script in place of tilestack."""

    def run(script: str, count: int) -> int:
        def start(command: list[str], **how: Any) -> subprocess.Popen[bytes]:
            assert command[1:3] == ["-m", "tilestack"]
            code = FAILS.format(folder=tmp_path) + script
            return START([sys.executable, "-S", "-c", code, *command[3:]], **how)

        monkeypatch.setattr(processes.subprocess, "Popen", start)
        return run_processes(["generate", "--devices", str(count)], count)

    return run


def test_the_first_process_is_shown(ranks: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert ranks("", 2) == 0
    assert capfd.readouterr().out == "rank 0 2 0 generate --devices 2\n"


def test_the_exit_code_is_that_of_a_rank_that_fails(ranks: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert ranks("if rank == 1: sys.exit('told')\nif rank == 0: after(1); sys.exit(7)", 2) == 1
    assert "told" in capfd.readouterr().err


def test_a_rank_that_is_killed_and_one_that_does_not_end(
    ranks: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PATIENCE_S", 0.3)
    code = ranks("if rank == 1: after(0); os.kill(os.getpid(), signal.SIGKILL)\nif rank == 2: time.sleep(600)", 3)
    assert code == 137
    assert capfd.readouterr().err.splitlines() == [
        "rank 1 was ended by SIGKILL", "rank 2 has not ended within 0.3 s: killed",
    ]  # fmt: skip
