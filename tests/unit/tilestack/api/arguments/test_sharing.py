"""Arguments that share memory."""

from __future__ import annotations

import numpy as np

from tilestack.api.arguments.arrays import Array
from tilestack.api.arguments.given import Given, arrays, arrays_of
from tilestack.api.arguments.sharing import groups, where_they_lie


def given(*args: object) -> list[Given]:
    return arrays_of("k", args)


def test_arguments_that_share_elements_are_a_group_by_others_too() -> None:
    a, other = np.zeros(12, np.float32), np.zeros(4, np.float32)
    assert groups(given(a[:6], other, a[8:], a[4:10], 3, other)) == [0, 1, 0, 0, 4, 1]
    assert groups(given(a[::2], a[1::2], [other, a[:2]])) == [0, 0, 0]  # by way of the list
    assert groups(given(a[::2], a[1::2], a[:0])) == [0, 1, 2]


def test_on_a_gpu_addresses_tell() -> None:
    first, second, far = (Array("float32", (8,), (1,), address, 0) for address in (4096, 4112, 8192))
    elsewhere = Array("float32", (8,), (1,), 4096, 1)
    assert groups([first, second, far, None]) == [0, 0, 2, 3]
    assert groups([second, elsewhere]) == [0, 1]


def test_what_meets_is_seen_where_it_lies() -> None:
    a = np.zeros(12, np.float32)
    found = where_they_lie(given(a[:8], a[4:], [a[:8]]))
    assert all(array.in_place and not array.packed for array in arrays(found))
    for alone in (given(a, a), given(a[:4], a[4:]), given(a, a[::-1]), given(a, a[:0])):
        assert all(array.packed for array in arrays(where_they_lie(alone)))
