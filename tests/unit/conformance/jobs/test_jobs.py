"""The matrix in several processes: the same rows as in one, and a clear error if a process dies."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from conformance.cases import Case
from conformance.jobs.jobs import STOPS, Job, JobContext, WorkerSetup, run_here, run_in_processes
from conformance.jobs.journal import Journal
from conformance.ops.smallest import op_jobs
from conformance.results.cell import Cell
from conformance.results.result import CellResult
from toolchain.bundles.bundle import Bundle, write
from toolchain.errors import ConformanceError
from toolchain.knobs import ROOT
from toolchain.runtime import CpuExecutor
from toolchain.runtime.executor import Loaded

CASES = [Case("gelu", {"M": rows, "N": 8}, "") for rows in (1, 2, 3)]


@dataclass(frozen=True)
class Dies:
    """A job whose process ends while it is unpickled there."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (3,)

    def __call__(self, site: JobContext) -> Iterator[CellResult]:
        raise AssertionError(site)


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return write(tmp_path / "bundle", [], {})


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "journal.jsonl")
    made.start({})
    return made


def test_processes_give_the_rows_of_one(bundle: Bundle, journal: Journal) -> None:
    """With an empty bundle, so that each row is an error that names its case."""
    jobs = dict(enumerate(op_jobs(CASES, ["f32", "bf16"], None)))
    here = dict(run_here(jobs, JobContext(bundle, CpuExecutor(), ["mlir", "py"], 7, nullcontext()), journal))
    assert {number: len(rows) for number, rows in here.items()} == dict.fromkeys(range(6), 2)
    apart = dict(
        run_in_processes(jobs, WorkerSetup(bundle.root, [CpuExecutor], ["mlir", "py"], 7, journal, "apart"), 2)
    )
    assert apart == here
    record = journal.read()
    assert record is not None
    for name in ("cpu interpreter", "apart"):
        assert {number: list(record.of((name, number))) for number in jobs} == here
        assert {(name, number) for number in jobs} <= record.ended


def test_what_starts_up_once_is_not_in_the_time_of_the_first_row(bundle: Bundle, journal: Journal) -> None:
    done: list[str] = []

    class Watched(CpuExecutor):
        def warm_up(self) -> None:
            super().warm_up()
            done.append("warmed up")

    def rows(_: JobContext) -> Iterator[CellResult]:
        assert "toolchain.tileir.interpreter" in sys.modules
        done.append("run")
        return iter(())

    site = JobContext(bundle, Watched(), ["mlir"], 1, nullcontext())
    list(run_here({0: Job(1, rows, "gelu", "", ("f32",))}, site, journal))
    assert done == ["warmed up", "run"]


def test_a_process_that_dies_is_an_error_that_says_what_to_do(bundle: Bundle, journal: Journal) -> None:
    plan = WorkerSetup(bundle.root, [CpuExecutor], ["mlir"], 1, journal, "cpu")
    with pytest.raises(ConformanceError, match="ended without an answer") as caught:
        list(run_in_processes({0: Job(1, Dies(), "gelu", "", ("f32",))}, plan, 1))
    assert "--jobs 1" in str(caught.value)


@dataclass(frozen=True)
class Begins:
    """A job that writes down that it begins. `side`: of a named pipe, which opens only once the other side does: the
    two jobs that are to be first end after both have begun."""

    name: str
    begun: Path
    side: str

    def __call__(self, _: JobContext) -> Iterator[CellResult]:
        with self.begun.open("a") as file:
            file.write(self.name)
        if self.side:
            self.begun.with_name("pipe").open(self.side).close()
        return iter(())


@pytest.mark.parametrize(("short", "first"), [(0, "ab"), (1, "af"), (2, "ef")])
def test_some_processes_begin_with_the_shortest_jobs(
    bundle: Bundle, journal: Journal, tmp_path: Path, short: int, first: str
) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(tmp_path / "pipe")
    sides = dict(zip(first, "rw", strict=True))
    jobs = {
        n: Job(9 - n, Begins(name, begun, sides.get(name, "")), "gelu", "", ("f32",)) for n, name in enumerate("abcdef")
    }
    plan = WorkerSetup(bundle.root, [CpuExecutor], ["mlir"], 7, journal, "two", silent_s=300, short=short)
    assert sorted(number for number, _ in run_in_processes(jobs, plan, 2)) == list(range(6))
    assert sorted(begun.read_text()[:2]) == sorted(first)


@dataclass(frozen=True)
class Opens:
    """Opens a device. A second process that does so meanwhile ends, and then the whole run."""

    busy: Path

    def __call__(self) -> CpuExecutor:
        self.busy.touch(exist_ok=False)
        time.sleep(0.7)
        self.busy.unlink()
        return CpuExecutor()


@dataclass(frozen=True)
class Goes(Begins):
    """A job with something to compute before the device is open."""

    def ahead(self, seed: int) -> None:
        with self.begun.open("a") as file:
            file.write(f"ahead {seed} ")

    def opens(self) -> CpuExecutor:
        with self.begun.open("a") as file:
            file.write("opens ")
        return CpuExecutor()


@pytest.mark.parametrize(("short", "wanted"), [(1, "ahead 7 opens ab"), (0, "opens ab")])
def test_a_device_is_opened_behind_what_does_without_it(
    bundle: Bundle, journal: Journal, tmp_path: Path, short: int, wanted: str
) -> None:
    rows = [Goes(name, tmp_path / "begun", "") for name in "ab"]
    jobs = {n: Job(1, each, "gelu", "", ("f32",)) for n, each in enumerate(rows)}
    plan = WorkerSetup(bundle.root, [rows[0].opens], ["mlir"], 7, journal, "one", short=short)
    assert len(list(run_in_processes(jobs, plan, 1))) == 2
    assert (tmp_path / "begun").read_text() in (wanted, wanted.replace("ab", "ba"))  # one turn is the shortest job's


def test_one_process_at_a_time_opens_a_device(bundle: Bundle, journal: Journal, tmp_path: Path) -> None:
    jobs = dict(enumerate(op_jobs(CASES, ["f32"], None)))
    plan = WorkerSetup(bundle.root, [Opens(tmp_path / "busy")], ["mlir"], 7, journal, "one")
    assert len(list(run_in_processes(jobs, plan, 3))) == 3


class GivesUp(CpuExecutor):
    """Tells a job when it is closed."""

    def __init__(self, pipe: Path) -> None:
        super().__init__()
        self.pipe = pipe

    def close(self) -> None:
        super().close()
        self.pipe.open("w").close()


def test_a_process_without_another_job_gives_up_its_device_while_others_work(
    bundle: Bundle, journal: Journal, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    jobs = {
        n: Job(1, Begins(name, tmp_path / name, "r" if n else ""), "gelu", "", ("f32",)) for n, name in enumerate("ab")
    }
    plan = WorkerSetup(bundle.root, [partial(GivesUp, pipe)], ["mlir"], 7, journal, "two", silent_s=300)
    assert sorted(number for number, _ in run_in_processes(jobs, plan, 2)) == [0, 1]


READY = """
import time
from multiprocessing import forkserver
from conformance.jobs.jobs import get_ready
get_ready(["json"])
server = f"/proc/{forkserver._forkserver._forkserver_pid}"
while not (variables := open(f"{server}/environ").read()):
    time.sleep(0.01)
print(open(f"{server}/status").read(), variables.replace(chr(0), chr(10)))
"""


def test_what_processes_are_forked_from_gets_no_interrupt_and_keeps_its_memory() -> None:
    said = subprocess.run([sys.executable, "-c", READY], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    (blocked,) = (int(line.split()[1], 16) for line in said.splitlines() if line.startswith("SigBlk:"))
    assert all(blocked & 1 << (stop - 1) for stop in STOPS)
    assert {"OMP_NUM_THREADS=1", "MALLOC_MMAP_MAX_=0"} <= set(said.splitlines())


def test_no_process_is_left_behind(bundle: Bundle, journal: Journal) -> None:
    jobs = dict(enumerate(op_jobs(CASES, ["f32"], None)))
    others = multiprocessing.active_children()  # of earlier tests, should one have left any
    with closing(
        run_in_processes(jobs, WorkerSetup(bundle.root, [CpuExecutor], ["mlir"], 7, journal, "cpu"), 2)
    ) as rows:
        next(rows)
        begun = [process.pid for process in multiprocessing.active_children() if process not in others]
        assert begun
    assert not [number for number in begun if Path(f"/proc/{number}").exists()]


def test_a_row_names_what_it_launched(bundle: Bundle, journal: Journal) -> None:
    one, two = (Loaded("mlir", name, "cpu", name * 2) for name in ("a", "b"))

    def rows(site: JobContext) -> Iterator[CellResult]:
        for launched in ([one], [two, one], []):
            site.executor.ran.update(launched)
            yield Cell.on("gelu", "mlir", "f32", site.executor).row("M=1", status="passed")

    executor = CpuExecutor()
    executor.ran.add(Loaded("mlir", "before", "cpu", ""))
    ((_, found),) = run_here(
        {0: Job(1, rows, "gelu", "", ("f32",))}, JobContext(bundle, executor, ["mlir"], 1, nullcontext()), journal
    )
    assert [row.entries for row in found] == [("a",), ("a", "b"), ()]
    record = journal.read()
    assert record is not None
    assert record.kernels == {one, two}
