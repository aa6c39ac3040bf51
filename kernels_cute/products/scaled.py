"""Epilogues of products of 8-bit numbers, with a scale for each row of both operands."""

from __future__ import annotations

from .epilogues import Epilogue, Operands, Place, Values, add_bias, add_residual, gelu


def scale(values: Values, place: Place, operands: Operands) -> Values:
    """values * x_scales by rows * weight_scales by columns."""
    rows, columns = place.read_column(operands["x_scales"]), place.read_row(operands["weight_scales"])
    return [value * row * column for value, row, column in zip(values, rows, columns, strict=True)]


def multiply(values: Values, place: Place, operands: Operands) -> Values:
    """values * factors by columns."""
    return [value * factor for value, factor in zip(values, place.read_row(operands["factors"]), strict=True)]


SCALED = {
    made.op: made
    for made in (
        Epilogue("linear_f8", (scale, add_bias)),
        Epilogue("linear_gelu_f8", (scale, add_bias, gelu)),
        Epilogue("linear_gelu_f8_to_f8", (scale, add_bias, gelu, multiply)),
        Epilogue("linear_residual_f8", (scale, add_bias, add_residual)),
    )
}
