"""Which measurements were taken with the current code."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.errors import BundleError
from tune.catalogue import Catalogue
from tune.measured import Launched

from .conftest import OWN, Fill, compiled_to


def test_a_row_is_old_when_what_it_launched_is_another(fill: Fill, launched: Launched, tmp_path: Path) -> None:
    measured = fill({OWN: [9.0], "a": [1.0], "gone": [2.0]})
    assert launched.forget_old(measured) == 0, "of what is not compiled now, nothing is known"
    assert compiled_to(tmp_path, "another cubin").forget_old(measured) == 1
    assert {row.symbol for row in measured.rows.values()} == {OWN, "gone"}


@pytest.mark.parametrize("field", ["grid", "where"])
def test_how_it_is_launched_is_a_part_of_it(launched: Launched, field: str) -> None:
    def changed(bundle: Bundle) -> Bundle:
        entries = (replace(e, spec=replace(e.spec, **{field: ("1", "1", "1")})) for e in bundle.entries)
        return replace(bundle, entries=tuple(entries))

    other = Launched("sm_90", changed(launched.variants), changed(launched.own))
    for symbol in ("a", OWN):
        assert launched.file("py", "gelu", "bf16", symbol) != other.file("py", "gelu", "bf16", symbol)


def test_the_sources_own_are_those_of_an_op_and_dtype(launched: Launched) -> None:
    assert launched.file("py", "gelu", "bf16", OWN)
    assert not any(launched.file(*of, OWN) for of in [("mlir", "gelu", "bf16"), ("py", "gelu", "f16")])


def test_a_folder_must_have_what_its_catalogue_says(catalogue: Catalogue, launched: Launched, tmp_path: Path) -> None:
    again = Launched.load(tmp_path, catalogue)
    assert again.file("py", "gelu", "bf16", "a") == launched.file("py", "gelu", "bf16", "a")
    d = replace(catalogue.candidates[0], spec=replace(catalogue.candidates[0].spec, symbol="d"))
    with pytest.raises(BundleError, match=r"bundle lacks 1 variants, the first py/d\n  next: .*the whole folder"):
        Launched.load(tmp_path, replace(catalogue, candidates=(*catalogue.candidates, d)))
    shutil.rmtree(tmp_path / "own")
    with pytest.raises(BundleError, match=r"no bundle in .*own.*\n  next: tilestack tune --phase compile"):
        Launched.load(tmp_path, catalogue)
