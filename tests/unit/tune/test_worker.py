"""The watchdog, with real processes: a crash or a hang is reported, and the next request gets a new process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tune.worker import Lost, Refused, Shape, Task, Worker

BENCH = """
import os, signal, time
from tune.worker import Machine, Outcome
from toolchain.errors import LaunchError

class Bench:
    def __init__(self):
        self.shape = None
    def describe(self):
        return Machine("cuda", f"process {os.getpid()}", "sm_90", "1")
    def prepare(self, shape):
        if shape.op == "softmax":
            raise LaunchError("no arguments")
        self.shape = shape
        return f"prepared {shape.op}"
    def measure(self, task):
        match task.symbol:
            case "dies": os._exit(3)
            case "killed": os.kill(os.getpid(), signal.SIGSEGV)
            case "hangs": time.sleep(1000)
            case "bug": raise ZeroDivisionError("in the bench")
            case "sticky": return Outcome("error", "the context is lost", lost=True)
            case _: return Outcome("ok", us=float(os.getpid()), entry=f"{self.shape.op} {task.symbol}")

class Broken:
    def __init__(self):
        raise LaunchError("no GPU here")
"""
GELU = Shape("gelu", "bf16", {"M": 1, "N": 64})


def task(symbol: str) -> Task:
    return Task("py", symbol, None)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """The bench's module, where another process finds it too."""
    name = f"bench_of_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(BENCH)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(name)
    sys.modules.pop(name)


@pytest.fixture
def worker(module: Any) -> Generator[Worker]:
    with Worker(module.Bench, timeout_s=30.0) as made:
        yield made


def test_one_process_answers_until_it_is_lost(worker: Worker) -> None:
    assert worker.prepare(GELU) == "prepared gelu"
    assert worker.prepare(GELU) is None, "it is prepared already"
    first, second = worker.measure(task("a")), worker.measure(task("b"))
    assert first.us == second.us and second.entry == "gelu b"


@pytest.mark.parametrize(
    ("symbol", "said"), [("dies", "its process ended with exit code 3"), ("killed", "its process was ended by SIGSEGV")]
)
def test_a_crash_is_told_and_the_next_has_a_fresh_process(worker: Worker, symbol: str, said: str) -> None:
    worker.prepare(GELU)
    before = worker.measure(task("a")).us
    with pytest.raises(Lost, match=said) as caught:
        worker.measure(task(symbol))
    assert not caught.value.hung
    assert worker.prepare(GELU) == "prepared gelu"
    after = worker.measure(task("a"))
    assert (after.status, after.us != before) == ("ok", True)


def test_a_hang_is_ended(module: Any) -> None:
    with Worker(module.Bench, timeout_s=0.2) as worker:
        worker.prepare(GELU)
        with pytest.raises(Lost, match=r"no answer within 0\.2 s") as caught:
            worker.measure(task("hangs"))
        assert caught.value.hung
        assert worker.describe().kind == "cuda"


def test_after_a_sticky_error_the_process_is_given_up(worker: Worker) -> None:
    worker.prepare(GELU)
    process = worker.describe().gpu
    assert worker.measure(task("sticky")).why == "the context is lost"
    assert worker.prepare(GELU) == "prepared gelu"
    assert worker.describe().gpu != process


def test_what_a_bench_raises_comes_as_a_refusal(worker: Worker, module: Any) -> None:
    with pytest.raises(Refused, match=r"^LaunchError: no arguments$"):
        worker.prepare(Shape("softmax", "bf16", {}))
    worker.prepare(GELU)
    with pytest.raises(Refused, match=r"^ZeroDivisionError: in the bench\nTraceback") as caught:
        worker.measure(task("bug"))
    assert "line " in str(caught.value) and "in measure" in str(caught.value), "where it was raised"
    with Worker(module.Broken, timeout_s=30.0) as broken, pytest.raises(Refused, match="no GPU here"):
        broken.describe()
