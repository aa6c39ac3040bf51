"""docs/reference/types.md names every scalar and every word of the dialect's enumerations, and its module verifies."""

from __future__ import annotations

import re

import pytest

from toolchain.knobs import ROOT
from toolchain.tileir import text
from toolchain.tileir.dialect import attrs, types
from toolchain.tileir.dialect.verify import verify

PAGE = (ROOT / "docs/reference/types.md").read_text()
WORDS = set(re.findall(r"`([^`]+)`", PAGE))
ENUMS = (
    attrs.RoundingMode, attrs.IntegerOverflow, attrs.Signedness, attrs.ComparisonPredicate, attrs.ComparisonOrdering,
    attrs.MemoryOrdering, attrs.MemoryScope, attrs.AtomicMode,
)  # fmt: skip


@pytest.mark.parametrize("enum", ENUMS)
def test_every_word_is_there(enum: type[attrs.RoundingMode]) -> None:
    assert {word.value for word in enum} <= WORDS


def test_every_scalar_and_padding_is_there() -> None:
    assert {name for name, _ in types.SCALARS.values()} | set(types.PADDINGS) <= WORDS


def test_every_predicate_is_read() -> None:
    spelled = [word for word in WORDS if word.startswith(("div_by<", "bounded<", "same_elements<"))]
    assert len(spelled) == 4
    for predicate in spelled:
        body = f"entry @k() {{\n%x = iota : tile<8xi32>\n%y = assume {predicate}, %x : tile<8xi32>\n}}"
        (module,) = text.parse_all(body, filename="k.mlir")
        verify(module, text=body)


def test_the_module_verifies() -> None:
    (body,) = re.findall(r"```mlir\n(.*?)```", PAGE, re.DOTALL)
    (module,) = text.parse_all(body, filename="k.mlir")
    verify(module, text=body)
