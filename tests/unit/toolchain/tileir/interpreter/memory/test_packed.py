"""Arrays of f4E2M1FN, of which two elements share a byte."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from toolchain.errors import SanitizerError, UsageError
from toolchain.tileir import text
from toolchain.tileir.interpreter import Allocation, Pointer, Prepared

# Copies a tensor of ROWS x COLUMNS by tiles of 2 x 4, as f32, and the elements themselves into another.
COPY = """
!in = tensor_view<ROWSxCOLUMNSxf4E2M1FN, strides=[STRIDES]>
!in_view = partition_view<tile=(2x4)PADDING, !in>
!out = tensor_view<ROWSxCOLUMNSxf32, strides=[COLUMNS,1]>
!out_view = partition_view<tile=(2x4), !out>
entry @k(%p: tile<ptr<f4E2M1FN>>, %q: tile<ptr<f4E2M1FN>>, %o: tile<ptr<f32>>) {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %a = make_tensor_view %p, shape = [ROWS, COLUMNS], strides = [STRIDES] : !in
  %b = make_tensor_view %q, shape = [ROWS, COLUMNS], strides = [STRIDES] : !in
  %c = make_tensor_view %o, shape = [ROWS, COLUMNS], strides = [COLUMNS, 1] : !out
  %av = make_partition_view %a : !in_view
  %bv = make_partition_view %b : !in_view
  %cv = make_partition_view %c : !out_view
  %tile, %t0 = load_view_tko weak %av[%x, %y] : !in_view, tile<i32> -> tile<2x4xf4E2M1FN>, token
  %wide = ftof %tile : tile<2x4xf4E2M1FN> -> tile<2x4xf32>
  %t1 = store_view_tko weak %wide, %cv[%x, %y] : tile<2x4xf32>, !out_view, tile<i32> -> token
  %t2 = store_view_tko weak %tile, %bv[%x, %y] : tile<2x4xf4E2M1FN>, !in_view, tile<i32> -> token
}
"""


def prepared(rows: int, columns: int, *, strides: str, padding: str = "") -> Prepared:
    source = COPY.replace("ROWS", str(rows)).replace("COLUMNS", str(columns)).replace("STRIDES", strides)
    return parsed(source.replace("PADDING", padding))


def parsed(source: str) -> Prepared:
    return Prepared(text.parse(f"cuda_tile.module @m {{{source}}}", filename="k.mlir"))


def values(codes: np.ndarray) -> np.ndarray:
    return codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)


@pytest.mark.parametrize("sanitize", [True, False])
@pytest.mark.parametrize(("rows", "columns", "padding"), [(4, 8, ""), (3, 6, ""), (3, 6, ", padding_value=zero")])
def test_rows_are_loaded_and_stored(rows: int, columns: int, padding: str, sanitize: bool) -> None:
    codes = np.random.default_rng(0).integers(0, 16, (rows, columns), np.uint8)
    packed = codes[:, ::2] | codes[:, 1::2] << 4  # the first has the low bits
    copied, out = np.full_like(packed, 0xAA), np.zeros((rows, columns), np.float32)
    kernel = prepared(rows, columns, strides=f"{columns}, 1", padding=padding)
    arrays = [Pointer(Allocation(a)) for a in (packed, copied, out)]
    kernel.launch("k", arrays, (-(-rows // 2), -(-columns // 4), 1), sanitize)
    np.testing.assert_array_equal(out, values(codes))
    np.testing.assert_array_equal(copied, packed)


def test_columns_share_bytes_where_they_are_contiguous() -> None:
    codes = np.random.default_rng(1).integers(0, 16, (4, 8), np.uint8)
    packed = np.ascontiguousarray((codes[::2] | codes[1::2] << 4).T)  # column after column
    copied, out = np.zeros_like(packed), np.zeros((4, 8), np.float32)
    kernel = prepared(4, 8, strides="1, 4")
    kernel.launch("k", [Pointer(Allocation(a)) for a in (packed, copied, out)], (2, 2, 1))
    np.testing.assert_array_equal(out, values(codes))
    np.testing.assert_array_equal(copied, packed)


def test_half_a_byte_behind_a_row_stays() -> None:
    """Rows of five elements, eight apart: the sixth is in the byte of the fifth, and is no element."""
    packed = np.random.default_rng(2).integers(0, 256, (2, 4), np.uint8)
    copied, out = np.full_like(packed, 0xCC), np.zeros((2, 5), np.float32)
    kernel = prepared(2, 5, strides="8, 1")
    kernel.launch("k", [Pointer(Allocation(a)) for a in (packed, copied, out)], (1, 2, 1))
    np.testing.assert_array_equal(copied[:, :2], packed[:, :2])
    np.testing.assert_array_equal(copied[:, 2], packed[:, 2] & 15 | 0xC0)
    assert (copied[:, 3] == 0xCC).all()


def test_rows_that_do_not_begin_at_a_byte_are_named() -> None:
    arrays = [Pointer(Allocation(np.zeros(64, np.uint8))) for _ in range(2)]
    with pytest.raises(SanitizerError, match="rows of f4E2M1FN are 7 elements apart: not in whole bytes"):
        prepared(4, 6, strides="7, 1").launch("k", [*arrays, Pointer(Allocation(np.zeros(24, np.float32)))], (1, 1, 1))


def test_what_lies_behind_an_allocation_is_named() -> None:
    arrays = [Pointer(Allocation(np.zeros(15, np.uint8))), Pointer(Allocation(np.zeros(16, np.uint8)))]
    with pytest.raises(SanitizerError, match=r"bytes 10 \.\. 15 of an allocation of 15 bytes"):
        prepared(4, 8, strides="8, 1").launch("k", [*arrays, Pointer(Allocation(np.zeros(32, np.float32)))], (2, 2, 1))


def test_blocks_that_write_halves_of_a_byte_race() -> None:
    """Tiles that overlap by one element."""
    source = """
    !in = tensor_view<8xf4E2M1FN, strides=[1]>
    !in_view = strided_view<tile=(4), traversal_strides=[3], !in>
    entry @k(%p: tile<ptr<f4E2M1FN>>) {
      %x, %y, %z = get_tile_block_id : tile<i32>
      %a = make_tensor_view %p, shape = [8], strides = [1] : !in
      %av = make_strided_view %a : !in_view
      %one = constant <f4E2M1FN: 1.0> : tile<4xf4E2M1FN>
      %t = store_view_tko weak %one, %av[%x] : tile<4xf4E2M1FN>, !in_view, tile<i32> -> token
    }"""
    arrays = [Pointer(Allocation(np.zeros(4, np.uint8)))]
    parsed(source).launch("k", arrays, (1, 1, 1))
    np.testing.assert_array_equal(arrays[0].memory.bytes, [0x22, 0x22, 0, 0])
    with pytest.raises(SanitizerError, match=r"block \(1, 0, 0\) writes byte 1 "):
        parsed(source).launch("k", arrays, (2, 1, 1))


def test_unspecified_elements_stay_so_in_memory() -> None:
    """A tile beyond the end is stored and loaded again; a branch depends on it."""
    source = """
    !in = tensor_view<6xf4E2M1FN, strides=[1]>
    !in_view = partition_view<tile=(4), !in>
    !all = tensor_view<8xf4E2M1FN, strides=[1]>
    !all_view = partition_view<tile=(4), !all>
    entry @k(%p: tile<ptr<f4E2M1FN>>, %q: tile<ptr<f4E2M1FN>>, %o: tile<ptr<f32>>) {
      %one = constant <i32: 1> : tile<i32>
      %a = make_tensor_view %p, shape = [6], strides = [1] : !in
      %b = make_tensor_view %q, shape = [8], strides = [1] : !all
      %av = make_partition_view %a : !in_view
      %bv = make_partition_view %b : !all_view
      %tile, %t0 = load_view_tko weak %av[%one] : !in_view, tile<i32> -> tile<4xf4E2M1FN>, token
      %t1 = store_view_tko weak %tile, %bv[%one] : tile<4xf4E2M1FN>, !all_view, tile<i32> -> token
      %again, %t2 = load_view_tko weak %bv[%one] token = %t1 : !all_view, tile<i32> -> tile<4xf4E2M1FN>, token
      %wide = ftof %again : tile<4xf4E2M1FN> -> tile<4xf32>
      %sum = reduce %wide dim=0 identities=[0.0 : f32] : tile<4xf32> -> tile<f32>
        (%x: tile<f32>, %y: tile<f32>) { %s = addf %x, %y : tile<f32>  yield %s : tile<f32> }
      %t3 = store_ptr_tko weak %o, %sum : tile<ptr<f32>>, tile<f32> -> token
    }"""
    arrays = [Pointer(Allocation(np.zeros(n, np.uint8))) for n in (3, 4)]
    with pytest.raises(SanitizerError, match=r"k.mlir:18:\d+, .* a stored element is an unspecified value"):
        parsed(source).launch("k", [*arrays, Pointer(Allocation(np.zeros(1, np.float32)))], (1, 1, 1))


OFFSET = "%q = offset %p, %n : tile<ptr<f4E2M1FN>>, tile<i32> -> tile<ptr<f4E2M1FN>>"
GATHER = """
%a = make_tensor_view %p, shape = [4, 8], strides = [8, 1] : !rows
%v = make_gather_scatter_view %a : gather_scatter_view<tile=(4x8), !rows, sparse_dim=0>
"""


@pytest.mark.parametrize(
    ("body", "what"),
    [(OFFSET, "offset of elements that share a byte"), (GATHER, "tiles of f4E2M1FN gathered in memory")],
)
def test_what_is_not_there_is_named(body: str, what: str) -> None:
    rows = "!rows = tensor_view<4x8xf4E2M1FN, strides=[8,1]>"
    with pytest.raises(UsageError, match=f"k: the interpreter has no {what}"):
        parsed(f"{rows} entry @k(%p: tile<ptr<f4E2M1FN>>, %n: tile<i32>) {{ {body} }}")
