"""A compile that is ended in the midst of it: nothing of it is left, neither files nor processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolchain.knobs import ROOT

pytestmark = pytest.mark.needs("toolchain")
LIMIT_S = 300


def processes_of(session: int) -> list[str]:
    """The commands that run in a session, by /proc/PID/stat: see proc(5)."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            _, _, rest = path.read_text().rpartition(")")
            state, _, _, owner, *_ = rest.split()
            if int(owner) == session and state != "Z":
                found.append(path.with_name("comm").read_text().strip())
    return found


def compiles(temporary: Path, session: int) -> bool:
    """Whether there is a file that tileiras hands to ptxas, and one of both at work. Folders come and go meanwhile,
    which os.walk passes over."""
    names = [name for _, _, files in os.walk(temporary) for name in files]
    return any(name.startswith("tileir") for name in names) and bool({"tileiras", "ptxas"} & set(processes_of(session)))


@pytest.mark.parametrize(
    ("number", "whole_group", "code", "said"),
    [(signal.SIGINT, True, 130, "interrupted\n"), (signal.SIGTERM, False, 143, "terminated\n")],
    ids=["Ctrl-C", "kill"],
)
def test_an_ended_compile_leaves_nothing(
    number: signal.Signals, whole_group: bool, code: int, said: str, tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    words = ["--source", "mlir", "--target", "sm_90", "--op", "attention", "--dtype", "bf16", "--jobs", "2"]
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # what a shell starts in the background ignores it
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "tilestack", "compile", *words, "--output", str(tmp_path / "b")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT,
            env={**os.environ, "TMPDIR": str(temporary), "TILESTACK_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    began = time.monotonic()
    while not compiles(temporary, process.pid):
        assert process.poll() is None and time.monotonic() - began < LIMIT_S
    (os.killpg if whole_group else os.kill)(process.pid, number)
    out, err = process.communicate(timeout=LIMIT_S)
    lines = [line for line in err.splitlines(keepends=True) if not line.startswith("compiled ")]  # after ten seconds
    *first, last = lines
    assert (process.returncode, out, last) == (code, "", said)
    assert first[0].startswith("not compiled: ") and len(first) == 2, "of entries for other targets, and nothing else"
    assert not list(temporary.iterdir())
    while left := processes_of(process.pid):  # Python's own resource tracker ends once it sees that its process has
        assert all(name.startswith("python") for name in left) and time.monotonic() - began < LIMIT_S, left
        time.sleep(0.05)
    assert not (tmp_path / "b").exists()
