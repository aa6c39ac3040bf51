"""`matrix run` interrupted at any moment: no traceback, no process left, no finished result lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conformance.jobs.journal import Journal
from conformance.matrix import run_matrix
from toolchain.bundles.bundle import Bundle
from toolchain.knobs import ROOT
from toolchain.runtime import CpuExecutor

pytestmark = pytest.mark.long(
    "waits for the moments of a run; by default a run is interrupted once, in tests/unit/conformance/test_matrix.py"
)

TILESTACK = [sys.executable, "-m", "tilestack"]
MOMENTS = (0.2, 0.5, 0.8, 1.1, 1.3, 1.5, 1.7, 2.5)  # seconds: importing, planning, starting processes, running


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interrupted") / "bundle"
    words = ["compile", "--op", "gelu", "--op", "softmax", "--dtype", "f32", "--no-targets", "--output", str(folder)]
    subprocess.run([*TILESTACK, *words], cwd=ROOT, check=True, capture_output=True)
    return folder


def start(bundle: Path, report: Path, *options: str) -> subprocess.Popen[str]:
    words = ["matrix", "run", "--bundle", str(bundle), "--executor", "cpu", "--full", "--dtype", "f32", "--jobs", "2"]
    words += ["--op", "gelu", "--op", "softmax", "--report", str(report), *options]
    pipe = subprocess.PIPE
    return subprocess.Popen([*TILESTACK, *words], cwd=ROOT, text=True, start_new_session=True, stdout=pipe, stderr=pipe)


def members(group: int) -> list[int]:
    """The processes of a group, but those that have ended."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(of) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


def gone(group: int) -> bool:
    until = time.monotonic() + 60
    while members(group) and time.monotonic() < until:
        time.sleep(0.05)
    return not members(group)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_moment(bundle: Path, tmp_path: Path, moment: float, number: signal.Signals) -> None:
    begun = start(bundle, tmp_path / "r")
    time.sleep(moment)
    if number == signal.SIGINT:
        os.killpg(begun.pid, number)  # as a terminal does
    else:
        begun.send_signal(number)
    _, err = begun.communicate(timeout=300)
    assert begun.returncode in (128 + number, -number, 0)  # -15: before Python could ask for anything else
    assert "Traceback" not in err
    assert gone(begun.pid)
    journal = tmp_path / "r/journal.jsonl"
    if not journal.exists():
        return
    finished = [row for line in journal.read_text().splitlines()[1:] if (row := json.loads(line).get("row"))]
    report = tmp_path / "r/results.json"
    rows = json.loads(report.read_text())["rows"] if report.exists() else []
    if not any(row["detail"] == "interrupted" for row in rows):  # it came when all cells were done
        rest = start(bundle, tmp_path / "r", "--resume")
        out, err = rest.communicate(timeout=300)
        assert rest.returncode == 0, out + err
        assert "20 passed" in out
        rows = json.loads(report.read_text())["rows"]
    assert all(row in rows for row in finished)


KILLS = 100
OF_ALL = 6  # of these kills: the whole command with its processes, whose start takes longer than its work
UNDISTURBED = 30  # one run of so many is left to end by itself


@dataclass
class Killed:
    """What is on disk after each kill."""

    journal: Path
    rng: random.Random
    known: set[tuple[str, str]] = field(default_factory=set)
    cut: int = 0  # kills after some cells and before the last
    whole: int = 0  # runs that came to their end

    def look(self) -> None:
        """No cell that ended before an earlier kill may be gone."""
        lines = self.journal.read_bytes().split(b"\n")[1:-1] if self.journal.exists() else []
        rows = [json.loads(line).get("row") for line in lines]
        now = {(row["cell"], row["shape"]) for row in rows if row}
        assert self.known <= now
        self.cut += bool(now)
        self.known = now


def forked(work: Callable[[], object]) -> int:
    """The number of a process like this one that does the work: nothing has to be imported again."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def test_a_hundred_kills_lose_at_most_the_running_cell(bundle: Path, tmp_path: Path) -> None:
    """Each run resumes the one before. When one comes to its end, the next begins anew."""
    report = tmp_path / "r"
    killed = Killed(report / "journal.jsonl", random.Random(7))
    opened = Bundle.load(bundle)
    out, ended = tmp_path / "results.json", tmp_path / "ended.jsonl"

    def once() -> None:
        results = run_matrix(
            opened, [CpuExecutor()], Journal(killed.journal), selected=["gelu", "softmax"], dtypes=["f32"], resume=True
        )
        out.write_text(results.to_json())
        killed.journal.rename(ended)

    CpuExecutor().warm_up()
    started = time.monotonic()
    once()
    ended.unlink()
    length_s, expected = time.monotonic() - started, out.read_text()
    for number in range(KILLS - OF_ALL):
        pid = forked(once)
        if (number + 1) % UNDISTURBED:  # on a machine that grew slower, hardly any run ends before it is killed
            time.sleep(killed.rng.uniform(0, 0.5 * length_s))
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert not os.WIFEXITED(status) or (os.WEXITSTATUS(status) == 0 and ended.exists())
        if ended.exists():  # it may be killed even now, before its process is gone
            ended.unlink()
            assert outcomes(out.read_text()) == outcomes(expected)
            killed.known, killed.whole = set(), killed.whole + 1
        else:
            killed.look()
    assert killed.cut >= KILLS // 4 and killed.whole >= 3
    once()
    assert outcomes(out.read_text()) == outcomes(expected)


def outcomes(results: str) -> list[tuple[str, ...]]:
    """What a run found, without times."""
    return [(row["cell"], row["shape"], row["status"], str(row["error"])) for row in json.loads(results)["rows"]]


def test_a_killed_command_leaves_no_process_and_resumes(bundle: Path, tmp_path: Path) -> None:
    """The same with the whole command and its processes."""
    rng, report = random.Random(8), tmp_path / "r"
    killed = Killed(report / "journal.jsonl", rng)
    for number in range(OF_ALL):
        begun = start(bundle, report, *["--resume"] * (number > 0))
        time.sleep(rng.uniform(0.8, 1.7))
        begun.kill()
        begun.communicate(timeout=300)
        assert gone(begun.pid)
        if (report / "results.json").exists():  # all was done: the kill came too late, or behind the journal's removal
            assert not killed.journal.exists() or begun.returncode != 0
            (report / "results.json").unlink()
            killed.known = set()
        else:
            killed.look()
    rest = start(bundle, report, "--resume")
    out, err = rest.communicate(timeout=300)
    assert rest.returncode == 0, out + err
    rows = json.loads((report / "results.json").read_text())["rows"]
    assert {row["status"] for row in rows} <= {"passed", "not run"}
    assert len({(row["cell"], row["shape"]) for row in rows}) == len(rows)
