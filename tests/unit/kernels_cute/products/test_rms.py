"""Products that norms are part of, on the executor: their results as IR and as PTX, and mistakes in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.ops.compare import compare
from conformance.reference import eager, float64
from kernels_cute.products import rms
from kernels_cute.products.epilogues import Epilogue, Operands, Place, Values, add_bias, add_residual
from kernels_cute.products.linear_sm90 import linear, maps
from kernels_cute.products.rms import RMS
from kernels_cute.products.tiles_sm90 import Tiles
from toolchain.contract.op import ops
from toolchain.cute import dsl as cute
from toolchain.cute.executor import TensorMap, run
from toolchain.errors import ConformanceError

Arrays = dict[str, Any]
TILES = Tiles(64, 64, 64, 2)
DTYPES: dict[str, Any] = {"f32": np.float32, "T": ml_dtypes.bfloat16}


def operands(op: str, m: int, n: int, k: int, z: int, rows: int = 0) -> Arrays:
    """Squares of a row add up to about K, so that eps counts as little as it does in a model. Outputs hold NaN."""
    rng, sizes, made = np.random.default_rng(0), {"M": m, "N": n, "K": k, "Z": z, "L": rows or m}, Arrays()
    for param in ops()[op].params:
        values = rng.standard_normal([sizes[dim] for dim in param.dims])
        if param.name == "squares":
            values = np.abs(values) * k / z
        made[param.name] = (values if param.role != "output" else values * np.nan).astype(DTYPES[param.dtype])
        if not param.dims:
            made[param.name] = 0.25
    return made


def launch(epilogue: Epilogue, given: Arrays, tiles: Tiles = TILES, blocks: int = 1, *, as_ptx: bool = False) -> Arrays:
    """The arrays behind the launch."""
    arrays = {name: array.copy() if hasattr(array, "copy") else array for name, array in given.items()}
    kernel = linear("bf16", tiles, epilogue.op, epilogue)
    made = [TensorMap(arrays[said.array], said.box, said.swizzle) for said in maps(tiles, epilogue)]
    report = run(kernel, (*arrays.values(), *made), blocks, ptx=kernel.ptx("sm_90a") if as_ptx else "")
    assert not report.conflicts
    return arrays


def check(op: str, made: Arrays, given: Arrays) -> None:
    """As conformance does. Raises ConformanceError."""
    inputs = {name: array for name, array in given.items() if name != "out"}
    exact, rounded = getattr(float64, op)(**inputs), getattr(eager, op)(**inputs, dtype="bf16")
    outputs = ops()[op].outputs
    if len(outputs) == 1:
        exact, rounded = [exact], [rounded]
    for param, wanted, by_dtype in zip(outputs, exact, rounded, strict=True):
        compare(op, param.storage("bf16"), made[param.name], wanted, by_dtype, param.name)


# Remainders in all dimensions, several tiles of a block, a ring that goes round, more parts than a quad reads at once.
CASES: list[tuple[str, Tiles, tuple[int, ...], int]] = [
    ("rms_linear", TILES, (70, 72, 200, 5, 128), 3),
    ("rms_linear_gelu", Tiles(128, 64, 64, 2, apart=True), (130, 72, 72, 3), 1),
    ("linear_residual_squares", TILES, (70, 192, 200, 3, 128), 2),
    ("linear_residual_squares", Tiles(64, 128, 64, 2, 2, apart=True, summed=64), (200, 192, 200, 3, 256), 1),
    ("linear_residual_squares", Tiles(128, 128, 64, 2, 2), (140, 200, 72, 2, 192), 1),
    ("rms_linear", Tiles(64, 96, 64, 2, 2), (70, 408, 72, 3, 128), 2),  # every other tile begins within 64 columns
    ("linear_residual_squares", Tiles(64, 96, 64, 2, 2, apart=True), (140, 192, 72, 2, 192), 1),
    ("linear_residual_squares", Tiles(128, 160, 64, 2, 3, paired=True), (140, 320, 72, 2, 192), 2),
    ("rms_linear", Tiles(192, 64, 64, 2, registers=160), (200, 72, 72, 3, 256), 1),  # three warpgroups share a tile
    # Stages that are filled early: fewer and more than K has steps, for a second tile too, and a block without a tile.
    ("linear_residual_squares", Tiles(64, 64, 64, 2, 2, early=2), (70, 128, 200, 2, 128), 3),
    ("rms_linear_gelu", Tiles(128, 64, 64, 3, apart=True, early=3), (130, 72, 72, 3), 5),
    ("linear_residual_squares", Tiles(128, 160, 64, 2, 3, paired=True, early=1), (140, 320, 72, 2, 192), 2),
]


@pytest.mark.parametrize(("op", "tiles", "sizes", "blocks"), CASES)
def test_it_agrees_with_float64_as_ir_and_as_ptx(op: str, tiles: Tiles, sizes: Any, blocks: int) -> None:
    given = operands(op, *sizes)
    ir, ptx = (launch(RMS[op], given, tiles, blocks, as_ptx=as_ptx) for as_ptx in (False, True))
    check(op, ir, given)
    for param in ops()[op].outputs:
        assert ir[param.name].tobytes() == ptx[param.name].tobytes()


def test_a_tile_writes_only_parts_of_the_squares_that_there_are() -> None:
    """The second tile has columns of one part, and none of the other."""
    given = operands("linear_residual_squares", 64, 192, 64, 3)
    check(
        "linear_residual_squares",
        launch(RMS["linear_residual_squares"], given, Tiles(64, 128, 64, 2, summed=64)),
        given,
    )


def without_eps(place: Place, operands: Operands) -> Operands:
    return rms.read_inverses(place, {**operands, "eps": cute.scalar(0.0)})


def of_one_thread(place: Place, operands: Operands) -> Operands:
    """The other threads of the quad are forgotten, and with them their parts."""
    one = replace(place, thread=place.thread - place.thread % rms.QUAD)
    return rms.read_inverses(one, operands)


@pytest.mark.parametrize("first", [without_eps, of_one_thread])
def test_a_wrong_root_mean_square_is_found(first: Any) -> None:
    given = operands("rms_linear", 64, 64, 64, 5)
    made = launch(replace(RMS["rms_linear"], first=first), given)
    with pytest.raises(ConformanceError):
        check("rms_linear", made, given)


def last_of_the_row(values: Values, place: Place, operands: Operands) -> Values:
    """Not a sum."""
    for value, row in zip(values, place.row_numbers, strict=True):
        operands[rms.SUMS][row] = value * value
    return values


@pytest.mark.parametrize(
    "steps",
    [
        (add_bias, rms.sum_squares, add_residual),
        (rms.sum_squares, add_bias, add_residual),
        (add_bias, add_residual, last_of_the_row),
    ],
)
def test_squares_of_something_else_are_found(steps: Any) -> None:
    given = operands("linear_residual_squares", 64, 64, 64, 1)
    made = launch(replace(RMS["linear_residual_squares"], steps=steps), given)
    with pytest.raises(ConformanceError, match="linear_residual_squares f32"):
        check("linear_residual_squares", made, given)


def test_squares_are_of_their_part_alone() -> None:
    def adding_up(place: Place, operands: Operands, z: Any) -> None:
        kept = [operands[rms.SUMS][i] for i in range(max(place.row_numbers) + 1)]
        rms.write_squares(place, operands, z)
        for i, value in enumerate(kept):
            operands[rms.SUMS][i] = value

    given = operands("linear_residual_squares", 64, 128, 64, 2)
    made = launch(replace(RMS["linear_residual_squares"], last=adding_up), given, Tiles(64, 128, 64, 2, summed=64))
    with pytest.raises(ConformanceError):
        check("linear_residual_squares", made, given)
