"""Operations of `gpu`, in MLIR's text."""

from __future__ import annotations

import pytest

from toolchain.cute.mlir_text import mlir_text
from toolchain.cute.parse import parse
from toolchain.errors import SourceError

TEXT = """builtin.module {
  gpu.module @m {
    gpu.func @k(%n: i32) kernel attributes {note = "a"} {
      %x = gpu.thread_id x
      %y = gpu.block_dim z
      gpu.printf "%d\\0A", %n : i32
      gpu.printf "done"
      gpu.return
    }
    gpu.func @helper(%a: i32) -> (i32) {
      gpu.return %a : i32
    }
  }
  func.func @main(%n: i32) {
    %c = arith.constant 1 : index
    gpu.launch_func @m::@k blocks in (%c, %c, %c) threads in (%c, %c, %c) args(%n : i32)
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c, %gy = %c, %gz = %c) threads(%tx, %ty, %tz) in (%sx = %c, %sy = %c, %sz = %c) {
      gpu.terminator
    }
    return
  }
}"""  # noqa: E501


def test_it_is_printed_as_it_is_read() -> None:
    assert mlir_text(parse(TEXT)) == TEXT
    assert mlir_text(parse(mlir_text(parse(TEXT), generic=True))) == TEXT


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [("thread_id x", "thread_id w", "an axis is one of x, y, z"), ("@m::@k", "3", "expected the name of a kernel")],
)
def test_what_is_wrong_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        parse(TEXT.replace(old, new))
