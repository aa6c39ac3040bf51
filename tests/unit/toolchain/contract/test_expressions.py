"""The language of conditions and grids."""

from __future__ import annotations

import pytest

from toolchain.contract.expressions import evaluate
from toolchain.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cdiv(cdiv(K, 64), Z) % 2 == 0", True),
        ("max(K, 5) - 2 * Z // 3", 298),
        ("K < Z", False),
        ("K != Z", True),
    ],
)
def test_expressions(text: str, value: int) -> None:
    assert evaluate(text, {"K": 300, "Z": 3}) == value


@pytest.mark.parametrize("text", ["K ** 2", "K if Z else 1", "open('x')", "K.real", "1 < K < 9", "min(K, key=1)"])
def test_nothing_else_is_an_expression(text: str) -> None:
    with pytest.raises(UsageError, match="cannot evaluate"):
        evaluate(text, {"K": 300, "Z": 3})


def test_a_function_wants_its_arguments() -> None:
    with pytest.raises(UsageError, match=r"'K > cdiv\(K\)': 'cdiv\(K\)': .* missing 1 required"):
        evaluate("K > cdiv(K)", {"K": 300})


@pytest.mark.parametrize("text", ["K // Z", "K % (Z - Z)", "1 + cdiv(K, Z)"])
def test_a_division_by_zero_says_of_what(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        evaluate(text, {"K": 300, "Z": 0, "N": 1})
    assert str(caught.value) == f"{text!r} divides by zero where K=300, Z=0"
    with pytest.raises(UsageError, match=r"^'1 % 0' divides by zero$"):
        evaluate("1 % 0", {})
