"""Locks of real processes, some of which are killed."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ci.runner.lock import Held, Holder, end_stale, hold, read
from tests.unit.processes import ends, runs
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

# Holds the lock, has a child that has it too and a grandchild that has not, tells their numbers, and waits.
HOLDER = """
import os, subprocess, sys, time
from pathlib import Path
from ci.runner.lock import hold
with hold(Path(sys.argv[1]), "job-1") as (descriptor, before):
    code = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], pass_fds=[descriptor], start_new_session=True)
    print(child.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gpu.lock"


def holder(path: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A process with the lock, and the numbers of its child and grandchild."""
    started = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert started.stdout
    with started.stdout as lines:
        return started, [int(lines.readline()), int(lines.readline())]


def test_one_has_it_and_gives_it_back(path: Path) -> None:
    with hold(path, "job-1") as (_, before):
        assert before is None
        with pytest.raises(Held, match=f"held by process {os.getpid()} with job-1\n  next: wait for its end") as found:
            hold(path, "job-2").__enter__()
        assert not found.value.stale and found.value.holder == read(path)
    with hold(path, "job-2") as (_, before):
        assert before is None


def test_it_is_given_back_after_an_error_too(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold(path, "job-1"):
        raise ZeroDivisionError
    with hold(path, "job-2") as (_, before):
        assert before is None


def test_a_job_whose_supervisor_was_killed_still_has_its_gpu_until_it_is_ended(path: Path) -> None:
    started, job = holder(path)
    try:
        with pytest.raises(Held, match="with job-1") as found:
            hold(path, "job-2").__enter__()
        assert not found.value.stale
        started.kill()
        started.wait()
        with pytest.raises(Held, match="with job-1, which is gone; processes of its job are left: ") as found:
            hold(path, "job-2").__enter__()
        assert found.value.stale and all(map(runs, job))
        assert end_stale(path) == sorted(job)
        assert not any(map(runs, job))
        with hold(path, "job-2") as (_, before):
            assert before is not None and before.job == "job-1" and not before.alive
    finally:
        started.kill()
        started.wait()
        for pid in filter(runs, job):
            os.kill(pid, signal.SIGKILL)


def test_the_end_of_all_of_them_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those without the lock too, which nothing else shows."""
    started, job = holder(path)
    started.kill()
    started.wait()
    kill = os.kill
    late = threading.Timer(0.3, kill, (job[1], signal.SIGKILL))
    monkeypatch.setattr("os.kill", lambda pid, number: late.start() if pid == job[1] else kill(pid, number))
    try:
        assert end_stale(path) == sorted(job)
        assert not any(map(runs, job))
    finally:
        late.join()


def test_one_that_waits_for_the_lock_is_not_taken_for_a_holder(path: Path) -> None:
    """It has the file open, as every holder has."""
    waits = f"import time; file = open({str(path)!r}, 'r+'); print('open', flush=True); time.sleep(60)"
    with hold(path, "job-1"):
        pass
    with subprocess.Popen([sys.executable, "-c", waits], stdout=subprocess.PIPE) as waiting:
        try:
            assert waiting.stdout and waiting.stdout.readline()
            assert end_stale(path) == [] and waiting.poll() is None
        finally:
            waiting.kill()


def test_a_number_that_another_process_has_now_is_not_the_holder() -> None:
    here = Holder(os.getpid(), 1, "job")
    assert not here.alive
    assert not Holder(2**22 + 1, 1, "job").alive


def test_a_zombie_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    assert ends(child.pid)
    started = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
    assert not Holder(child.pid, started, "job").alive
    child.wait()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_a_file_that_says_nothing_is_read_as_nobody(path: Path, content: str) -> None:
    path.write_text(content)
    assert read(path) is None
    with hold(path, "job-1") as (_, before):
        assert before is None and json.loads(path.read_text())["job"] == "job-1"
    assert path.read_text() == ""


def test_every_user_may_lock(path: Path) -> None:
    with hold(path, "job-1"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o666
    with pytest.raises(UsageError, match=r"no lock .*\n  next: --locks names a folder that all may write"):
        hold(path / "no-folder" / "x", "job").__enter__()
