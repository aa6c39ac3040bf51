"""Processes that do not run the caller's script again."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toolchain.compiling.spawned import Spawned, script_hidden

SCRIPT = """
import sys
from concurrent.futures import ProcessPoolExecutor
from toolchain.compiling.spawned import Spawn

print("the script runs", flush=True)
with ProcessPoolExecutor(1, Spawn()) as pool:
    print(pool.submit(pow, 2, 5).result(), __name__, sys.modules["__main__"].__file__ == __file__)
"""


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n") == ["the script runs", "32 __main__ True", ""]


def test_the_script_is_back_whatever_happens() -> None:
    script = sys.modules["__main__"]

    def fail() -> None:
        assert sys.modules["__main__"] is not script
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), script_hidden():
        fail()
    assert sys.modules["__main__"] is script


def test_threads_that_start_processes_together_put_the_script_back(monkeypatch: pytest.MonkeyPatch) -> None:
    script, seen = sys.modules["__main__"], threading.Barrier(2)

    def start(_: object) -> None:
        """As long as it takes another thread to be in here too, if it may."""
        try:
            seen.wait(timeout=0.05)
        except threading.BrokenBarrierError:
            return

    monkeypatch.setattr("multiprocessing.process.BaseProcess.start", start)
    threads = [threading.Thread(target=Spawned(target=print).start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen.broken, "two were in here at once"
    assert sys.modules["__main__"] is script
