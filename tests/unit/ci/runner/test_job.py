"""A job on one GPU of two; the GPUs are the fakes of conftest.py, the processes are real."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ci.runner import job
from ci.runner.gpus import Gpu, find
from ci.runner.job import Place, run
from ci.runner.lock import hold
from ci.runner.table import load
from tests.unit.processes import ends

from .conftest import Machine


@pytest.fixture
def place(machine: Machine) -> Place:
    machine.gpus(2)
    return Place(machine.folder, machine.folder / "state", replace(load(), free_gib=0), beat=0.05, settle=0.01)


@pytest.fixture
def gpu(place: Place) -> Gpu:  # noqa: ARG001 - the machine must be there
    return find("1", 5)


def said(
    place: Place, gpu: Gpu, *words: str, seconds: float = 120, heard: Callable[[int], object] = lambda _: None
) -> list[Mapping[str, Any]]:
    """`heard` is told how many messages there are, and may wait."""
    messages: list[Mapping[str, Any]] = []

    def say(message: Mapping[str, Any]) -> None:
        messages.append(message)
        heard(len(messages))

    run(place, gpu, "job-1", words, seconds, say)
    return messages


def wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_job_sees_its_gpu_alone(place: Place, gpu: Gpu, tmp_path: Path) -> None:
    third = tmp_path / "third"
    code = f"echo $CUDA_VISIBLE_DEVICES {{gpu}} > {tmp_path}/seen; until [ -e {third} ]; do sleep 0.01; done; exit 3"
    *beats, end = said(place, gpu, "sh", "-c", code, heard=lambda count: count < 3 or third.touch())
    assert end == {"end": "done", "code": 3}
    assert len(beats) >= 3 and all(beat == {"alive": True} for beat in beats)
    assert (tmp_path / "seen").read_text() == "GPU-1 nvidia.com/gpu=GPU-1\n"


def test_without_a_command_it_only_looks(place: Place, gpu: Gpu) -> None:
    assert said(place, gpu) == [{"end": "well"}]


def test_a_gpu_that_is_sick_before_runs_nothing_until_somebody_brings_it_back(
    place: Place, gpu: Gpu, machine: Machine
) -> None:
    machine.kernel_log("NVRM: Xid (PCI:0000:2b:00): 79, pid=1")
    (end,) = said(place, gpu, "touch", f"{machine.folder}/ran")
    assert (end["end"], end["when"]) == ("sick", "before") and "fallen off the bus" in end["why"]
    assert end["back"] == "repair it, then python3 -m ci.runner back GPU-1"
    machine.kernel_log()
    (end,) = said(place, gpu, "touch", f"{machine.folder}/ran")
    assert end["end"] == "sick" and end["why"].startswith("since 20") and "fallen off the bus" in end["why"]
    assert not (machine.folder / "ran").exists()
    assert said(place, find("0", 5)) == [{"end": "well"}]


def test_a_gpu_that_a_job_leaves_sick(place: Place, gpu: Gpu, machine: Machine) -> None:
    log = "NVRM: Xid (PCI:0000:2b:00): 94, pid=1"
    *_, end = said(place, gpu, "sh", "-c", f"echo '{log}' >> {machine.folder}/kernel.log")
    assert (end["end"], end["when"]) == ("sick", "after") and "Xid 94" in end["why"]
    assert gpu.reason(place.state).is_file()


def test_memory_that_is_given_back_late_is_no_fault(
    place: Place, gpu: Gpu, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver lists an ended program for a moment."""
    shown, paused = machine.folder / "answers.json", list[float]()
    machine.says(processes=["GPU-1@7, python3, 99"])
    shown.rename(machine.folder / "busy.json")
    machine.says(processes=[])

    def pause(seconds: float) -> None:
        paused.append(seconds)
        machine.says(processes=[])

    monkeypatch.setattr(job, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    *_, end = said(replace(place, settle=7), gpu, "cp", f"{machine.folder}/busy.json", str(shown))
    assert end == {"end": "done", "code": 0} and paused == [7]


def test_a_job_that_takes_too_long_is_ended_with_what_it_started(place: Place, gpu: Gpu, machine: Machine) -> None:
    pid = machine.folder / "pid"
    words = ["sh", "-c", f"sleep 600 & echo $! > {pid}; wait"]
    *_, end = said(place, gpu, *words, seconds=0.2, heard=lambda count: count > 1 or wait_for(pid))
    assert end == {"end": "late", "why": "ended after 0.2 s"}
    assert ends(int(pid.read_text()))


def test_a_program_that_is_not_there(place: Place, gpu: Gpu) -> None:
    *_, note, end = said(place, gpu, "no-such-program")
    assert "no-such-program" in note["note"] and end == {"end": "done", "code": 127}


def test_one_job_at_a_time(place: Place, gpu: Gpu) -> None:
    with hold(gpu.lock(place.locks), "another job"):
        (end,) = said(place, gpu, "true")
        assert end["end"] == "busy" and end["why"].endswith("with another job")
        assert said(place, find("0", 5)) == [{"end": "well"}]
    assert said(place, gpu, "true")[-1] == {"end": "done", "code": 0}


def test_what_is_left_of_a_lost_job_is_ended(place: Place, gpu: Gpu) -> None:
    code = f"""
import sys, subprocess, time
sys.path.insert(0, {str(Path(__file__).parents[4])!r})
from pathlib import Path
from ci.runner.lock import hold
with hold(Path({str(gpu.lock(place.locks))!r}), "lost") as (descriptor, _):
    print(subprocess.Popen(["sleep", "60"], pass_fds=[descriptor], start_new_session=True).pid, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout
        pid = int(supervisor.stdout.readline())
        supervisor.kill()
    first, second, *_, end = said(place, gpu, "true")
    assert "with lost, which is gone" in first["note"] and first["note"].endswith(f"left: {pid}: they are ended")
    assert second["note"].startswith(f"process {supervisor.pid} with lost ended without giving gpu 1")
    assert end == {"end": "done", "code": 0}


def test_nobody_listens_any_more(place: Place, gpu: Gpu) -> None:
    def closed(message: Mapping[str, Any]) -> None:
        if "alive" in message:
            raise BrokenPipeError

    began = time.monotonic()
    with pytest.raises(BrokenPipeError):
        run(place, gpu, "job-1", ["sleep", "600"], 600, closed)
    assert time.monotonic() - began < 300
    assert said(place, gpu, "true")[-1] == {"end": "done", "code": 0}  # the lock is free, the job is gone
