"""`cute-layout-analysis`, beyond cute-layout-analysis.mlir: elements side by side, and how wide a copy may be."""

from __future__ import annotations

import pytest

from toolchain.cute.layout import Layout
from toolchain.cute.parse import parse
from toolchain.cute.passes.layout_analysis import contiguous, layout_analysis

COPY = '!cute.tiled_copy<"universal.b16", bits<16>, layout_copy_tv = "(1,1):(0,1)", tiler_mn = "[1:1]">'
HELD = '!cute.memref<bf16, rmem, align<16>, "(8,2):(1,8)">'


@pytest.mark.parametrize(
    ("layout", "found"),
    [
        (Layout(8), 8),
        (Layout((2, 4), (1, 2)), 8),  # modes that follow one another count together
        (Layout((4, 8), (1, 5)), 4),
        (Layout((4, 8), (8, 1)), 1),  # only from the first element on
        (Layout(4, 2), 1),
        (Layout((1, 4), (7, 1)), 4),
    ],
)
def test_elements_that_lie_side_by_side(layout: Layout, found: int) -> None:
    assert contiguous(layout) == found


@pytest.mark.parametrize(
    ("tensor", "bits"),
    [
        ('bf16, gmem, align<16>, "(8,2):(1,64)"', 128),
        ('bf16, gmem, align<4>, "(8,2):(1,64)"', 32),  # the pointer
        ('bf16, gmem, align<16>, "(8,2):(1,12)"', 64),  # the step to the next vector
        ('bf16, gmem, align<16>, "((2,4),2):((1,4),64)"', 32),  # the elements side by side
        ('bf16, gmem, align<16>, "(8,2):(2,64)"', 16),  # none
        ('bf16, gmem, align<16>, "(8,2):(1,?)"', 16),  # a step that is not known
        ('bf16, gmem, align<16>, "(8,2):(1,?{div=4})"', 64),  # and one of which a divisor is
    ],
)
def test_a_copy_is_as_wide_as_both_sides_allow(tensor: str, bits: int) -> None:
    kind = f"!cute.memref<{tensor}>"
    module = parse(f"""func.func @f(%g: {kind}, %r: {HELD}) {{
      %c = cute.static : {COPY}
      cute.copy(%c, %g, %r) : ({COPY}, {kind}, {HELD}) -> ()
      func.return
    }}""")
    layout_analysis(module)
    assert f"cute.vector_bits = {bits} : i64" in str(module)


def test_nothing_is_said_of_a_layout_whose_numbers_are_not_known() -> None:
    module = parse('func.func @f(%l: !cute.layout<"(?,4):(4,1)">) {\n%a = cute.coalesce(%l) : '
                   '(!cute.layout<"(?,4):(4,1)">) -> !cute.layout<"(?,4):(4,1)">\nfunc.return\n}')  # fmt: skip
    before = str(module)
    layout_analysis(module)
    assert str(module) == before
