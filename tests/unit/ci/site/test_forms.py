"""The forms of irregular operations: each has one, it names the operation's operands, and the examples have it."""

from __future__ import annotations

import re

import pytest

from ci.site.forms import FORMS
from ci.site.reference import FOLDER, PAGES, Example, examples
from toolchain.tileir.dialect.ops import OPS
from toolchain.tileir.text.formats import FORMATS

EXAMPLES = {example.op: example for name in PAGES for example in examples(FOLDER / f"{name}.mlir")}
WORDS = {"predicate", "number", "scalar", "N", "memory_ordering_semantics", "memory_scope", "mode", "name"}


def test_an_operation_has_a_form_or_a_row_in_the_table_of_formats() -> None:
    assert FORMS.keys() | FORMATS.keys() == OPS.keys()
    assert not FORMS.keys() & FORMATS.keys()


@pytest.mark.parametrize("op", FORMS)
def test_a_form_names_every_operand(op: str) -> None:
    operands = {name for name, _ in OPS[op].get_irdl_definition().operands}
    assert op == "return" or operands <= set(re.findall(r"%(\w+)", FORMS[op]))


@pytest.mark.parametrize("op", FORMS)
def test_the_example_has_the_form(op: str) -> None:
    assert written_so(EXAMPLES[op], FORMS[op])


def test_an_example_in_another_form_is_noticed() -> None:
    load = EXAMPLES["load_view_tko"]
    assert not written_so(load, FORMS["load_view_tko"].replace("%view", "%view, %tile"))
    assert not written_so(load, FORMS["load_view_tko"].replace(" : ", " -> ", 1))


def written_so(example: Example, form: str) -> bool:
    words = re.findall(r"\\.|%\w+|type\([\w, ]+\)|(?:, )?\.\.\.|\w+ or [%\w]+|\w+|\S", form)
    pattern = r"\s*".join([rf"\b{example.op}", *map(_matching, words)])
    return re.search(pattern, example.body, re.DOTALL) is not None


def _matching(word: str) -> str:
    """What matches a word of a form."""
    if word in ("[", "]"):
        return "(?:" if word == "[" else ")?"
    if word in ("...", ", ...", "numbers", "message", "format") or word.startswith("type("):
        return ".*?"
    if word.startswith("%") or " or " in word:
        return r"[%\w]+"
    if word in WORDS:
        return r"[\w.<>]+"
    return word if word.startswith("\\") else re.escape(word)
