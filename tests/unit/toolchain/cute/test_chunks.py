"""Files of tests as LLVM's projects write them."""

from __future__ import annotations

from toolchain.cute.chunks import Expected, TestFile

TWO = """\
// RUN: tool %s -split-input-file \\
// RUN:   | tool
// RUN: check %s

op.one  // expected-error {{this line}}
// expected-error @below {{first}}
// expected-note@+2 {{second}}
op.two
// expected-error@unknown {{nowhere}}
// -----
// only words

// ----- and some more
op.three
// expected-error-re @above {{size {{[0-9]+}} (x)}}
"""


def test_run_lines_go_on_after_a_backslash() -> None:
    assert TestFile(TWO).runs == ("tool %s -split-input-file | tool", "check %s")


def test_chunks_have_their_lines_and_one_without_code_is_none() -> None:
    first, second = TestFile(TWO).chunks
    assert (first.line, second.line) == (1, 14)
    assert first.text.endswith("{{nowhere}}\n")
    assert second.in_place.splitlines()[13] == "op.three"


def test_a_file_that_is_not_split_is_one_chunk() -> None:
    (chunk,) = TestFile("// RUN: tool %s\nop.one\n// -----\nop.two\n").chunks
    assert chunk.text.count("op.") == 2
    assert not chunk.errors


def test_an_expectation_is_of_a_line() -> None:
    first, second = TestFile(TWO).chunks
    assert first.expected == (
        Expected("error", 5, "this line", regex=False),
        Expected("error", 8, "first", regex=False),
        Expected("note", 9, "second", regex=False),
        Expected("error", None, "nowhere", regex=False),
    )
    assert len(first.errors) == 3
    assert second.expected[0].line == 14


def test_a_message_has_what_is_expected() -> None:
    plain, pattern = Expected("error", 1, "size (x)", regex=False), TestFile(TWO).chunks[1].expected[0]
    assert plain.said_in("wrong size (x) of it")
    assert not plain.said_in("size x")
    assert pattern.said_in("wrong size 12 (x)")
    assert not pattern.said_in("size a (x)")
