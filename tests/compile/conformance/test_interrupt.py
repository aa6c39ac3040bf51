"""`matrix run` interrupted at any moment: no traceback, no process left, no finished result lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolchain.knobs import ROOT

pytestmark = pytest.mark.long(
    "waits for the moments of a run; by default a run is interrupted once, in tests/unit/conformance/test_matrix.py"
)

TILESTACK = [sys.executable, "-m", "tilestack"]
MOMENTS = (0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0)  # seconds: importing, planning, starting processes, running


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
    until = time.monotonic() + 10
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
    _, err = begun.communicate(timeout=60)
    assert begun.returncode in (128 + number, -number, 0)  # -15: before Python could ask for anything else
    assert "Traceback" not in err
    assert gone(begun.pid)
    journal = tmp_path / "r/journal.jsonl"
    if journal.exists():
        rows = [json.loads(line).get("row") for line in journal.read_text().splitlines()[1:]]
        finished = [row for row in rows if row]
        report = json.loads((tmp_path / "r/results.json").read_text())["rows"]
        assert all(row in report for row in finished)
        assert any(row["detail"] == "interrupted" for row in report)


@pytest.mark.parametrize("moment", [2.0, 4.0, 6.0])
def test_a_kill_loses_only_what_was_running(bundle: Path, tmp_path: Path, moment: float) -> None:
    begun = start(bundle, tmp_path / "r")
    time.sleep(moment)
    begun.kill()
    begun.communicate(timeout=60)
    assert gone(begun.pid)
    journal = tmp_path / "r/journal.jsonl"
    before = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    finished = {json.loads(line)["job"] for line in before[1:] if line.endswith(b"\n") and b'"row"' not in line}
    rest = start(bundle, tmp_path / "r", "--resume")
    out, err = rest.communicate(timeout=120)
    assert rest.returncode == 0, out + err
    rows = json.loads((tmp_path / "r/results.json").read_text())["rows"]
    assert {row["status"] for row in rows} <= {"passed", "not run"}
    assert len({(row["cell"], row["shape"]) for row in rows}) == len(rows)
    kept = [json.loads(line) for line in before[1:] if line.endswith(b"\n")]
    assert all(line["row"] in rows for line in kept if "row" in line and line["job"] in finished)
