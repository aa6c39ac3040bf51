"""A pool of real processes on two GPUs that are not real; a shell stands in for ssh."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci.runner.__main__ import main
from ci.runner.members import Clock, Gpu, Host, Process
from ci.runner.pool import Job, Pool, Result, Rules
from ci.runner.table import TABLE
from tests.unit.processes import runs
from toolchain.errors import ToolchainError, UsageError
from toolchain.knobs import ROOT

from .conftest import Machine

RULES = Rules(listen=0.02, silent=120, again=0.1, nobody=120, tries=2)


@pytest.fixture
def options(machine: Machine) -> Sequence[str]:
    machine.gpus(2)
    table = machine.folder / "health.toml"
    table.write_text(re.sub(r"free_gib = \d+", "free_gib = 0", TABLE.read_text()))
    return ["--locks", str(machine.folder), "--state", str(machine.folder / "state"), "--table", str(table)]


def members(machine: Machine, options: Sequence[str]) -> list[Gpu]:
    return Host(reach=("sh", "-c"), folder=str(ROOT), options=options).members(machine.folder / "logs")


@dataclass
class Ran:
    pool: Pool
    said: list[str]
    results: list[Result]


def ran(members: Sequence[Gpu], *commands: str) -> Ran:
    said: list[str] = []
    pool = Pool(members, RULES, Clock(), said.append)
    return Ran(pool, said, pool.run([Job(f"job-{n}", command, 120) for n, command in enumerate(commands)]))


def test_jobs_on_two_gpus_at_once(machine: Machine, options: Sequence[str]) -> None:
    waits = f"touch {machine.folder}/$CUDA_VISIBLE_DEVICES; " + "; ".join(
        f"until [ -e {machine.folder}/GPU-{n} ]; do sleep 0.01; done" for n in range(2)
    )
    made = ran(members(machine, options), waits, f"{waits}; echo words; exit 3")
    assert [result.code for result in made.results] == [0, 3]
    assert {result.runner for result in made.results} == {"here/0", "here/1"}
    assert any("words" in path.read_text() for path in (machine.folder / "logs").iterdir())
    assert [member.state for member in made.pool.members] == ["free", "free"]


def test_a_runner_that_is_killed_is_lost_and_its_job_is_planned_anew(machine: Machine, options: Sequence[str]) -> None:
    """The first time the job kills its supervisor and lives on with the GPU, which is taken from it."""
    once = machine.folder / "once"
    command = f"[ -e {once} ] && exit 0; echo $$ > {once}; kill -9 $PPID; sleep 600"
    made = ran(members(machine, options)[:1], command)
    (result,) = made.results
    assert result.code == 0 and len(result.lost) == 1
    assert result.lost[0][1].startswith("lost: its process ended with -9; ")
    pid = int(once.read_text())
    assert any(f"processes of its job are left: {pid}" in line and "they are ended" in line for line in made.said)
    assert not runs(pid)


def test_the_command(machine: Machine, options: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    logs = ["--logs", str(machine.folder / "logs")]
    assert main(["pool", *options, *logs, "--job", "a=true", "--job", "b=exit 4"]) == 1
    said = capsys.readouterr()
    assert "| b | here/" in said.out and "failed, exit code 4" in said.out and "here/0: begins a" in said.err
    machine.kernel_log("NVRM: Xid (PCI:0000:1b:00): 79, pid=1")
    assert main(["pool", *options, *logs, "--job", "a=true", "--job", "b=true"]) == 0
    out = capsys.readouterr().out
    assert "| here/0 | 0 | sick kernel log: Xid 79" in out
    assert "repair it, then python3 -m ci.runner back GPU-0" in out and "| here/1 | 2 | well |" in out
    assert main(["back", *options, "0"]) == 7 and "Xid 79" in capsys.readouterr().err
    machine.kernel_log()
    assert main(["job", *options, "--gpu", "0"]) == 7
    assert main(["back", *options, "0"]) == 0
    assert main(["job", *options, "--gpu", "0"]) == 0


@pytest.mark.parametrize("text", ["gpu-2", "gpu-2:", "gpu-2:srv", ":/srv", "-oProxyCommand=x:/srv"])
def test_a_host_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not HOST:/FOLDER"):
        Host.parse(text)


def test_a_host_is_reached_with_one_line_for_its_shell() -> None:
    host = Host.parse("gpu-2:/srv/tile stack")
    assert host.command("job", "--", "sh", "-c", "a b") == [
        "ssh", "-o", "BatchMode=yes", "gpu-2", "cd '/srv/tile stack' && exec python3 -m ci.runner job -- sh -c 'a b'",
    ]  # fmt: skip
    with pytest.raises(ToolchainError, match="gpu-3 does not say which GPUs it has:\nno route"):
        Host("gpu-3", ("sh", "-c", "echo no route >&2; exit 255", "ssh"), "/").members(Path())


def test_messages_come_in_pieces(tmp_path: Path) -> None:
    words = 'welcome\\n{"alive": true}\\n[1]\\n{"no'
    code = f"import sys, time; print('{words}', end='', flush=True); time.sleep(60)"
    work = Process([sys.executable, "-c", code], tmp_path / "log")
    ends = time.monotonic() + 60
    try:
        while not (news := work.news()):
            assert time.monotonic() < ends
            time.sleep(0.01)
        assert news == [{"alive": True}] and work.over == ""
    finally:
        work.stop()
    assert "its process ended with -15" in work.over


def test_a_machine_without_a_gpu_runs_the_pool_of_others(
    machine: Machine, options: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`ssh` is a script that answers for a machine with one GPU, on which every job passes."""
    (machine.folder / "bin/nvidia-smi").unlink()
    gpu = '{"index": "0", "uuid": "GPU-0", "name": "NVIDIA H200", "address": "00000000:1B:00.0"}'
    passed = '{"end": "done", "code": 0}'
    machine.program("ssh", f"#!/bin/sh\ncase \"$*\" in *' gpus') echo '{gpu}';; *' job '*) echo '{passed}';; esac\n")
    logs = ["--logs", str(machine.folder / "logs")]
    assert main(["pool", *options, *logs, "--job", "a=true"]) == 4
    assert "here does not say which GPUs it has" in capsys.readouterr().err
    assert main(["pool", *options, *logs, "--host", "gpu-2:/srv", "--job", "a=true"]) == 0
    said = capsys.readouterr()
    assert "only others run jobs" in said.err and "| a | gpu-2/0 |" in said.out
