from __future__ import annotations

import pytest

from gpt.batches.pages import PAGE, Pages, pages_for


def test_pages_are_taken_once_and_given_back() -> None:
    pages = Pages(3, first=5)
    first, second = pages.take(2), pages.take(1)
    assert sorted(first + second) == [5, 6, 7]
    with pytest.raises(ValueError, match="1 pages wanted, 0 are free"):
        pages.take(1)
    pages.give(first)
    assert (pages.free, pages.take(0)) == (2, [])
    with pytest.raises(ValueError, match="were not taken"):
        pages.give(first)


def test_a_text_has_as_many_pages_as_it_fills() -> None:
    assert [pages_for(count) for count in (0, 1, PAGE, PAGE + 1)] == [0, 1, 1, 2]
