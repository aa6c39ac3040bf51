"""Products of 8-bit floats on the executor: their results as IR and as PTX, and mistakes in scales and weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.ops.compare import compare
from conformance.reference import eager, float64
from kernels_cute.products.epilogues import Epilogue, Operands, Place, Values, add_bias
from kernels_cute.products.linear_sm90 import Tiles, linear, maps
from kernels_cute.products.rms import RMS
from kernels_cute.products.scaled import SCALED
from toolchain.contract.op import ops
from toolchain.cute.executor import TensorMap, run
from toolchain.errors import ConformanceError, UsageError

Arrays = dict[str, Any]
TILES = Tiles(64, 64, 128, 2, width=1)
DTYPES: dict[str, Any] = {"f32": np.float32, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "T": ml_dtypes.bfloat16}


def operands(op: str, m: int, n: int, k: int) -> Arrays:
    """Scales differ by up to 16, so that a wrong one shows."""
    rng, sizes, made = np.random.default_rng(0), {"M": m, "N": n, "K": k}, Arrays()
    for param in ops()[op].params:
        shape = [sizes[dim] for dim in param.dims]
        values = rng.uniform(0.25, 4, shape) if len(shape) == 1 and param.dtype == "f32" else rng.standard_normal(shape)
        made[param.name] = values.astype(DTYPES[param.dtype])
    made["out"] = np.full((m, n), np.nan, made["out"].dtype)
    return made


def launch(epilogue: Epilogue, given: Arrays, tiles: Tiles = TILES, blocks: int = 1, *, as_ptx: bool = False) -> Any:
    """What the kernel writes."""
    arrays = {name: array.copy() for name, array in given.items()}
    kernel = linear("bf16", tiles, epilogue.op, epilogue)
    made = [TensorMap(arrays[said.array], said.box, said.swizzle) for said in maps(tiles, epilogue)]
    report = run(kernel, (*arrays.values(), *made), blocks, ptx=kernel.ptx("sm_90a") if as_ptx else "")
    assert not report.conflicts
    return arrays["out"]


def check(op: str, out: Any, given: Arrays) -> None:
    """As conformance does. Raises ConformanceError."""
    inputs = {name: array for name, array in given.items() if name != "out"}
    (param,) = ops()[op].outputs
    stored = "bf16" if param.dtype == "T" else param.dtype
    compare(op, stored, out, getattr(float64, op)(**inputs), getattr(eager, op)(**inputs, dtype="bf16"), "out")


@pytest.mark.parametrize("op", SCALED)
def test_it_agrees_with_float64_as_ir_and_as_ptx(op: str) -> None:
    # Remainders in all three, four tiles for three blocks, and the ring goes round.
    given = operands(op, 70, 80, 400)
    ir, ptx = (launch(SCALED[op], given, blocks=3, as_ptx=as_ptx) for as_ptx in (False, True))
    check(op, ir, given)
    assert ir.tobytes() == ptx.tobytes()


@pytest.mark.parametrize(
    ("tiles", "k"),
    [
        (Tiles(128, 64, 128, 2, apart=True, width=1), 272),
        (Tiles(128, 64, 128, 3, width=1, run=2), 400),  # the last run is short
        (Tiles(64, 64, 128, 2, width=1, run=2), 512),
        (Tiles(64, 64, 128, 2, width=1, run=4), 144),  # a run is not full
        (Tiles(64, 128, 128, 3, 2, width=1, run=1), 560),  # the first run is longer, as two parts leave beside it
        (Tiles(64, 128, 128, 2, 1, width=1, run=8), 128),  # K has fewer steps than that takes
        (Tiles(64, 64, 128, 2, paired=True, width=1, run=2), 400),
        (Tiles(128, 64, 128, 2, apart=True, width=1, held=True), 272),
        (Tiles(128, 64, 128, 3, width=1, run=2, held=True), 400),
        (Tiles(64, 128, 128, 3, 2, width=1, run=1, held=True), 560),
    ],
)
@pytest.mark.parametrize("op", ["linear_f8", "linear_residual_f8"])
def test_sums_of_the_tensor_cores_end_with_k_or_with_a_run(op: str, tiles: Tiles, k: int) -> None:
    given = operands(op, 130, 144, k)  # a block has several tiles
    check(op, launch(SCALED[op], given, tiles, 2), given)


def test_the_output_may_be_the_residual() -> None:
    given = operands("linear_residual_f8", 64, 64, 128)
    arrays = {name: array.copy() for name, array in given.items()}
    arrays["out"] = arrays["residual"]
    epilogue = SCALED["linear_residual_f8"]
    made = [TensorMap(arrays[said.array], said.box, said.swizzle) for said in maps(TILES, epilogue)]
    run(linear("bf16", TILES, epilogue=epilogue), (*arrays.values(), *made))
    check("linear_residual_f8", arrays["out"], given)


def rows_alone(values: Values, place: Place, operands: Operands) -> Values:
    return [value * row for value, row in zip(values, place.read_column(operands["x_scales"]), strict=True)]


def columns_alone(values: Values, place: Place, operands: Operands) -> Values:
    return [value * column for value, column in zip(values, place.read_row(operands["weight_scales"]), strict=True)]


def exchanged(values: Values, place: Place, operands: Operands) -> Values:
    rows, columns = place.read_column(operands["weight_scales"]), place.read_row(operands["x_scales"])
    return [value * row * column for value, row, column in zip(values, rows, columns, strict=True)]


@pytest.mark.parametrize("wrong", [rows_alone, columns_alone, exchanged])
def test_a_scale_that_is_dropped_or_of_the_other_side_is_found(wrong: Any) -> None:
    given = operands("linear_f8", 64, 64, 128)
    out = launch(replace(SCALED["linear_f8"], steps=(wrong, add_bias)), given)
    with pytest.raises(ConformanceError):
        check("linear_f8", out, given)


def test_a_weight_that_is_turned_is_found() -> None:
    given = operands("linear_f8", 128, 128, 128)
    turned = given | {"weight": np.ascontiguousarray(given["weight"].T)}
    with pytest.raises(ConformanceError):
        check("linear_f8", launch(SCALED["linear_f8"], turned), given)


def test_steps_of_k_that_are_left_out_are_found() -> None:
    given = operands("linear_f8", 64, 64, 400)
    shorter = given | {name: np.ascontiguousarray(given[name][:, :384]) for name in ("x", "weight")}
    with pytest.raises(ConformanceError):
        check("linear_f8", launch(SCALED["linear_f8"], shorter), given)


def test_tiles_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="a tile of 64 x 64 x 64"):
        Tiles(64, 64, 64, width=1)
    with pytest.raises(UsageError, match="no registers for two sums"):
        Tiles(128, 256, 128, 2, width=1, run=8)
    with pytest.raises(UsageError, match="no registers for two sums"):
        Tiles(128, 64, 128, 2, apart=True, width=1, run=8)
    with pytest.raises(UsageError, match="reads or writes beside a tile"):
        linear("bf16", Tiles(64, 64, 64, 2, held=True), epilogue=RMS["rms_linear"])
    with pytest.raises(UsageError, match="is no tile of e4m3"):
        linear("bf16", Tiles(64, 64, 64, 2), epilogue=SCALED["linear_f8"])
