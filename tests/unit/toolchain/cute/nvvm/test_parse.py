from __future__ import annotations

import pytest

from toolchain.cute.nvvm import parse
from toolchain.errors import SourceError


def test_text_that_is_wrong_is_named_by_file_line_and_column() -> None:
    with pytest.raises(SourceError, match=r"^scale\.mlir:2:\d+: "):
        parse("gpu.module @m {\n  llvm.func @k( }", "scale.mlir")


def test_a_module_that_does_not_verify_is_refused() -> None:
    with pytest.raises(SourceError, match=r"^scale\.mlir:1:17: "):
        parse('gpu.module @m { %0 = "arith.constant"() {value = 1 : i32} : () -> i64 }', "scale.mlir")


def test_the_text_of_a_module_is_read_back() -> None:
    module = parse("gpu.module @m { llvm.func @k() { nvvm.barrier0\n nvvm.cp.async.wait.group 1\n llvm.return } }")
    assert str(parse(str(module))) == str(module)
