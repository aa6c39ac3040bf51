"""variants.json is read back as it was written, and a part of it can be chosen to measure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.errors import UsageError
from tune.catalogue import Catalogue, document, merged

from .conftest import FEW, MANY


def test_it_reads_back_as_it_was(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.save(tmp_path / "new" / "folder")
    assert Catalogue.load(tmp_path / "new" / "folder") == catalogue
    text = (tmp_path / "new" / "folder" / "variants.json").read_text()
    assert len(text.splitlines()) == len(catalogue.candidates) + 2, "a line for each variant"


def test_entrants_are_what_compiled_for_a_class(catalogue: Catalogue) -> None:
    def symbols(contest: object) -> list[str]:
        return [c.spec.symbol for c in catalogue.entrants(contest, "py")]  # pyright: ignore[reportArgumentType]

    assert (symbols(FEW), symbols(MANY)) == (["a", "b", "c"], ["a", "b"])
    assert list(catalogue.entrants(FEW, "mlir")) == []
    assert (catalogue.sources, catalogue.counts()) == (("py",), "3 compiled, 1 pruned")


def test_contests_are_chosen_by_op_and_class(catalogue: Catalogue) -> None:
    assert catalogue.only().contests == catalogue.only("gelu").contests == (FEW, MANY)
    assert catalogue.only("gelu", re.compile("many")).contests == (MANY,)
    with pytest.raises(
        UsageError, match="nothing of linear was compiled for these classes\n  next: there are: gelu bf16 f"
    ):
        catalogue.only("linear")
    assert merged([FEW, MANY, FEW]) == (FEW, MANY)


def test_contests_are_chosen_by_the_spaces_of_a_model(catalogue: Catalogue) -> None:
    tiny = replace(catalogue.candidates[2], space="tiny")  # tried for one of the classes
    both = replace(catalogue, candidates=(*catalogue.candidates, tiny))
    assert both.only("llama", spaces=("tiny", "other")).contests == (FEW,)
    assert both.only("llama", spaces=("gelu",)).contests == (FEW, MANY)
    assert both.only("llama", re.compile("many"), ("gelu",)).contests == (MANY,)
    with pytest.raises(UsageError, match="nothing of llama was compiled"):
        both.only("llama", spaces=("other",))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file\n  next: tilestack tune --phase compile"),
        ("{", "is damaged: JSONDecodeError"),
        ("[]", "is damaged: TypeError"),
        ('{"format": 7}', "format 7, this version reads 2"),
        ('{"format": 2, "target": "sm_90"}', "is damaged: KeyError: 'tools'"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "variants.json").write_text(content)
    with pytest.raises(UsageError, match=said):
        Catalogue.load(tmp_path)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    with pytest.raises(UsageError, match=r"README\.md/variants\.json: no such file\n  next: tilestack tune"):
        Catalogue.load(tmp_path / "README.md")
    (tmp_path / "variants.json").mkdir()
    with pytest.raises(UsageError, match=r"variants\.json cannot be read: Is a directory"):
        Catalogue.load(tmp_path)


def test_a_document_is_json_with_a_line_for_each_row() -> None:
    text = document(3, {"target": "sm_90"}, ['{"a": 1}', '{"b": [2]}'])
    assert json.loads(text) == {"format": 3, "target": "sm_90", "rows": [{"a": 1}, {"b": [2]}]}
    assert text.splitlines()[1:3] == ['{"a": 1},', '{"b": [2]}']
    assert json.loads(document(3, {}, [])) == {"format": 3, "rows": []}
