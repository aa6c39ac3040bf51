"""The journal of a run: finished jobs are read back after a kill, and rows of another run are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.jobs.journal import Journal, Record, check_same, code_hash
from conformance.results.result import CellResult
from toolchain.errors import UsageError
from toolchain.runtime.executor import Loaded

ROW = CellResult("gelu-py-f32-cpu", "py", "gelu", "f32", "cpu", "cpu interpreter", "M=1", "passed", 0.1, 0.2)
RUN = {"bundle": "12ab", "seed": "1"}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "report/journal.jsonl")
    made.start(RUN)
    made.add(("cpu", 3), ROW)
    made.end(("cpu", 3))
    made.add(("cpu", 4), ROW)
    return made


def test_it_says_what_was_written(journal: Journal) -> None:
    assert journal.read() == Record(RUN, {("cpu", 3): [ROW], ("cpu", 4): [ROW]}, frozenset({("cpu", 3)}))
    assert Journal(journal.path.with_name("none")).read() is None


def test_a_kill_loses_at_most_the_line_being_written(journal: Journal) -> None:
    whole = journal.path.read_bytes()
    before = journal.read()
    journal.add(("cpu", 4), ROW)
    longer = journal.path.read_bytes()
    for cut in range(len(whole), len(longer), 20):
        journal.path.write_bytes(longer[:cut])
        assert journal.read() == before


def test_to_resume_keeps_the_jobs_that_ended(journal: Journal) -> None:
    """A job that was cut off runs again: until then its rows count, and then they must not be there twice."""
    with journal.path.open("ab") as file:
        file.write(b'{"executor": "cp')
    journal.start(RUN, journal.read())
    assert journal.read() == Record(RUN, {("cpu", 3): [ROW], ("cpu", 4): [ROW]}, frozenset({("cpu", 3)}))
    journal.begin(("cpu", 4))
    again = replace(ROW, detail="again")
    journal.add(("cpu", 4), again)
    record = journal.read()
    assert record is not None and record.of(("cpu", 4)) == [again]


def test_two_rows_of_one_cell_and_shape_are_both_kept(journal: Journal) -> None:
    """As the checks with the native tools have them: what passed, and what could not be checked."""
    two = [ROW, replace(ROW, status="not run")]
    for _ in range(2):
        journal.begin(("cpu", 5))
        for row in two:
            journal.add(("cpu", 5), row)
    record = journal.read()
    assert record is not None and record.of(("cpu", 5)) == two


def test_a_wrong_number_is_not_replaced(journal: Journal) -> None:
    wrong = replace(ROW, status="failed")
    for row in (wrong, ROW):
        journal.begin(("cpu", 5))
        journal.add(("cpu", 5), row)
    record = journal.read()
    assert record is not None and record.of(("cpu", 5)) == [wrong]


def test_retries_are_kept(journal: Journal) -> None:
    journal.retry(("cpu", 4), "lost")
    journal.start(RUN, journal.read())
    record = journal.read()
    assert record is not None and record.retries == {("cpu", 4): ["lost"]}


def test_another_run_is_not_resumed(journal: Journal) -> None:
    check_same(journal, RUN, RUN)
    with pytest.raises(UsageError, match="bundle: 12ab then, 34cd now") as caught:
        check_same(journal, RUN, RUN | {"bundle": "34cd"})
    assert "without --resume" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[]\n", b"\xff\n", b'{"run": {}}\n{"executor": "cpu"}\n', b"{\n"])
def test_what_is_not_a_journal(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="not a journal"):
        Journal(path).read()


def test_the_kernels_that_ran_are_kept(journal: Journal) -> None:
    ran = {Loaded("py", "gelu", "sm_90", "ab"), Loaded("mlir", "gelu", "sm_90", "cd")}
    journal.ran(ran)
    journal.ran([Loaded("py", "gelu", "sm_90", "ab")])
    record = journal.read()
    assert record is not None
    assert record.kernels == ran
    journal.start(RUN, record)
    again = journal.read()
    assert again is not None
    assert again.kernels == ran


def test_an_edit_under_a_run_makes_it_no_other_run(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_hash()
    monkeypatch.setattr("conformance.jobs.journal.CODE", ())  # as if all of it were gone
    assert code_hash() == before and len(before) == 16
