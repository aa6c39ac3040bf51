"""Repeated operations, written out as tokens."""

from __future__ import annotations

import pytest

from toolchain.errors import SourceError
from toolchain.tileir.compose.repeat import write_out
from toolchain.tileir.source import Source
from toolchain.tileir.text.lexer import tokenize


def written(text: str) -> str:
    source = Source(text, "k.mlir")
    return " ".join(token.text for token in write_out(source, tokenize(source))[:-1])


def test_numbers_and_values_of_each_step() -> None:
    assert (
        written("%a.0 = b repeat I = 1 to 2 { %a.I = c %a.I-1, I }") == "%a.0 = b %a.1 = c %a.0 , 1 %a.2 = c %a.1 , 2"
    )


def test_only_the_name_itself_is_the_number() -> None:
    text = "%a.In %Ia.I.b II { I }"
    assert written(f"repeat I = 3 to 3 {{ {text} }}") == "%a.In %Ia.I.b II { 3 }"
    assert written(text) == text


def test_a_token_keeps_its_place() -> None:
    source = Source("repeat I = 0 to 1 {\n  %a.I = c\n}\n", "k.mlir")
    assert [str(source.location(token.at)) for token in write_out(source, tokenize(source))[:4:3]] == [
        "k.mlir:2:3",
        "k.mlir:2:3",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("repeat I = 2 to 1 { }", "k.mlir:1:1: error: a repeat counts up"),
        ("repeat I = 0 to 256 { }", "to 255 at the most"),
        ("repeat I = 0 to 1 { repeat J = 0 to 1 { } }", "k.mlir:1:21: error: a repeat stands in no other"),
        ("repeat I = 0 to 1 { a", "k.mlir:1:19: error: '{' is never closed"),
        ("repeat I 0 to 1 { }", "expected '='"),
    ],
)
def test_what_is_no_repeat(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        written(text)
