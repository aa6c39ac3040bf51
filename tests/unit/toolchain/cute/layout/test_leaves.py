from __future__ import annotations

import pytest

from toolchain.cute.layout import Basis, Dynamic, Layout
from toolchain.cute.layout.leaves import ceil_div, smaller, split
from toolchain.cute.layout.tuples import parse, text


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (Dynamic() * 8, "?{div=8}"),
        (8 * Dynamic(32, 4), "?{div=32}"),
        (Dynamic(32, 8) + Dynamic(64, 12), "?{i64 div=4}"),
        (Dynamic(32, 8) - 4, "?{div=4}"),
        (Dynamic(32, 8) // 4, "?{div=2}"),
        (Dynamic(32, 8) // 3, "?"),
        (Dynamic(32, 8) % 4, "0"),
        (Dynamic(32, 8) % 6, "?{div=2}"),
        (Dynamic() * 0, "0"),
        (ceil_div(Dynamic(32, 8), 4), "?"),
        (smaller(Dynamic(32, 8), 12), "?{div=4}"),
    ],
)
def test_the_divisibility_of_a_result_is_what_is_certain(made: object, written: str) -> None:
    assert str(made) == written


@pytest.mark.parametrize("written", ["?", "(2,(3,?{div=4}))", "(?{i64 div=16},_)", "(1@0,?{div=2}@1@3)", "()"])
def test_text_is_read_back(written: str) -> None:
    assert text(parse(written)) == written


def test_the_modes_of_a_nested_basis_are_written_from_the_inside() -> None:
    assert parse("4@1@0") == Basis(4, (0, 1))
    assert Layout.parse("(2,3):(1@0@0,4@1@0)")((1, 2)) == ((1, 8),)


def test_the_part_of_a_sum_that_is_a_multiple() -> None:
    assert split(37, 8) == (32, 5)
    assert split(Dynamic(32, 16), 8) == (Dynamic(32, 16), 0)
    assert split(Dynamic(32, 4), 8) == (0, Dynamic(32, 4))
