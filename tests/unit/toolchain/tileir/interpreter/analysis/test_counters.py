"""The last block of a grid, which a counter finds, and a counter that was not reset."""

from __future__ import annotations

import re

import numpy as np
import pytest

from toolchain.errors import SanitizerError
from toolchain.tileir import text
from toolchain.tileir.interpreter import Allocation, Pointer, Prepared

# Each block stores its number. The last that adds to the counter adds up what all have stored.
LAST = """
entry @k(%parts: tile<ptr<i32>>, %count: tile<ptr<i32>>, %out: tile<ptr<i32>>) {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %two = constant <i32: 2> : tile<i32>
  %block, %y, %z = get_tile_block_id : tile<i32>
  %blocks, %ny, %nz = get_num_tile_blocks : tile<i32>
  %end = subi %blocks, %one : tile<i32>
  %mine = offset %parts, %block : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
  %stored = store_ptr_tko weak %mine, %block : tile<ptr<i32>>, tile<i32> -> token
  %old, %added = atomic_rmw_tko acq_rel device %count, add, AMOUNT token = %stored
    : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %next = addi %old, %one : tile<i32>
  %is = cmpi ASKED, signed : tile<i32> -> tile<i1>
  if %is { BODY } else { OTHER }
}
"""
SUM = """
    %total = for %at in (%zero to %blocks, step %one) : tile<i32> iter_values(%sum = %zero) -> (tile<i32>) {
      %place = offset %parts, %at : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
      %part, %t = load_ptr_tko weak %place token = %added : tile<ptr<i32>> -> tile<i32>, token
      %more = addi %sum, %part : tile<i32>
      continue %more : tile<i32>
    }
    %w = store_ptr_tko weak %out, %total : tile<ptr<i32>>, tile<i32> -> token
"""
RESET = "%r = store_ptr_tko weak %count, %zero token = %added : tile<ptr<i32>>, tile<i32> -> token"


def kernel(asked: str = "equal %old, %end", body: str = SUM, other: str = "", amount: str = "%one") -> Prepared:
    words = {"ASKED": asked, "BODY": body, "OTHER": other, "AMOUNT": amount}
    source = re.sub("|".join(words), lambda found: words[found[0]], LAST)
    return Prepared(text.parse(f"cuda_tile.module @m {{{source}}}", filename="k.mlir"))


def launch(prepared: Prepared, count: np.ndarray, blocks: int = 4, *, sanitize: bool = True) -> int:
    arrays = [np.zeros(blocks, np.int32), count, np.zeros(1, np.int32)]
    prepared.launch("k", [Pointer(Allocation(a)) for a in arrays], (blocks, 1, 1), sanitize)
    return int(arrays[2][0])


@pytest.mark.parametrize(
    "prepared",
    [
        kernel(), kernel("equal %end, %old"), kernel("equal %next, %blocks"), kernel("not_equal %old, %end", "", SUM),
    ],
    ids=["old", "swapped", "next", "not_equal"],
)  # fmt: skip
def test_a_counter_that_was_not_reset(prepared: Prepared) -> None:
    """The first launch is right. The next finds the counter where it was left."""
    count = np.zeros(1, np.int32)
    assert launch(prepared, count) == 6
    with pytest.raises(SanitizerError, match=r"^k: atomic_rmw_tko at k.mlir:11:\d+: none of 4 blocks is .* held 4"):
        launch(prepared, count)
    assert launch(prepared, count, sanitize=False) == 0


@pytest.mark.parametrize("body", [SUM + RESET, SUM], ids=["reset", "no reset"])
def test_a_counter_that_is_reset(body: str) -> None:
    """By the kernel, or by the host."""
    prepared, count = kernel(body=body), np.zeros(1, np.int32)
    for _ in range(3):
        assert launch(prepared, count) == 6
        assert (count == 0) == (RESET in body)
        count[:] = 0


@pytest.mark.parametrize(
    ("asked", "amount", "before"),
    [
        ("equal %old, %zero", "%one", 1),  # the first block, once for all launches
        ("equal %old, %end", "%two", 1),  # counts something else
        ("equal %old, %block", "%one", 4),  # asks each block for another number
        ("equal %block, %zero", "%one", 4),  # asks for no counter
        ("less_than %old, %end", "%one", 4),
    ],
)
def test_what_is_no_counter_of_blocks(asked: str, amount: str, before: int) -> None:
    launch(kernel(asked, "", amount=amount), np.array([before], np.int32))
