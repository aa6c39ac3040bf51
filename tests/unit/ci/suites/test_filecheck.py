"""FileCheck's directives, on small texts."""

from __future__ import annotations

import pytest

from ci.suites.filecheck import checks, compare

OUTPUT = """func @a(%x:  i32) {
  %0 = add %x, %x
  %1 = mul %0, %x
  return %1
}
func @b() {
  %0 = add %y, %y
  return
}
"""


def met(text: str) -> None:
    compare(checks(text), OUTPUT)


@pytest.mark.parametrize(
    "text",
    [
        "CHECK: func @a(%x: i32)",
        "CHECK-LABEL: func @b\nCHECK: return",
        "CHECK: %[[R:.+]] = add\nCHECK: mul %[[R]], %x",
        "CHECK: add %[[X:[a-z]]], %[[X]]",
        "CHECK: func @a\nCHECK-SAME: (%{{[a-z]+}}: i32)\nCHECK-NEXT: add",
        "CHECK-LABEL: func @a\nCHECK-NOT: sub\nCHECK: return",
        "CHECK-LABEL: func @a\nCHECK-NOT: add %y\nCHECK-LABEL: func @b",
        "CHECK-LABEL: func @a\nCHECK-DAG: mul\nCHECK-DAG: add\nCHECK: return",
        "CHECK-COUNT-2: %x",
        "OTHER: nothing of this prefix\nCHECK: return",
    ],
)
def test_what_is_there_is_found(text: str) -> None:
    met(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CHECK: sub", "line 1: CHECK: sub: not found"),
        ("CHECK-LABEL: func @c", "not found"),
        ("CHECK-LABEL: func @a\nCHECK: %y", "not found"),  # it stands behind the next label, were there one
        ("CHECK: mul\nCHECK: add %x", "not found behind"),
        ("CHECK: func @a\nCHECK-SAME: add", "1 lines further"),
        ("CHECK: func @a\nCHECK-NEXT: mul", "2 lines further"),
        ("CHECK: add\nCHECK-NOT: mul\nCHECK: return", "NOT: mul: found: %1 = mul"),
        ("CHECK-COUNT-3: func", "COUNT: func: not found"),
        ("CHECK-DAG: mul\nCHECK-DAG: mul", "not found"),
        ("CHECK: [[R]]", "R has no value"),
        ("CHECK: [[#N:]]", "numeric variables are not read"),
    ],
)
def test_what_is_not_there_is_named(text: str, said: str) -> None:
    if "func @a\nCHECK: %y" in text:
        text += "\nCHECK-LABEL: func @b"
    with pytest.raises(AssertionError) as caught:
        met(text)
    assert said in str(caught.value)


def test_a_prefix_is_a_word_of_its_own() -> None:
    assert [str(check) for check in checks("MY-CHECK: a\nCHECK-NOT:  b  c", "CHECK")] == ["line 2: NOT: b c"]
    assert [check.pattern for check in checks("POST-PREP-NOT: x", "POST-PREP")] == ["x"]
