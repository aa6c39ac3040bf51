from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.results.expression import Expression
from toolchain.errors import UsageError

NAME = "layernorm-mlir-bf16-sm_90"
WORDS = ("layernorm", "MLIR", "bf16-sm", "f32", "gelu", "sm_9")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", True), ("  ", True), ("layernorm", True), ("LAYER", True), ("gelu", False), ("not gelu", True),
        ("gelu or mlir", True), ("gelu and mlir", False), ("mlir and not f32", True), ("not not mlir", True),
        ("gelu and f32 or mlir", True), ("mlir or f32 and gelu", True), ("(mlir or f32) and gelu", False),
        ("not (gelu or mlir)", False), ("not gelu and mlir", True), ("norm-mlir-bf16", True), ("nothing", False),
    ],
)  # fmt: skip
def test_what_is_true_for_a_name(text: str, found: bool) -> None:
    expression = Expression(text)
    assert expression(NAME) is found
    assert pickle.loads(pickle.dumps(expression))(NAME) is found


@given(
    st.recursive(
        st.sampled_from(WORDS),
        lambda inner: st.one_of(
            st.tuples(st.just("not"), inner), st.tuples(inner, st.sampled_from(["and", "or"]), inner)
        ),
        max_leaves=8,
    )
)
def test_it_is_python_with_words_for_names(tree: str | tuple[object, ...]) -> None:
    def spelled(part: object, word: str) -> str:
        if isinstance(part, str):
            return part if part in ("and", "or", "not") else word.format(part)
        assert isinstance(part, tuple)
        return f"({' '.join(spelled(each, word) for each in part)})"

    python = eval(spelled(tree, "('{}'.lower() in name)"), {"name": NAME})
    assert Expression(spelled(tree, "{}"))(NAME) is python


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("and", "expected a word, found 'and'"),
        ("gelu and", "expected a word, found the end"),
        ("gelu linear", "expected 'and' or 'or' before 'linear'"),
        ("(gelu", r"expected '\)'"),
        ("gelu)", r"expected 'and' or 'or' before '\)'"),
        ("()", r"expected a word, found '\)'"),
        ("not " * 100 + "x", "more than 64 inside one another"),
    ],
)
def test_texts_that_are_no_expression(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=rf"-k '.*': {said}\n  next: "):
        Expression(text)
