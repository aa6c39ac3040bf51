"""Parts found by name in a folder's files."""

from __future__ import annotations

import re

import pytest

from toolchain.errors import SourceError
from toolchain.tileir.compose import Library

TYPES = "sizes BN = 8\n!line = !cuda_tile.tile<BNxT>\n!view = !cuda_tile.tensor_view<?xT, strides=[1]>\n"
PARTS = """include "types.mlir"
!own = !cuda_tile.tile<2xBNxT>  // a comment
fragment @double(%a: !line) -> !line {
  %b = addf %a, %a : !line
  yield %b : !line
}
fragment @unused(%a: !own) {
  yield
}
kernel @k op = gelu {
  %one = constant <T: 1.0> : !line
  %two = call @double(%one)
  return
}
"""


def library(**changes: str) -> Library:
    return Library({"k/types.mlir": TYPES, "k/parts.mlir": PARTS, **changes})


def test_items_aliases_and_sizes() -> None:
    found = library()
    assert {(kind, name) for kind, name in found.items} == {
        ("fragment", "double"), ("fragment", "unused"), ("kernel", "k")}  # fmt: skip
    parts = found.files["k/parts.mlir"]
    assert found.known_aliases(parts) == ["own", "line", "view"]
    assert found.sizes(parts) == {"BN": 8}
    assert found.alias(parts, "line") is not None
    assert found.alias(found.files["k/types.mlir"], "own") is None, "an alias belongs to its file"


def test_what_a_kernel_is_written_in() -> None:
    assert library().written("k").keys() == {"kernel @k", "k/types.mlir !line", "fragment @double"}


def test_what_a_kernel_is_written_in_changes_with_its_parts_alone() -> None:
    before = library().written("k")
    assert library(**{"k/parts.mlir": PARTS.replace("// a comment", "// another")}).written("k") == before
    assert library(**{"k/parts.mlir": PARTS.replace("2xBN", "4xBN")}).written("k") == before, "@unused is not used"
    assert library(**{"k/parts.mlir": PARTS.replace("addf", "mulf")}).written("k") != before
    assert library(**{"k/types.mlir": TYPES.replace("<BNxT>", "<BNxf32>")}).written("k") != before


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("k/more.mlir", "fragment @open() {\n", "k/more.mlir:1:18: error: '{' is never closed"),
        ("k/more.mlir", "kernel @k2 op = gelu\n", "expected '{' after this"),
        ("k/more.mlir", "!a = !cuda_tile.tile<2xf32>\n!a = i32\n", "k/more.mlir:2:1: error: alias !a is defined twice"),
        ("k/more.mlir", "entry @k() { return }\n", "k/more.mlir:1:1: error: expected an alias, include, sizes"),
        ("k/more.mlir", "!a = !cuda_tile.tile<2xf32\n", "this type never ends"),
    ],
)
def test_files_that_cannot_be_told_apart(name: str, text: str, message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)):
        Library({name: text, "k/types.mlir": TYPES, "k/parts.mlir": PARTS})


def test_a_name_that_stands_twice_is_an_error_for_its_users_alone() -> None:
    other = "kernel @other op = gelu {\n  return\n}\n"
    found = library(**{"k/more.mlir": f"fragment @double() {{\n}}\n{other}"})
    assert found.written("other").keys() == {"kernel @other"}
    twice = "k/more.mlir:1:10: error: fragment @double is defined twice, also at k/parts.mlir:3:10"
    for ask in (lambda: found.written("k"), lambda: found.find("fragment", "double")):
        with pytest.raises(SourceError, match=re.escape(twice)):
            ask()


def test_an_included_file_that_is_not_there() -> None:
    found = Library({"k/parts.mlir": PARTS})
    with pytest.raises(SourceError, match=r"it includes 'types.mlir', which is not in its folder"):
        found.sizes(found.files["k/parts.mlir"])


def test_a_kernel_that_is_not_there() -> None:
    with pytest.raises(SourceError, match="there is no kernel @kk"):
        library().written("kk")


def test_another_text_of_one_file() -> None:
    before = library()
    after = before.with_file("k/parts.mlir", PARTS.replace("addf", "mulf"))
    assert "mulf" in after.written("k")["fragment @double"]
    assert "addf" in before.written("k")["fragment @double"]
    assert after.files["k/types.mlir"] is before.files["k/types.mlir"], "the others are not indexed again"
