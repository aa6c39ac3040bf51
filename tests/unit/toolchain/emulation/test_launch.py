"""What a launch prints beside what it raises."""

from __future__ import annotations

import pytest

from toolchain.emulation.launch import launch
from toolchain.emulation.settings import Settings
from toolchain.errors import SanitizerError
from toolchain.tileir import bytecode, text

KERNEL = """
entry @k() {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %zero = constant <i32: 0> : tile<i32>
  %first = cmpi equal %x, %zero, signed : tile<i32> -> tile<i1>
  assert %first, "only one block" : tile<i1>
}
"""


def test_an_assertion_that_fails_says_so_where_a_kernel_prints(capsys: pytest.CaptureFixture[str]) -> None:
    code = bytecode.write(text.parse(KERNEL, filename="k.mlir"), "13.3")
    launch(code, "k", (1, 1, 1), 0, [], Settings())
    assert capsys.readouterr().out == ""
    with pytest.raises(SanitizerError, match="assertion failed: only one block"):
        launch(code, "k", (2, 1, 1), 0, [], Settings())
    assert capsys.readouterr().out == "only one block\n"
