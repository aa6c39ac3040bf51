"""MLIR's own text of a module, which is read again."""

from __future__ import annotations

from toolchain.cute.mlir_text import mlir_text
from toolchain.cute.parse import parse

TEXT = """builtin.module {
  func.func private @g(!llvm.struct<(i32, struct<(ptr, struct<()>)>, array<2 x struct<(i32)>>)>) -> (i32, i32)
  func.func @f(%a: !llvm.struct<(i32, struct<(ptr, struct<()>)>, array<2 x struct<(i32)>>)>, %s: !cute.shape<"(?,?)">) -> i32 {
    %r:2 = call @g(%a) : (!llvm.struct<(i32, struct<(ptr, struct<()>)>, array<2 x struct<(i32)>>)>) -> (i32, i32)
    %x:2 = cute.get_scalars (%s) : !cute.shape<"(?,?)">
    %y = arith.addi %r#1, %x#0 overflow<nsw> : i32
    return %y : i32
  }
}"""  # noqa: E501


def test_it_is_printed_as_it_is_read() -> None:
    assert mlir_text(parse(TEXT)) == TEXT


def test_the_generic_form_is_read_again_as_the_same() -> None:
    generic = mlir_text(parse(TEXT), generic=True)
    assert '"arith.addi"(%r#1, %x#0)' in generic
    assert '%x:2 = "cute.get_scalars"' in generic
    assert mlir_text(parse(generic)) == TEXT
