"""Errors of the verifier and of passes begin with the place of the operation."""

from __future__ import annotations

import pytest

from toolchain.cute.nvvm.location import blamed, place
from toolchain.cute.parse import parse
from toolchain.errors import SourceError

TEXT = """func.func @f() {
  %a = cute.static : !cute.shape<"4">
  func.return
}"""


def test_each_operation_knows_where_it_was_written() -> None:
    module = parse(TEXT, "k.mlir")
    assert [place(op) for op in module.walk()][1:] == ["k.mlir:1:1: ", "k.mlir:2:3: ", "k.mlir:3:3: "]


def test_the_verifier_names_the_place() -> None:
    with pytest.raises(SourceError, match=r"^k\.mlir:2:3: cute\.static: .* not known"):
        parse(TEXT.replace('"4"', '"?"'), "k.mlir")


@pytest.mark.parametrize("said", ["no", "pass-x: no", "cute.static: no"])
def test_an_error_of_a_pass_names_pass_operation_and_place(said: str) -> None:
    op = list(parse(TEXT, "k.mlir").walk())[2]
    with pytest.raises(SourceError) as caught, blamed("pass-x", op):
        raise SourceError(said, hint="do this")
    assert str(caught.value) == "k.mlir:2:3: pass-x: cute.static: no\n  next: do this"
