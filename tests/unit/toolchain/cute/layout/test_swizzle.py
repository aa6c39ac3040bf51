from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchain.cute.layout import ComposedLayout, Layout, LayoutError, Swizzle, bank_conflicts, compose, size


@given(st.integers(0, 3), st.integers(0, 4), st.integers(-4, 4))
def test_a_swizzle_is_a_bijection_and_its_own_inverse(bits: int, base: int, shift: int) -> None:
    if abs(shift) < bits:
        with pytest.raises(LayoutError, match="overlap"):
            Swizzle(bits, base, shift)
        return
    swizzle = Swizzle(bits, base, shift)
    offsets = range(1 << 12)
    assert sorted(map(swizzle, offsets)) == list(offsets)
    assert all(swizzle(swizzle(offset)) == offset for offset in range(0, 1 << 12, 7))


def test_the_128_byte_swizzle_moves_the_chunks_of_a_row() -> None:
    swizzle = Swizzle(3, 4, 3)  # of bytes: rows of 128, chunks of 16
    assert [swizzle(row * 128) // 16 % 8 for row in range(8)] == list(range(8))


def test_a_composed_layout_keeps_its_inner_part() -> None:
    made = compose(ComposedLayout(Swizzle(2, 0, 3), 2, Layout.parse("(4,8):(8,1)")), (2, 4))
    assert str(made) == "S<2,0,3> o 2 o (2,4):(8,1)"
    assert made((1, 3)) == Swizzle(2, 0, 3)(2 + 11)


def test_bank_conflicts_of_a_column_and_what_a_swizzle_makes_of_them() -> None:
    rows = Layout.parse("(32,32):(32,1)")  # f32, one row of 128 bytes in all banks
    column = Layout.parse("32:1")  # thread t reads row t of column 0
    assert bank_conflicts(rows, column, 4) == 32
    assert bank_conflicts(ComposedLayout(Swizzle(5, 0, 5), 0, rows), column, 4) == 1
    assert bank_conflicts(Layout.parse("(32,32):(33,1)"), column, 4) == 1  # a row of padding
    assert bank_conflicts(rows, Layout.parse("32:0"), 4) == 1  # all read one word
    assert size(rows) == 1024
    with pytest.raises(LayoutError, match="wider than a bank"):
        bank_conflicts(rows, column, 8)
