"""Epilogues of products that norms are part of: of rows divided by their root mean square, and of sums of squares."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.values import Scalar, SizedTensor, TensorValue
from toolchain.cute.layout import Layout

from .epilogues import Epilogue, Operands, Place, Values, add_bias, add_residual, gelu

QUAD = 4  # neighbouring threads that hold the same rows
INVERSES, SUMS = "inverses", "row_sums"  # operands that a tile adds: of each of a thread's rows


def read_inverses(place: Place, operands: Operands) -> Operands:
    """1 / sqrt(sum of squares over their Z parts / K + eps) of each of the thread's rows. The threads of a quad read
    the parts in turns."""
    squares, k = operands["squares"], cute.scalar(operands["x"].shape[-1], "i32").to("f32")
    sums = _zeros(max(place.row_numbers) + 1)
    for z in cute.range_(place.thread % QUAD, squares.shape[0], QUAD):
        for i, value in enumerate(place.rows(_part(squares, z))):
            sums[i] = sums[i] + value
    share = Scalar(arch.instruction("reciprocal", k, results=[k.type])[0])
    means = [value * share + operands["eps"] for value in over_quad(sums)]
    inverses = [Scalar(arch.instruction("rsqrt", mean, results=[mean.type])[0]) for mean in means]
    return {**operands, INVERSES: inverses}


def divide(values: Values, place: Place, operands: Operands) -> Values:
    """values / the root mean square, by rows."""
    inverses: Values = operands[INVERSES]
    return [value * inverses[row] for value, row in zip(values, place.row_numbers, strict=True)]


def no_sums(place: Place, operands: Operands) -> Operands:
    """Sums of squares, 0 so far."""
    return {**operands, SUMS: _zeros(max(place.row_numbers) + 1)}


def sum_squares(values: Values, place: Place, operands: Operands) -> Values:
    """The values as they are; their squares are added to the sums of their rows."""
    sums: TensorValue = operands[SUMS]
    for value, row in zip(values, place.row_numbers, strict=True):
        sums[row] = value.fma(value, sums[row])
    return values


def write_squares(place: Place, operands: Operands, z: Any) -> None:
    """squares[z] of the tile's rows; the sums are 0 again."""
    squares, sums = operands["squares"], operands[SUMS]
    values = over_quad(sums)
    cute.fill(sums, 0.0)
    with cute.when(cute.both(cute.same(place.thread % QUAD, 0), cute.less(z, squares.shape[0]))):
        place.write_rows(values, _part(squares, z))


def _part(squares: TensorValue, z: Any) -> SizedTensor:
    """squares[z], a tensor (L)."""
    return SizedTensor(squares[z, None].value, Layout(squares.shape[1], 1))


def _zeros(count: int) -> TensorValue:
    made = cute.make_fragment(count, "f32")
    cute.fill(made, 0.0)
    return made


def over_quad(sums: TensorValue) -> Values:
    """The sums over the threads of a quad, in each of them."""
    values = [sums[i] for i in range(cute.size(sums.layout))]
    for lanes in (1, 2):
        others = [Scalar(arch.instruction("shuffle.xor", value, results=[value.type], n=lanes)[0]) for value in values]
        values = [value + other for value, other in zip(values, others, strict=True)]
    return values


RMS = {
    made.op: made
    for made in (
        Epilogue("rms_linear", (divide, add_bias), first=read_inverses),
        Epilogue("rms_linear_gelu", (divide, add_bias, gelu), first=read_inverses),
        Epilogue("linear_residual_squares", (add_bias, add_residual, sum_squares), first=no_sums, last=write_squares),
    )
}
