"""Jobs on two real GPUs: each sees its own, a lock keeps others out, and a GPU that somebody else uses takes none.

The kernel log is not looked at, because a container may not read it. This process has all GPUs open, and is the one
program beside the jobs that may: an earlier test may have opened some of them, and nothing else here closes them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ci.runner.gpus import gpus
from ci.runner.members import Clock, Gpu, Host
from ci.runner.pool import Job, Pool, Rules
from ci.runner.table import TABLE
from toolchain.knobs import ROOT
from toolchain.runtime import gpus as visible
from toolchain.runtime import open_executor

pytestmark = [pytest.mark.needs("two-gpus"), pytest.mark.usefixtures("opened")]
RULES = Rules(listen=0.05, silent=60, again=2, nobody=30, tries=2)
# Uses all GPUs that it sees: 4 GiB of each, written again and again. Then says when it began and ended, and which.
WORKER = """
import json, os, sys, time
from cuda.bindings import driver

def check(result):
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result[0]
    return result[1] if len(result) > 1 else None

check(driver.cuInit(0))
count, seen = check(driver.cuDeviceGetCount()), []
for number in range(count):
    device = check(driver.cuDeviceGet(number))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))
    seen.append(check(driver.cuDeviceGetUuid(device)).bytes.hex())
    memory = check(driver.cuMemAlloc(1 << 32))
began = time.time()
print("works", flush=True)
while time.time() < began + float(sys.argv[2]):
    check(driver.cuMemsetD8(memory, 7, 1 << 32))
    check(driver.cuCtxSynchronize())
with open(sys.argv[1], "a") as file:
    print(json.dumps({"began": began, "ended": time.time(), "seen": seen, "pid": os.getpid()}), file=file)
"""


@dataclass
class Place:
    """`seen`: a file to which each worker adds a line."""

    folder: Path
    options: Sequence[str]

    @property
    def seen(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "seen").read_text().splitlines()]

    def worker(self, seconds: float) -> str:
        return f"exec {sys.executable} {self.folder}/worker.py {self.folder}/seen {seconds}"

    def members(self) -> list[Gpu]:
        return Host(options=self.options).members(self.folder / "logs")[:2]

    def job(self, gpu: Gpu, *words: str) -> subprocess.Popen[str]:
        command = Host(options=self.options).command("job", *self.options, "--gpu", gpu.uuid, "--name", "ours", *words)
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def end(self, gpu: Gpu, *words: str) -> Mapping[str, Any]:
        """How a job ends, with the notes before that."""
        messages = [json.loads(line) for line in self.job(gpu, *words).communicate(timeout=60)[0].splitlines()]
        return {**messages[-1], "notes": [each["note"] for each in messages if "note" in each]}


@pytest.fixture(scope="module")
def opened() -> Generator[None]:
    """Every GPU in use by this process."""
    with ExitStack() as stack:
        for number in range(len(visible())):
            stack.enter_context(open_executor(f"cuda:{number}"))
        yield


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(ROOT)
    table = re.sub(r"free_gib = \d+", "free_gib = 0", TABLE.read_text())
    table = re.sub(r"(?m)^processes = \d+", "processes = 1", table)
    (tmp_path / "health.toml").write_text(re.sub(r"(?m)^commands = .*$", 'commands = [["echo", "not read"]]', table))
    (tmp_path / "worker.py").write_text(WORKER)
    state = str(tmp_path / "state")
    options = ["--locks", str(tmp_path), "--state", state, "--table", str(tmp_path / "health.toml")]
    return Place(tmp_path, options)


@contextmanager
def stranger(place: Place, gpu: Gpu) -> Generator[None]:
    """Another program on a GPU, which knows nothing of locks."""
    command = ["sh", "-c", f"CUDA_VISIBLE_DEVICES={gpu.uuid} {place.worker(60)}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as started:
        assert started.stdout
        try:
            assert started.stdout.readline() == b"works\n"
            yield
        finally:
            os.killpg(started.pid, signal.SIGKILL)


def test_each_job_has_a_gpu_of_its_own(place: Place) -> None:
    pool = Pool(place.members(), RULES, Clock())
    results = pool.run([Job(f"job-{n}", place.worker(1.0), 60) for n in range(4)])
    assert [result.code for result in results] == [0] * 4 and not pool.moves
    uuids = {gpu.uuid.removeprefix("GPU-").replace("-", "") for gpu in gpus(20)[:2]}
    rows = place.seen
    assert all(len(row["seen"]) == 1 for row in rows) and {row["seen"][0] for row in rows} == uuids
    for one in rows:
        for other in rows:
            at_once = one["began"] < other["ended"] and other["began"] < one["ended"]
            assert one is other or not (at_once and one["seen"] == other["seen"])
    assert any(
        a["seen"] != b["seen"] and a["began"] < b["ended"] and b["began"] < a["ended"] for a in rows for b in rows
    )


def test_a_lock_keeps_others_out_of_one_gpu_and_outlives_nobody(place: Place) -> None:
    first, second = place.members()
    with place.job(first, "--", "sh", "-c", place.worker(30)) as supervisor:
        assert supervisor.stdout
        assert json.loads(supervisor.stdout.readline()) == {"alive": True}
        time.sleep(2)  # until it works
        assert place.end(first)["end"] == "busy" and place.end(second)["end"] == "well"
        supervisor.kill()
    end = place.end(first, "--", "sh", "-c", place.worker(0.2))  # the first worker goes on, without a supervisor
    assert (end["end"], end["code"]) == ("done", 0), end
    assert "they are ended" in end["notes"][0] and len(place.seen) == 1


def test_a_gpu_that_somebody_else_uses_is_out_until_it_is_brought_back(place: Place) -> None:
    first, second = place.members()
    with stranger(place, second):
        pool = Pool([first, second], RULES, Clock())
        results = pool.run([Job(f"job-{n}", place.worker(0.2), 60) for n in range(3)])
        assert [(result.code, result.runner) for result in results] == [(0, first.name)] * 3
        assert "other programs" in pool.members[1].why and pool.members[1].back.endswith(f"back {second.uuid}")
    time.sleep(2)
    assert place.end(second)["end"] == "sick"
    back = Host(options=place.options).command("back", *place.options, second.uuid)
    subprocess.run(back, check=True, cwd=ROOT)
    assert place.end(second)["end"] == "well"


def test_the_job_of_a_killed_runner_is_planned_anew(place: Place) -> None:
    once = place.folder / "once"
    command = f"[ -e {once} ] || {{ touch {once}; kill -9 $PPID; }}; {place.worker(1.0)}"
    pool = Pool(place.members(), RULES, Clock())
    first, *others = pool.run([Job("lost", command, 60), *(Job(f"job-{n}", place.worker(0.5), 60) for n in range(3))])
    assert first.code == 0 and [why.split(";")[0] for _, why in first.lost] == ["lost: its process ended with -9"]
    assert [result.code for result in others] == [0] * 3
