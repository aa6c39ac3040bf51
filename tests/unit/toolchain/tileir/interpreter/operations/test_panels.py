"""Loops along K as products of panels: the same sums as step by step, which the sanitizer takes. The numbers are small
integers, whose sums have no rounding: within a chain BLAS adds in an order of its own."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from toolchain.errors import SanitizerError
from toolchain.tileir import text
from toolchain.tileir.interpreter import Allocation, Pointer, Prepared
from toolchain.tileir.interpreter.operations import panels

Array = NDArray[Any]
# out (M, N) += x (M, K) @ y, in tiles of 4 x DEPTH and DEPTH x 8. The weight is (K, N), or turned (N, K).
PRODUCT = """
!x = tensor_view<MxKxbf16, strides=[K,1]>
!w = tensor_view<WEIGHTxbf16, strides=[LAST,1]>
!o = tensor_view<MxNxf32, strides=[N,1]>
!x_part = partition_view<tile=(4xDEPTH)PADDING, !x>
!w_part = partition_view<tile=(W_TILE)PADDING, !w>
!o_part = partition_view<tile=(4x8), padding_value=zero, !o>
entry @k(%px: tile<ptr<bf16>>, %pw: tile<ptr<bf16>>, %po: tile<ptr<f32>>) {
  %m, %n, %z = get_tile_block_id : tile<i32>
  %xv = make_tensor_view %px, shape = [M, K], strides = [K, 1] : !x
  %wv = make_tensor_view %pw, shape = [SIZES], strides = [LAST, 1] : !w
  %ov = make_tensor_view %po, shape = [M, N], strides = [N, 1] : !o
  %xs = make_partition_view %xv : !x_part
  %ws = make_partition_view %wv : !w_part
  %os = make_partition_view %ov : !o_part
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %steps = constant <i32: STEPS> : tile<i32>
  %before, %t = load_view_tko weak %os[%m, %n] : !o_part, tile<i32> -> tile<4x8xf32>, token
  %sums = for %k in (%zero to %steps, step %one) : tile<i32> iter_values(%acc = %before) -> (tile<4x8xf32>) {
    %a, %t0 = load_view_tko weak %xs[%m, %k] : !x_part, tile<i32> -> tile<4xDEPTHxbf16>, token
    %b, %t1 = load_view_tko weak %ws[W_INDEX] : !w_part, tile<i32> -> tile<W_TILExbf16>, token
    TURN
    %next = mmaf %a, %c, %acc : tile<4xDEPTHxbf16>, tile<DEPTHx8xbf16>, tile<4x8xf32>
    continue %next : tile<4x8xf32>
  }
  %doubled = addf %sums, %sums rounding<nearest_even> : tile<4x8xf32>
  %t2 = store_view_tko weak %doubled, %os[%m, %n] : tile<4x8xf32>, !o_part, tile<i32> -> token
}
"""
SAME = "%c = reshape %b : tile<DEPTHx8xbf16> -> tile<DEPTHx8xbf16>"
TURNED = "%c = permute %b [1, 0] : tile<8xDEPTHxbf16> -> tile<DEPTHx8xbf16>"


def kernel(m: int, k: int, n: int, depth: int, *, turned: bool = False, padding: str = "zero", steps: int = 0) -> str:
    source = PRODUCT.replace("TURN", TURNED if turned else "").replace("%c,", "%c," if turned else "%b,")
    for name, value in {
        "PADDING": f", padding_value={padding}" if padding else "", "W_INDEX": "%n, %k" if turned else "%k, %n",
        "W_TILE": f"8x{depth}" if turned else f"{depth}x8", "SIZES": f"{n}, {k}" if turned else f"{k}, {n}",
        "WEIGHT": f"{n}x{k}" if turned else f"{k}x{n}", "LAST": k if turned else n, "DEPTH": depth,
        "STEPS": steps or -(-k // depth), "[M": f"[{m}", "Mx": f"{m}x", "K": k, "xN": f"x{n}", " N": f" {n}",
        "[N": f"[{n}",
    }.items():  # fmt: skip
        source = source.replace(name, str(value))
    return f"cuda_tile.module @m {{{source}}}"


def launch(source: str, arrays: list[Array], *, sanitize: bool) -> tuple[Array, str]:
    prepared = Prepared(text.parse(source, filename="k.mlir"))
    given = [array.copy() for array in arrays]
    m, n = given[-1].shape
    grid = (-(-m // 4), -(-n // 8), 1)
    prepared.launch("k", [Pointer(Allocation(array)) for array in given], grid, sanitize)
    return given[-1], prepared.kernel("k", sanitize).source


def operands(m: int, k: int, n: int) -> list[Array]:
    random = np.random.default_rng(0)
    x, w, out = (random.integers(-8, 9, shape) for shape in ((m, k), (k, n), (m, n)))
    return [x.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16), out.astype(np.float32)]


def both(source: str, arrays: list[Array]) -> Array:
    """What the loop makes of panels, and step by step: the same."""
    stepwise, code = launch(source, arrays, sanitize=True)
    assert "multiply" not in code
    found, code = launch(source, arrays, sanitize=False)
    assert "multiply" in code
    np.testing.assert_array_equal(found, stepwise)
    return found


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("padding", ["zero", "neg_zero"])
@pytest.mark.parametrize(
    ("m", "k", "n", "depth"),
    [(4, 64, 8, 16), (8, 256, 16, 128), (5, 72, 11, 16), (1, 200, 8, 128), (6, 40, 9, 64), (2, 8, 3, 16)],
)
def test_the_sums_are_those_of_the_loop(m: int, k: int, n: int, depth: int, padding: str, turned: bool) -> None:
    x, w, out = operands(m, k, n)
    weight = np.ascontiguousarray(w.T) if turned else w
    found = both(kernel(m, k, n, depth, turned=turned, padding=padding), [x, weight, out])
    assert (found == 2 * (out + x.astype(np.float64) @ w.astype(np.float64))).all()


def test_sums_of_16_bits_are_rounded_in_each_step() -> None:
    source = kernel(5, 72, 11, 16).replace("bf16", "f16").replace("f32", "f16")
    arrays = [array.astype(np.float16) for array in operands(5, 72, 11)]
    arrays[2] += 2040  # from 2048 on f16 has no odd numbers
    both(source, arrays)


@pytest.mark.parametrize(("side", "at"), [(0, (0, 3)), (1, (3, 0)), (1, (70, 10))])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_padding_times_infinity_is_nan(side: int, at: tuple[int, int], value: float) -> None:
    """A row of the tile outside of x is zeros, so its products with infinity are NaN. Nobody stores them."""
    arrays = operands(5, 72, 11)
    arrays[side][at] = value
    found = both(kernel(5, 72, 11, 16), arrays)
    assert not np.isfinite(found[at[0]] if side == 0 else found[:, at[1]]).any()


@pytest.mark.parametrize("padding", ["", "nan"])
def test_padding_that_is_not_zero(padding: str) -> None:
    """Along K it must not be met; around, it makes what nobody stores."""
    both(kernel(5, 64, 11, 16, padding=padding), operands(5, 64, 11))
    source, arrays = kernel(5, 72, 11, 16, padding=padding), operands(5, 72, 11)
    assert np.isnan(launch(source, arrays, sanitize=False)[0]).all()


def test_many_steps_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "MOST", 64)  # two steps at once
    both(kernel(4, 120, 8, 16), operands(4, 120, 8))


@pytest.mark.parametrize("steps", [1, 9])
def test_a_loop_of_other_bounds(steps: int) -> None:
    both(kernel(4, 64, 8, 16, steps=steps), operands(4, 64, 8))


def test_an_array_that_is_too_short_is_found() -> None:
    x, w, out = operands(4, 64, 8)
    with pytest.raises(
        SanitizerError, match=r"load_view_tko at k\.mlir:22:.*bytes 512 \.\. 767 of an allocation of 640"
    ):
        launch(kernel(4, 64, 8, 16), [x, w[:40], out], sanitize=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("continue %next", "%more = addf %next, %acc rounding<nearest_even> : tile<4x8xf32>\n    continue %more"),
        ("[%k, %n]", "[%k, %k]"),
        ("mmaf %a, %b, %acc", "mmaf %a, %b, %before"),
        ("step %one", "step %steps"),
    ],
)
def test_other_loops_run_step_by_step(old: str, new: str) -> None:
    source, arrays = kernel(4, 64, 8, 16), operands(4, 64, 8)
    assert old in source
    found, code = launch(source.replace(old, new), arrays, sanitize=False)
    assert "multiply" not in code
    np.testing.assert_array_equal(found, launch(source.replace(old, new), arrays, sanitize=True)[0])
