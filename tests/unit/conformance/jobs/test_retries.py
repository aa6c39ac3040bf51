"""Jobs are tried again after errors of the machine, in a new process, and never after a wrong number."""

from __future__ import annotations

import os
import pickle
import time
import tomllib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from conformance import matrix
from conformance.coverage import Suite
from conformance.jobs.jobs import Job, JobContext, WorkerSetup, run_in_processes
from conformance.jobs.journal import Journal
from conformance.jobs.retries import TABLE, DeviceLost, Rows, declared, load, retries, with_retries
from conformance.matrix import run_matrix
from conformance.ops.run import attempt
from conformance.results.cell import Cell
from conformance.results.result import CellResult, Results
from toolchain.bundles.bundle import Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.errors import ConformanceError, DeviceError, UsageError
from toolchain.runtime import CpuExecutor
from toolchain.runtime.driver import is_sticky

QUICK = replace(load(), pause_s=0, job=1)
ECC = 214


def device_error(code: int) -> DeviceError:
    error = DeviceError(f"cuLaunchKernel failed: ({code})", hint="start a new process")
    error.code = code
    return error


@dataclass(frozen=True)
class Breaks:
    """A job of two rows. The second raises an error of this code as long as `folder` has fewer than `times` files; each
    file is the process of a try."""

    folder: Path
    times: int
    code: int = ECC
    first: str = "passed"

    def __call__(self, site: JobContext) -> Iterator[CellResult]:
        cell = Cell.on("gelu", "mlir", "f32", site.executor)
        tries = len(list(self.folder.iterdir()))
        yield cell.row("first", status="passed" if tries else self.first, detail=f"try {tries}")  # type: ignore[arg-type]
        (self.folder / str(tries)).write_text(str(os.getpid()))
        yield attempt(cell, "second", self.check, tries)

    def check(self, tries: int) -> tuple[object, Sequence[float]]:
        if tries < self.times:
            raise device_error(self.code)
        raise ConformanceError("a wrong number")


@dataclass(frozen=True)
class One:
    """A suite of one such job."""

    job: Breaks

    def __call__(self, dtypes: Sequence[str], kind: str) -> Sequence[Job]:
        assert (list(dtypes), kind) == (["f32"], "cpu")
        return [Job(1, self.job, "gelu", "M=1", ("f32",))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tries"
    made.mkdir()
    return made


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Results]:
    bundle = write(
        tmp_path / "bundle", [Compiled(EntrySpec("gelu", "gelu", "mlir", "f32"), tile_ir(b"", "13.3"), {})], {}
    )
    monkeypatch.setattr(matrix, "retries", lambda: QUICK)

    def call(job: Breaks, **options: object) -> Results:
        return run_matrix(
            bundle, [CpuExecutor()], Journal(tmp_path / "journal.jsonl"), suites={"three": Suite(One(job))},
            selected=["three"], dtypes=["f32"], **options,
        )  # type: ignore[arg-type]  # fmt: skip

    return call


def test_a_lost_device_is_tried_again_in_a_new_process_and_counted(run: Callable[..., Results], folder: Path) -> None:
    results = run(Breaks(folder, times=1, first="failed"))
    first, second = results.rows
    assert (first.shape, first.status, first.detail, first.retries) == ("first", "failed", "try 0", 1)
    assert (second.shape, second.status, second.detail, second.retries) == ("second", "failed", "a wrong number", 1)
    assert (folder / "0").read_text() == str(os.getpid()) != (folder / "1").read_text()
    assert len(list(folder.iterdir())) == 2  # a wrong number is not tried again, nor replaced
    assert results.summary() == "0 passed, 2 failed, 2 of them after a retry"
    assert results.environment["retries"] == (f"1: gelu M=1: cuLaunchKernel failed: (214): {retries().why[ECC]}")
    assert second.said == "a wrong number; tried again after an error of the machine"
    assert Results.load(_saved(results, folder)).rows == results.rows


def _saved(results: Results, folder: Path) -> Path:
    path = folder.with_name("results.json")
    path.write_text(results.to_json())
    return path


def test_a_job_that_is_lost_too_often_is_an_error(run: Callable[..., Results], folder: Path) -> None:
    results = run(Breaks(folder, times=9))
    assert len(list(folder.iterdir())) == QUICK.job + 1
    first, rest = results.rows
    assert first.status == "passed" and rest.status == "error" and rest.shape == "M=1, the rest"
    assert rest.detail.endswith("; tried 2 times") and rest.retries == QUICK.job


@pytest.mark.parametrize("code", [700, 719, 2])  # what a kernel can cause
def test_an_error_that_is_not_declared_is_not_tried_again(run: Callable[..., Results], folder: Path, code: int) -> None:
    results = run(Breaks(folder, times=1, code=code))
    assert [row.status for row in results.rows] == ["passed", "error"] and len(list(folder.iterdir())) == 1
    assert "retries" not in results.environment and "retry" not in results.summary()


def test_a_machine_that_fails_again_and_again_ends_the_run() -> None:
    noted: list[int] = []

    def broken(numbers: Collection[int]) -> Rows:
        raise DeviceLost([min(numbers)], "no GPU")
        yield

    table = replace(QUICK, job=100, run=2)
    rows = with_retries(
        [4, 5], broken, broken, note=lambda number, _: noted.append(number), give_up=lambda *_: [], table=table
    )
    with pytest.raises(DeviceError, match="ended the run's processes 3 times, at last: no GPU") as caught:
        list(rows)
    assert noted == [4, 4] and "--resume" in str(caught.value)


def test_only_what_is_left_is_run_again() -> None:
    asked: list[list[int]] = []

    def run(numbers: Collection[int]) -> Rows:
        asked.append(sorted(numbers))
        yield min(numbers), []
        if len(numbers) > 1:
            raise DeviceLost([sorted(numbers)[1]], "lost")

    pauses: list[float] = []
    rows = with_retries(
        [1, 2, 3],
        run,
        run,
        note=lambda *_: None,
        give_up=lambda *_: [],
        table=replace(QUICK, pause_s=7),
        pause=pauses.append,
    )
    assert [number for number, _ in rows] == [1, 2, 3]
    assert asked == [[1, 2, 3], [2, 3], [3]] and pauses == [7, 7]


@dataclass(frozen=True)
class Hangs:
    def __call__(self, _: JobContext) -> Iterator[CellResult]:
        time.sleep(60)
        return iter(())


def test_processes_that_give_no_answer_are_ended(tmp_path: Path) -> None:
    bundle, journal = write(tmp_path / "bundle", [], {}), Journal(tmp_path / "journal.jsonl")
    journal.start({})
    jobs = {number: Job(1, Hangs(), "gelu", "", ("f32",)) for number in (3, 4)}
    plan = WorkerSetup(bundle.root, [CpuExecutor], ["mlir"], 1, journal, "cpu", silent_s=0.3)
    with pytest.raises(DeviceLost, match=r"no job ended in 0\.3 s") as caught:
        list(run_in_processes(jobs, plan, 1))
    assert caught.value.jobs == [3]


def test_the_code_passes_from_one_process_to_another() -> None:
    again = pickle.loads(pickle.dumps(device_error(ECC)))
    assert declared(again) == retries().why[ECC] and again.hint == "start a new process"
    assert not declared(DeviceError("of no call"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [("code = 214", 'code = "214"', "error 214: code is '214'"), ("job = 2 ", "jobs = 2 ", "limits: unknown jobs")],
)
def test_a_mistake_in_the_table_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "retries.toml"
    path.write_text(TABLE.read_text().replace(old, new))
    with pytest.raises(UsageError, match=said):
        load(path)


def test_the_names_of_declared_errors_are_the_drivers() -> None:
    from cuda.bindings import driver

    rows = tomllib.loads(TABLE.read_text())["error"]
    assert {row["name"]: row["code"] for row in rows} == {
        row["name"]: int(getattr(driver.CUresult, row["name"])) for row in rows
    }
    assert not any(is_sticky(row["code"]) and row["code"] >= 700 for row in rows)  # of kernels
