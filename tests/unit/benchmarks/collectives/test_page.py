"""The table and the picture of the collectives' results."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.collectives.cases import Row, row
from benchmarks.collectives.page import fastest, load, plot, tables
from toolchain.errors import UsageError

ROWS = [
    Row("ours", "all_reduce", 1024, "one", 5.0, 4.9, 5.1),
    Row("ours", "all_reduce", 1024, "two", 4.0, 3.9, 4.1),
    Row("ours", "all_reduce", 1 << 20, "wrong", error="rank 1 has a wrong result"),
    Row("NCCL", "all_reduce", 1024, "its choice", 11.0, 10.0, 12.0),
    Row("NCCL", "all_reduce", 1 << 20, "its choice", 25.0, 24.0, 26.0),
    Row("PyTorch symmetric memory", "all_reduce", 1024, "two-shot", 7.0, 6.9, 7.1),
    Row("NCCL", "broadcast", 1024, "its choice", 12.0, 11.0, 13.0),
]


def test_ours_is_the_fastest_kernel_and_a_wrong_one_has_no_time() -> None:
    found = fastest(ROWS, "all_reduce")
    assert list(found) == ["ours", "NCCL", "PyTorch symmetric memory, two-shot"]
    assert {nbytes: each.variant for nbytes, each in found["ours"].items()} == {1024: "two"}


def test_the_tables_have_a_row_for_each_size_and_tell_what_failed() -> None:
    text = tables({"gpus": "2 x Test"}, ROWS)
    assert "| 1 KB | 4 ± 0.1 | 11 ± 1 | 7 ± 0.1 |" in text
    assert "| 1 MB | - | 25 ± 1 | - |" in text
    assert "| broadcast | NCCL |" in text
    assert text.endswith("ours wrong all_reduce 1 MB: rank 1 has a wrong result")


def test_the_picture_has_a_line_for_each_side() -> None:
    picture = plot({"gpus": "2 x Test"}, ROWS)
    assert picture.count("<polyline") == 3 and "2 x Test" in picture
    with pytest.raises(UsageError, match="nothing to draw"):
        plot({}, ROWS[-1:])


def test_the_time_of_a_row_is_the_median_with_its_interval() -> None:
    found = row("ours", "broadcast", 1024, "one", [3.0, 1.0, 2.0])
    assert (found.low, found.us, found.high) == (1.0, 2.0, 3.0)


@pytest.mark.parametrize("content", [None, "no JSON", '{"rows": []}', '{"environment": {}, "rows": [{"us": 1}]}'])
def test_another_file_is_an_error_that_names_it(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=r"results\.json"):
        load(path)
