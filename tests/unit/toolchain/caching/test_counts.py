"""The numbers of the compile cache: added up, and as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.caching.cache import Cache, read_runs
from toolchain.caching.counts import Counts, markdown
from toolchain.errors import ToolchainError


def test_recorded_runs_are_read_and_added_up(tmp_path: Path) -> None:
    assert Cache(tmp_path).runs() == []
    for hits, trouble in ((3, ""), (4, "the network is down")):
        Cache(tmp_path, counts=Counts(hits=hits, misses=1, saved=1.5, trouble=trouble)).record()
    found = Cache(tmp_path).runs()
    assert [run["hits"] for run in found] == [3, 4]
    assert Counts.summed(found) == Counts(hits=7, misses=2, saved=3.0)


def test_a_damaged_file_of_runs_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text("{")
    with pytest.raises(ToolchainError, match=r"runs\.jsonl"):
        read_runs(tmp_path / "runs.jsonl")


def test_the_table_has_a_row_for_each_compile() -> None:
    counts = Counts(
        hits=3, shared_hits=2, misses=1, read=2_000_000, received=500_000, written=1_000_000, saved=1.25, damaged=1
    )
    lines = markdown({"this commit": counts, "before": Counts()}).splitlines()
    assert lines[4] == "| this commit | 5 | 2 | 1 | 2.5 | 1.0 | 1.2 | 0.0 | 1 |"
    assert lines[2].count("|") == lines[3].count("|") == lines[4].count("|") == lines[5].count("|")
