"""A job on one GPU of two; the GPUs are the fakes of conftest.py, the processes are real."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ci.runner.gpus import Gpu, find
from ci.runner.job import Place, run
from ci.runner.lock import hold
from ci.runner.table import load

from .conftest import Machine


@pytest.fixture
def place(machine: Machine) -> Place:
    machine.gpus(2)
    return Place(machine.folder, machine.folder / "state", replace(load(), free_gib=0), beat=0.05, settle=0.01)


@pytest.fixture
def gpu(place: Place) -> Gpu:  # noqa: ARG001 - the machine must be there
    return find("1", 5)


def said(place: Place, gpu: Gpu, *words: str, seconds: float = 20) -> list[Mapping[str, Any]]:
    messages: list[Mapping[str, Any]] = []
    run(place, gpu, "job-1", words, seconds, messages.append)
    return messages


def test_a_job_sees_its_gpu_alone(place: Place, gpu: Gpu, tmp_path: Path) -> None:
    code = f"echo $CUDA_VISIBLE_DEVICES {{gpu}} > {tmp_path}/seen; sleep 0.2; exit 3"
    *beats, end = said(place, gpu, "sh", "-c", code)
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


def test_memory_that_is_given_back_late_is_no_fault(place: Place, gpu: Gpu, machine: Machine) -> None:
    """The driver lists an ended program for a moment."""
    shown = machine.folder / "answers.json"
    machine.says(processes=["GPU-1@7, python3, 99"])
    busy = shown.read_text()
    machine.says(processes=[])
    (machine.folder / "busy.json").write_text(busy)
    (machine.folder / "free.json").write_text(shown.read_text())
    later = f"(sleep 0.3; cp {machine.folder}/free.json {shown}) > /dev/null 2>&1 &"
    command = f"cp {machine.folder}/busy.json {shown}; setsid sh -c '{later}'"
    *_, end = said(replace(place, settle=0.5), gpu, "sh", "-c", command)
    assert end == {"end": "done", "code": 0}


def test_a_job_that_takes_too_long_is_ended_with_what_it_started(place: Place, gpu: Gpu, machine: Machine) -> None:
    pid = machine.folder / "pid"
    *_, end = said(place, gpu, "sh", "-c", f"sleep 60 & echo $! > {pid}; wait", seconds=0.2)
    assert end == {"end": "late", "why": "ended after 0.2 s"}
    started = Path(f"/proc/{int(pid.read_text())}/stat")
    ends = time.monotonic() + 5
    while started.exists() and ") Z " not in started.read_text():  # killed, and a zombie where nobody asks for it
        assert time.monotonic() < ends


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
        run(place, gpu, "job-1", ["sleep", "60"], 60, closed)
    assert time.monotonic() - began < 10
    assert said(place, gpu, "true")[-1] == {"end": "done", "code": 0}  # the lock is free, the job is gone
