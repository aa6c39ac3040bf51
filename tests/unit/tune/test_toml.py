"""The TOML that is written is what tomllib reads back."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tune import toml

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\x7f"))
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    TEXT | NUMBERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(TEXT.filter(lambda key: key != "below"), VALUES, max_size=4), st.dictionaries(TEXT, VALUES))
def test_it_reads_back(row: dict[str, object], below: dict[str, object]) -> None:
    text = toml.entries([{**row, "below": below}] * 2, "entry", "below")
    assert tomllib.loads(text) == {"entry": [{**row, "below": below}] * 2}


def test_how_it_looks() -> None:
    row = {"op": "gelu", "constants": {"BN": 64}, "where": ("M > 1",), "measured": {"us": {"M=1 N=2": 5.0}}}
    assert toml.entries([row], "entry", "measured") == (
        '[[entry]]\nop = "gelu"\nconstants = { BN = 64 }\nwhere = ["M > 1"]\n\n'
        '[entry.measured]\nus = { "M=1 N=2" = 5.0 }\n'
    )


def test_only_the_tables_that_a_row_has_are_written() -> None:
    assert toml.entries([{"op": "gelu", "b": {"us": 1}}], "entry", "a", "b") == (
        '[[entry]]\nop = "gelu"\n\n[entry.b]\nus = 1\n'
    )


def test_what_has_no_toml() -> None:
    with pytest.raises(TypeError, match="no TOML for None"):
        toml.value(None)
