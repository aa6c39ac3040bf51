"""Several errors of one text: each is real, and the first is the one that a plain parse ends with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolchain.errors import SourceError
from toolchain.knobs import ROOT
from toolchain.tileir import bytecode
from toolchain.tileir.source import Source
from toolchain.tileir.text import parse_all
from toolchain.tileir.text.lexer import tokenize
from toolchain.tileir.text.recovery import RecoveringParser

TEXTS = [path.read_text() for path in sorted((ROOT / "docs" / "reference").glob("*.mlir"))]


def recovered(text: str) -> RecoveringParser:
    parser = RecoveringParser(Source(text, "k.mlir"))
    parser.all_modules()
    return parser


def errors(text: str) -> list[str]:
    """Line and message of each."""
    found = [str(error).split("\n")[0].split(":", 2) for error in recovered(text).errors]
    return [f"{line}: {said.partition(' error: ')[2]}" for _, line, said in found]


def entry(*operations: str) -> str:
    return "\n".join(["entry @k(%x: tile<f32>, %n: tile<i32>) {", *operations, "return", "}"])


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_right_is_read_as_ever(text: str) -> None:
    parser = RecoveringParser(Source(text, "k.mlir"))
    (found,), (wanted,) = parser.all_modules(), parse_all(text, filename="k.mlir")
    assert parser.errors == [] and bytecode.write(found, "13.5") == bytecode.write(wanted, "13.5")


@settings(max_examples=150)
@given(st.sampled_from(TEXTS), st.data())
def test_the_first_error_is_the_one_that_a_parse_ends_with(text: str, data: st.DataObject) -> None:
    tokens = tokenize(Source(text, "k.mlir"))
    token = tokens[data.draw(st.integers(0, len(tokens) - 2))]
    other = data.draw(st.sampled_from(["", token.text * 2, "{", "}", "%none", "addf", "return", " = "]))
    broken = text[: token.at] + other + text[token.at + len(token.text) :]
    assert first(lambda: recovered(broken).errors) == first(lambda: parse_all(broken, filename="k.mlir") and [])


def first(errors: Callable[[], Sequence[SourceError]]) -> str | None:
    """The first error that is returned or raised."""
    try:
        return next(map(str, errors()), None)
    except SourceError as error:
        return str(error)


def test_errors_of_one_body() -> None:
    wrong = entry("%a = addf %x, %y : tile<f32>", "%b = nonsense %x", "%c = addi %n, %n : tile<i32>", "%d = addi %n")
    assert errors(wrong) == [
        "2: %y is not defined here",
        "3: there is no operation 'nonsense'",
        "6: expected ',', found 'return'",
    ]


def test_what_follows_from_an_error_is_none() -> None:
    wrong = entry("%a, %b:2 = nonsense", "%c = addf %a, %x : tile<f32>", "%d = addf %c, %b#1 : tile<f32>")
    assert errors(wrong) == ["2: there is no operation 'nonsense'"]


def test_an_operation_of_several_lines_is_skipped_whole() -> None:
    wrong = entry("%a = nonsense %x\n  rounding<zero>\n  : tile<f32>", "%b = addf %x, %z : tile<f32>")
    assert errors(wrong) == ["2: there is no operation 'nonsense'", "5: %z is not defined here"]


def test_errors_inside_of_a_loop_and_behind_it() -> None:
    loop = [
        "%r = for %i in (%n to %n, step %n) : tile<i32> iter_values(%v = %x) -> (tile<f32>) {",
        "%p = addf %v, %i : tile<f32>", "%q = addf %v, %u : tile<f32>", "continue %p : tile<f32>", "}",
    ]  # fmt: skip
    assert errors(entry(*loop, "%s = addf %r, %x : tile<f32>", "%t = addf %x, %w : tile<f32>")) == [
        "3: %i is of type tile<i32>, not tile<f32>", "4: %u is not defined here", "8: %w is not defined here",
    ]  # fmt: skip


def test_a_wrong_head_ends_its_entry_alone() -> None:
    right = entry().replace("@k", "@right")
    text = f"entry @k(%x tile<f32>) {{\n%a = nonsense\n}}\n{right}\nentry @last( {{\n}}"
    assert errors(text) == ["1: expected ':', found 'tile'", "7: expected a value name such as %x, found '{'"]
    (module,) = RecoveringParser(Source(text, "k.mlir")).all_modules()
    assert list(module.entries) == ["right"]


def test_names_of_one_entry_are_not_those_of_the_next() -> None:
    text = entry("%a = nonsense") + "\n" + entry("%b = addf %a, %x : tile<f32>").replace("@k", "@other")
    assert errors(text) == ["2: there is no operation 'nonsense'", "6: %a is not defined here"]


def test_a_global_that_is_left_out_is_known_to_be() -> None:
    parser = recovered(f"global @g <f32: > : tile<4xf32>\n{entry()}")
    assert parser.lacks_globals and len(parser.errors) == 1
    assert not recovered(entry("%a = nonsense")).lacks_globals


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: no entry in this file"),
        ("entry @k() {\nreturn", "1: '{' is never closed"),
        ("module @m {\nentry @k() { return }", "2: expected '}', found end of file"),
        ("entry @k() { return }\nnonsense", "2: expected 'entry' or 'global', found 'nonsense'"),
    ],
)
def test_errors_outside_of_bodies(text: str, said: str) -> None:
    assert errors(text) == [said]
