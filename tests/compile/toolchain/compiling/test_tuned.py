"""Entries that one source's measurements chose, compiled from the other source."""

from __future__ import annotations

import pytest

from tests.compile import compiled
from tests.compile.conftest import Exported


@pytest.mark.needs("toolchain")
@pytest.mark.long("exports every product tuned in bf16, of both sources, and compiles what is new")
def test_no_tuned_product_waits_for_the_one_before_or_spills(exported: Exported) -> None:
    """The kernels of the two sources differ in small things, and those decide whether ptxas serialises the products and
    how many registers they take: a tuned entry that is fast in one source may be slow in the other."""
    tuned = compiled.tuned_products(compiled.all_entries())
    assert len(tuned) > 40
    assert compiled.slow(compiled.new(compiled.TUNED, tuned, exported)) == []


@pytest.mark.needs("toolchain")
@pytest.mark.long("exports every entry predicted in bf16, of both sources, and compiles what is new")
@pytest.mark.parametrize("target", compiled.PREDICTED)
def test_no_predicted_entry_waits_or_spills(target: str, exported: Exported) -> None:
    """Nobody ran them on such a GPU: this and the interpreter are all that speaks for them."""
    predicted = compiled.predicted(compiled.all_entries(), target)
    assert len(predicted) > 20
    assert compiled.slow(compiled.new(target, predicted, exported), target) == []
