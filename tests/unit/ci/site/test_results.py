"""The page of all results is what the files say."""

from __future__ import annotations

from benchmarks.report.result import Results
from ci.site.results import FOLDER, PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m ci.site --generate"


def test_every_case_with_a_time_is_in_it() -> None:
    text = page()
    for path in FOLDER.glob("nvidia-*.json"):
        for row in Results.load(path).rows:
            assert f"| {row.case} | {row.source} |" in text
