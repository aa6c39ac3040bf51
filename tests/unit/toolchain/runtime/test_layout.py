from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchain.errors import UsageError
from toolchain.runtime.layout import Layout, chunks, contiguous_strides, dtype_name, layout

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    shape = draw(shapes)
    strides = tuple(draw(st.integers(0, 13)) for _ in shape)
    return layout(draw(st.sampled_from(["f32", "bf16"])), shape, strides, address_aligned=True)


def offsets(view: Layout) -> list[int]:
    """Every element's offset, in row-major order of the indices."""
    indices = itertools.product(*map(range, view.shape))
    return [sum(i * s for i, s in zip(index, view.strides, strict=True)) for index in indices]


@given(layouts())
def test_chunks_are_a_dense_copy(view: Layout) -> None:
    memory = np.arange(view.span, dtype=np.uint32)  # each byte's own address
    copy = np.full(view.nbytes, -1, np.int64)
    for at, offset, rows, pitch, width in chunks(view):
        for row in range(rows):
            copy[at + row * width : at + (row + 1) * width] = memory[offset + row * pitch :][:width]
    wanted = [view.itemsize * offset + byte for offset in offsets(view) for byte in range(view.itemsize)]
    assert copy.tolist() == wanted


@given(layouts())
def test_span_ends_with_the_last_element(view: Layout) -> None:
    assert view.span == max((o + 1 for o in offsets(view)), default=0) * view.itemsize


@given(layouts())
def test_a_layout_said_not_to_overlap_itself_does_not(view: Layout) -> None:
    found = offsets(view)
    if not view.overlaps_itself:
        assert len(set(found)) == len(found)


@given(shapes)
def test_dense_and_padded_layouts_do_not_overlap_themselves(shape: tuple[int, ...]) -> None:
    padded = contiguous_strides([*shape[:-1], 7]) if shape else ()
    for strides in (contiguous_strides(shape), padded):
        assert not layout("f32", shape, strides, address_aligned=True).overlaps_itself


@pytest.mark.parametrize(("shape", "strides"), [((3, 4), (0, 1)), ((3, 4), (3, 1)), ((2, 2, 2), (2, 2, 1))])
def test_broadcast_and_window_layouts_overlap_themselves(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    assert layout("f32", shape, strides, address_aligned=True).overlaps_itself


def test_a_dense_block_of_a_wider_array_is_one_2d_copy() -> None:
    view = layout("f32", (2, 5, 3, 8), (400, 40, 8, 1), address_aligned=True)  # rows of 24 of 40, 10 of them per 400
    assert [(c.rows, c.pitch, c.width) for c in chunks(view)] == [(5, 160, 96), (5, 160, 96)]
    assert len(list(chunks(view, max_pitch=100))) == 10


def test_a_dense_array_is_one_copy() -> None:
    (chunk,) = chunks(layout("f16", (3, 1, 5, 7), contiguous_strides((3, 1, 5, 7)), address_aligned=True))
    assert (chunk.offset, chunk.rows, chunk.width) == (0, 1, 2 * 105)


def test_equal_layouts_are_one_object() -> None:
    assert layout("f32", (3, 4), (4, 1), address_aligned=True) is layout("f32", (3, 4), (4, 1), address_aligned=True)
    assert layout("f32", (3, 4), (4, 1), address_aligned=True) is not layout(
        "i32", (3, 4), (4, 1), address_aligned=True
    )


@pytest.mark.parametrize(
    ("dtype", "strides", "aligned"),
    [("f32", (4, 1), True), ("f32", (6, 1), False), ("bf16", (8, 1), True), ("bf16", (12, 1), False)],
)
def test_alignment_is_of_outer_strides_in_bytes(dtype: str, strides: tuple[int, ...], *, aligned: bool) -> None:
    assert layout(dtype, (3, 4), strides, address_aligned=True).aligned is aligned
    assert not layout(dtype, (3, 4), strides, address_aligned=False).aligned


def test_a_dense_array_has_no_gaps_and_an_aligned_address() -> None:
    assert layout("bf16", (3, 5), (5, 1), address_aligned=True).aligned_contiguous
    assert not layout("bf16", (3, 5), (5, 1), address_aligned=False).aligned_contiguous
    assert not layout("bf16", (3, 5), (6, 1), address_aligned=True).aligned_contiguous
    assert layout(
        "bf16", (1, 5), (6, 1), address_aligned=True
    ).aligned_contiguous  # one row: nothing comes after the gap


def test_a_single_element_row_counts_as_unit_stride() -> None:
    assert layout("f32", (5, 1), (7, 7), address_aligned=True).strides == (7, 1)


def test_a_dtype_that_no_entry_takes() -> None:
    with pytest.raises(UsageError, match="float64"):
        dtype_name(np.dtype(np.float64))
