"""The journal of a run: finished jobs are read back after a kill, and rows of another run are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.journal import Journal, Record, check_same
from conformance.result import Row
from toolchain.errors import UsageError
from toolchain.runtime.executor import Loaded

ROW = Row("gelu-py-f32-cpu", "py", "gelu", "f32", "cpu", "cpu interpreter", "M=1", "passed", 0.1, 0.2)
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
    """A job that was cut off runs again: its rows must not be there twice, nor after a torn line."""
    with journal.path.open("ab") as file:
        file.write(b'{"executor": "cp')
    journal.start(RUN, journal.read())
    assert journal.read() == Record(RUN, {("cpu", 3): [ROW]}, frozenset({("cpu", 3)}))


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
