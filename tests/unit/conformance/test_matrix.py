"""A run of the matrix that is interrupted, and one that goes on with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conformance.jobs import Job, Site
from conformance.journal import Journal
from conformance.matrix import run_matrix
from conformance.result import Results, Row
from conformance.run import Cell
from toolchain.artifact import tile_ir
from toolchain.bundle import Bundle, Compiled, write
from toolchain.command import Terminated
from toolchain.entry import EntrySpec
from toolchain.errors import UsageError
from toolchain.runtime import CpuExecutor

Run = Callable[..., Results]


@dataclass
class Three:
    """A suite of three jobs of two rows each. `ends`: what the second job raises before its second row."""

    ends: type[BaseException] | None = None
    ran: list[str] = field(default_factory=list)

    def __call__(self, dtypes: Sequence[str]) -> Sequence[Job]:
        return [Job(1, self._rows(name), "three", name, ("f32",)) for name in "abc" if "f32" in dtypes]

    def _rows(self, name: str) -> Callable[[Site], Iterator[Row]]:
        def rows(site: Site) -> Iterator[Row]:
            cell = Cell("three", "mlir", "f32", site.executor)
            self.ran.append(name)
            yield cell.row(f"{name} 1", status="passed", error=1 / 3, bound=0.5)
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
        options = {"selected": ["three"], **options}
        return run_matrix(bundle, [CpuExecutor()], journal, suites={"three": suite}, **options)  # type: ignore[arg-type]

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
