"""A run of the matrix that is interrupted, and a run that continues it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from conformance import coverage
from conformance.cases import CASES
from conformance.coverage import Suite
from conformance.jobs.jobs import Job, JobContext
from conformance.jobs.journal import Journal
from conformance.matrix import FEW, PER_GPU, processes_for, run_matrix, shares
from conformance.results.cell import Cell
from conformance.results.filters import EVERYTHING, parse
from conformance.results.result import CellResult, Results
from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.command import Terminated
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.errors import BundleError, UsageError
from toolchain.runtime import CpuExecutor

Run = Callable[..., Results]


@dataclass
class Three:
    """A suite of three jobs of two rows each. `ends`: what the second job raises before its second row. `fails`: the
    job whose first row is a failure."""

    ends: type[BaseException] | None = None
    fails: str = ""
    ran: list[str] = field(default_factory=list)

    def __call__(self, dtypes: Sequence[str], kind: str) -> Sequence[Job]:
        assert kind == "cpu"
        return [Job(1, self._rows(name), "three", name, ("f32",)) for name in "abc" if "f32" in dtypes]

    def _rows(self, name: str) -> Callable[[JobContext], Iterator[CellResult]]:
        def rows(site: JobContext) -> Iterator[CellResult]:
            cell = Cell.on("three", "mlir", "f32", site.executor)
            self.ran.append(name)
            yield cell.row(f"{name} 1", status="failed" if name == self.fails else "passed", error=1 / 3, bound=0.5)
            if name == "b" and self.ends:
                raise self.ends
            yield cell.row(f"{name} 2", status="passed")

        return rows


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    spec = EntrySpec("gelu", "gelu", "mlir", "f32")
    return write(tmp_path / "bundle", [Compiled(spec, tile_ir(b"", "13.3"), {})], {})


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "report/journal.jsonl")


@pytest.fixture
def run(bundle: Bundle, journal: Journal) -> Run:
    def call(suite: Three, **options: object) -> Results:
        options = {"selected": ["three"], "dtypes": ["f32"], **options}
        return run_matrix(bundle, [CpuExecutor()], journal, suites={"three": Suite(suite)}, **options)  # type: ignore[arg-type]

    return call


def shapes(results: Results) -> list[tuple[str, str]]:
    return [(row.shape, row.status) for row in results.rows]


@pytest.mark.parametrize(("ends", "signal"), [(KeyboardInterrupt, "SIGINT"), (Terminated, "SIGTERM")])
def test_an_interrupt_keeps_what_is_done_and_resume_runs_the_rest(
    run: Run, ends: type[BaseException], signal: str
) -> None:
    cut = run(Three(ends))
    assert shapes(cut) == [
        ("a 1", "passed"), ("a 2", "passed"), ("b 1", "passed"), ("b, the rest", "not run"), ("c", "not run"),
    ]  # fmt: skip
    assert {row.detail for row in cut.rows if row.status == "not run"} == {"interrupted"}
    assert cut.interrupted == signal and not cut.green and "interrupted" in cut.summary()

    suite = Three()
    whole = run(suite, resume=True)
    assert suite.ran == ["b", "c"]
    assert shapes(whole) == [(f"{name} {number}", "passed") for name in "abc" for number in (1, 2)]
    assert whole.green and not whole.interrupted


def test_a_killed_run_leaves_its_rows_in_the_journal(run: Run, journal: Journal) -> None:
    with pytest.raises(SystemExit):  # as much as a kill: nothing of the run's own comes after it
        run(Three(SystemExit))
    record = journal.read()
    assert record is not None
    assert [row.shape for rows in record.rows.values() for row in rows] == ["a 1", "a 2", "b 1"]


def test_without_resume_all_runs_again(run: Run) -> None:
    run(Three(KeyboardInterrupt))
    suite = Three()
    assert run(suite).green
    assert suite.ran == ["a", "b", "c"]


def test_to_resume_without_a_journal_runs_all(run: Run) -> None:
    suite = Three()
    assert run(suite, resume=True).green
    assert suite.ran == ["a", "b", "c"]


def test_another_run_is_not_resumed(run: Run) -> None:
    run(Three(KeyboardInterrupt))
    with pytest.raises(UsageError, match="seed: 1 then, 2 now"):
        run(Three(), seed=2, resume=True)


def test_another_bundle_is_not_resumed(run: Run, bundle: Bundle) -> None:
    run(Three(KeyboardInterrupt))
    manifest = bundle.root / "manifest.json"
    manifest.write_text(manifest.read_text() + " ")
    with pytest.raises(UsageError, match=r"of another run.* bundle: "):
        run(Three(), resume=True)


def test_a_filter_is_of_rows(run: Run) -> None:
    suite = Three()
    results = run(suite, wanted=replace(EVERYTHING, only=frozenset({("three-mlir-f32-cpu", "b 2")})))
    assert suite.ran == ["b"] and shapes(results) == [("b 2", "passed")]
    assert "b 2" in results.environment["filter"]
    assert shapes(run(Three(), wanted=parse("three and mlir", ["1"]))) == [(f"{name} 1", "passed") for name in "abc"]
    with pytest.raises(UsageError, match="no case of three in f32 and is bf16 runs on cpu interpreter"):
        run(Three(), wanted=parse("bf16", []))


def test_a_run_with_another_filter_is_not_resumed(run: Run) -> None:
    run(Three(KeyboardInterrupt))
    with pytest.raises(UsageError, match="filter: all then, mlir now"):
        run(Three(), wanted=parse("mlir", []), resume=True)


def test_a_run_may_end_with_the_first_failure(run: Run) -> None:
    suite = Three(fails="b")
    results = run(suite, exit_first=True)
    assert suite.ran == ["a", "b"] and not results.green and not results.interrupted
    assert shapes(results)[2:] == [("b 1", "failed"), ("b 2", "passed"), ("c", "not run")]
    assert results.rows[-1].detail == "the run ended with the first failure"
    assert len(shapes(run(Three(fails="b")))) == 6


def test_what_the_bundle_lacks_is_not_run_and_said_once(bundle: Bundle, journal: Journal) -> None:
    """The bundle only has gelu in f32, from one source."""
    suite = Three()
    results = run_matrix(
        bundle, [CpuExecutor()], journal, suites={"three": Suite(suite, needs=("linear",))}, full=False
    )
    assert results.environment["not run"].startswith("the bundle has no entries of embedding, ")
    assert results.environment["not run"].endswith(", and none in tf32, f16, bf16")
    assert suite.ran == []
    absent = {(row.op, row.dtype): row.detail for row in results.rows if row.status == "not run"}
    assert absent["three", "f32"] == "the bundle has no entry of linear"
    assert absent["softmax", "f32"] == "the bundle has no entry of softmax"
    assert absent["gelu", "bf16"] == "the bundle has no entry in bf16"
    assert ("gelu", "f32") not in absent
    assert {row.op for row in results.rows if row.status != "not run"} == {"gelu"}


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"selected": ["softmax"]}, BundleError, "no entry of softmax; it has gelu"),
        ({"selected": ["three"]}, BundleError, "no entry of linear; it has gelu"),
        ({"dtypes": ["f16"]}, BundleError, "no entry in f16; it has f32"),
    ],
)
def test_a_selection_of_what_the_bundle_lacks_is_refused(
    bundle: Bundle, journal: Journal, options: dict[str, list[str]], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        run_matrix(bundle, [CpuExecutor()], journal, suites={"three": Suite(Three(), needs=("linear",))}, **options)  # type: ignore[arg-type]
    assert not journal.path.exists()


def nothing(dtypes: Sequence[str], kind: str) -> Sequence[Job]:
    assert (list(dtypes), kind) == (["f32"], "cpu")
    return []


def test_a_selection_without_cases_says_so(bundle: Bundle, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "CASES", [case for case in CASES if case.op != "gelu"])
    with pytest.raises(UsageError, match="gelu: no cases, so nothing checks it"):
        run_matrix(bundle, [CpuExecutor()], journal, selected=["gelu"])
    with pytest.raises(UsageError, match="no case of what the bundle has in f32 and is bf16 runs on"):
        run_matrix(bundle, [CpuExecutor()], journal, dtypes=["f32"], wanted=parse("bf16", []))
    with pytest.raises(UsageError, match="no case of three in f32 runs on cpu interpreter"):
        run_matrix(bundle, [CpuExecutor()], journal, selected=["three"], suites={"three": Suite(nothing)},
                   dtypes=["f32"])  # fmt: skip


class Pretended(CpuExecutor):
    """A CPU that passes for one of several GPUs of a kind."""

    def __init__(self, number: int, kind: str = "Test") -> None:
        super().__init__()
        self.name, self.device = f"cuda:{number} {kind}", (2, number)


@dataclass(frozen=True)
class Pretender:
    """Opens it in another process."""

    number: int

    def __call__(self) -> Pretended:
        return Pretended(self.number)


@dataclass(frozen=True)
class Slow:
    """A job of one row. It waits until a job of the other device has begun, so that one of them cannot take all."""

    number: int
    folder: Path

    def __call__(self, site: JobContext) -> Iterator[CellResult]:
        (self.folder / f"{site.executor.device[1]} {self.number}").touch()
        until = time.monotonic() + 300
        while len({path.name.split()[0] for path in self.folder.iterdir()}) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        yield Cell.on("three", "mlir", "f32", site.executor).row(f"job {self.number}", status="passed")


def test_gpus_share_the_jobs_out_and_rows_name_theirs(bundle: Bundle, journal: Journal, tmp_path: Path) -> None:
    folder = tmp_path / "begun"
    folder.mkdir()
    suite = Suite(lambda *_: [Job(1, Slow(number, folder), "three", str(number), ("f32",)) for number in range(FEW)])
    results = run_matrix(
        bundle, [Pretended(0), Pretended(1)], journal, suites={"three": suite}, selected=["three"], dtypes=["f32"],
        processes=1, opened_by=lambda executor: Pretender(executor.device[1]), left_out="cuda:2 Test: too hot",
    )  # fmt: skip
    assert shapes(results) == [(f"job {number}", "passed") for number in range(FEW)]  # each once
    assert {row.executor for row in results.rows} == {"cuda:0 Test", "cuda:1 Test"}
    assert results.environment["executors"] == "cuda:0 Test, cuda:1 Test"
    assert results.environment["left out"] == "cuda:2 Test: too hot"
    assert results.origin is not None
    assert [device["executor"] for device in results.origin.devices] == ["cuda:0 Test", "cuda:1 Test"]


def test_a_run_has_a_process_for_each_core_but_no_more_than_its_gpus_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESTACK_JOBS", "64")
    gpus = [Pretended(0), Pretended(1)]
    for gpu in gpus:
        gpu.kind = "cuda"
    assert [processes_for(gpus), processes_for(gpus[:1]), processes_for([CpuExecutor()])] == [2 * PER_GPU, PER_GPU, 64]
    monkeypatch.setenv("TILESTACK_JOBS", "4")
    assert processes_for(gpus) == 4


def test_every_gpu_runs_every_job_if_asked_to(bundle: Bundle, journal: Journal) -> None:
    results = run_matrix(
        bundle, [Pretended(0), Pretended(1)], journal, suites={"three": Suite(Three())}, selected=["three"],
        dtypes=["f32"], every_gpu=True,
    )  # fmt: skip
    assert [row.executor for row in results.rows] == ["cuda:0 Test"] * 6 + ["cuda:1 Test"] * 6


def test_gpus_of_other_kinds_do_not_share() -> None:
    of = [Pretended(0), Pretended(1, "Other"), Pretended(2)]
    assert [part.name for part in shares(of)] == ["cuda:0 Test, cuda:2 Test", "cuda:1 Other"]
    assert [part.name for part in shares(of, every=True)] == ["cuda:0 Test", "cuda:1 Other", "cuda:2 Test"]


def test_a_shared_run_is_not_resumed_by_one_of_every_gpu(bundle: Bundle, journal: Journal) -> None:
    gpus = [Pretended(0), Pretended(1)]
    options = {"suites": {"three": Suite(Three(KeyboardInterrupt))}, "selected": ["three"], "dtypes": ["f32"]}
    assert run_matrix(bundle, gpus, journal, **options).interrupted  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="executors: cuda:0 Test, cuda:1 Test then, cuda:0 Test; cuda:1 Test now"):
        run_matrix(bundle, gpus, journal, **options, every_gpu=True, resume=True)  # type: ignore[arg-type]
