from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolchain.cute.layout import LayoutError, divide_up, equal, less_each, shape_div, tuple_add, tuple_sub
from toolchain.cute.layout.tuples import parse, text


@pytest.mark.parametrize(
    ("function", "a", "b", "result"),
    [
        (tuple_add, "(3,4)", "(1,2)", "(4,6)"),
        (tuple_add, "(1,2)", "(4,5,6)", "(5,7,6)"),
        (tuple_add, "0", "(4,5)", "(4,5)"),
        (tuple_sub, "(5,8)", "(1,2)", "(4,6)"),
        (tuple_sub, "(5,8)", "0", "(5,8)"),
        (tuple_sub, "(9,8)", "(2,2,7)", "(7,6,7)"),
        (shape_div, "(8,10)", "(2,5)", "(4,2)"),
        (shape_div, "(4,5,6)", "40", "(1,1,3)"),
        (shape_div, "12", "(2,3)", "2"),
        (divide_up, "(8,10)", "(3,4)", "(3,3)"),
        (divide_up, "(8,10,?)", "(3,4)", "(3,3,?)"),
        (divide_up, "(4,6)", "8", "(1,3)"),
    ],
)
def test_arithmetic(function: Callable[[Any, Any], Any], a: str, b: str, result: str) -> None:
    assert text(function(parse(a), parse(b))) == result


@pytest.mark.parametrize(
    ("function", "a", "b"),
    [
        (tuple_add, "(1,2)", "((1,2),3)"),
        (tuple_sub, "0", "(1,2)"),
        (shape_div, "6", "4"),
        (shape_div, "(6,4)", "(2,2,2)"),
        (divide_up, "(6,4)", "(2,2,2)"),
        (divide_up, "(6,4)", "(2,0)"),
        (less_each, "(1,2)", "3"),
    ],
)
def test_what_does_not_fit_is_refused(function: Callable[[Any, Any], Any], a: str, b: str) -> None:
    with pytest.raises(LayoutError):
        function(parse(a), parse(b))


def test_comparisons_know_when_they_do_not_know() -> None:
    assert equal(parse("(3,(4,?))"), parse("(3,(4,?))")) is None
    assert equal(parse("(3,?)"), parse("(4,?)")) is False
    assert equal(parse("(3,4)"), parse("(3,4)")) is True
    assert equal(parse("(3,4)"), parse("(3,(4,1))")) is False
    assert less_each(parse("(3,4)"), parse("(5,6)")) is True
    assert less_each(parse("(3,?)"), parse("(3,6)")) is False
    assert less_each(parse("(3,?)"), parse("(4,6)")) is None
