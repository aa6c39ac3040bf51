"""Arrays that share memory, by their addresses alone: none of these exists."""

from __future__ import annotations

import pytest

from toolchain.runtime.overlaps import Placed, meet, share_elements


def test_ranges_that_touch_do_not_meet() -> None:
    assert not meet(range(8), range(8, 16))
    assert meet(range(9), range(8, 16)) and meet(range(8, 16), range(9))


@pytest.mark.parametrize(("start", "shared"), [(0, True), (4, False), (8, True), (1 << 20, False)])
def test_arrays_that_lie_in_between_each_other_share_no_element(start: int, shared: bool) -> None:
    even = Placed(4096, 4, (8,), (8,))
    assert share_elements(even, Placed(4096 + start, 4, (8,), (8,))) is shared
