"""Matrix descriptors follow from layouts, and a layout that wgmma cannot read is refused."""

from __future__ import annotations

import pytest

from toolchain.cute.dialect.tensors import Pointer, Tensor
from toolchain.cute.layout import Layout, Swizzle
from toolchain.cute.nvgpu.descriptor import SWIZZLE, SharedOperand, shared_operand
from toolchain.errors import SourceError


def operand(layout: str, swizzle: Swizzle | None = SWIZZLE) -> SharedOperand:
    return shared_operand("mma", Tensor(Pointer("bf16", "smem", 1024, swizzle), Layout.parse(layout)))


def test_rows_of_k() -> None:
    assert operand("((64,16)):((64,1))") == SharedOperand("k", 16, 8 * 128)


def test_rows_of_n() -> None:
    # 256 columns in four parts of 64, which lie 4096 elements apart; 16 rows of K.
    assert operand("(((64,4),16)):(((1,4096),64))") == SharedOperand("m", 8192, 8 * 128)


def test_the_fields_count_16_bytes() -> None:
    assert SharedOperand("m", 8192, 1024).fields == (1 << 62) | (64 << 32) | (512 << 16)


@pytest.mark.parametrize("layout", ["((64,16)):((32,1))", "((64,16)):((1,128))", "((64,16)):((16,2))"])
def test_other_layouts_are_refused(layout: str) -> None:
    with pytest.raises(SourceError, match="wgmma cannot read"):
        operand(layout)


def test_an_operand_without_the_swizzle_is_refused() -> None:
    with pytest.raises(SourceError, match="reads smem with S<3,4,3>"):
        operand("((64,16)):((64,1))", None)
