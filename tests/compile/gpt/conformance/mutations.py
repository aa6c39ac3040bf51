"""Kernel bugs people write, as replacements in the `.mlir` files. Each must be caught by the op's conformance cases.

A row: the op, what the bug is, the text that stands in the file exactly once, and what replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    op: str
    bug: str
    old: str
    new: str


_ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("embedding", "the position is looked up by token", "%wpe_tiles[%position, %j]", "%wpe_tiles[%token, %j]"),
    ("embedding", "the position is forgotten", "%sum = addf %word_f32, %place_f32", "%sum = addf %word_f32, %word_f32"),
    ("layernorm", "no epsilon", "sqrt %shifted", "sqrt %variance"),
    ("layernorm", "padding counts in the variance", "select %inside, %deviation, %nothing", "select %inside, %deviation, %deviation"),
    ("layernorm", "divides by the tile's width", "%width = itof %C", "%width = itof %BC"),
    ("layernorm", "the last, partial tile is left out", "divi %C, %BC signed rounding<positive_inf>", "divi %C, %BC signed rounding<zero>"),
    ("layernorm", "no bias", "fma %normal, %w_line, %b_line", "fma %normal, %w_line, %nothing"),
    ("layernorm", "variance of the values, not the deviations", "subf %value, %mean_full : !f32_1xBC\n      %counted", "subf %value, %nothing : !f32_1xBC\n      %counted"),
    ("linear", "the last, partial step of K is left out", "divi %K, %BK signed rounding<positive_inf>", "divi %K, %BK signed rounding<zero>"),
    ("linear", "no padding behind K", "(128x64), padding_value = zero, !matrix>", "(128x64), !matrix>"),
    ("linear", "swapped strides", "%x_view = make_tensor_view %x, shape = [%M, %K], strides = [%x_row, 1]", "%x_view = make_tensor_view %x, shape = [%M, %K], strides = [%w_row, 1]"),
    ("linear", "the bias of the row tile", "%bias_tiles[%n]", "%bias_tiles[%m]"),
    ("linear", "rows and columns of the output swapped", "%out_tiles[%m, %n]", "%out_tiles[%n, %m]"),
    ("linear", "the accumulator is dropped", "mmaf %x_tile, %w_tile, %acc :", "mmaf %x_tile, %w_tile, %empty :"),
    ("linear", "one step of K too few", "(%zero to %steps", "(%one to %steps"),
    ("linear_gelu", "a digit of the cubic term", "<f32: 0.044715>", "<f32: 0.04715>"),
    ("linear_gelu", "not halved", "%half = constant <f32: 0.5>", "%half = constant <f32: 1.0>"),
    ("linear_gelu", "the bias after the GELU is lost", "%gelu = mulf %halved, %gate", "%gelu = mulf %product, %gate"),
    ("linear_residual", "another tile's residual", "%r_tiles[%m, %n]", "%r_tiles[%n, %m]"),
    ("linear_residual", "the residual's stride is the output's neighbour", "shape = [%M, %N], strides = [%r_row, 1]", "shape = [%M, %N], strides = [%x_row, 1]"),
    ("logits", "the weight's rows and columns", "%w_tiles[%n, %k]", "%w_tiles[%k, %n]"),
    ("gelu", "tanh of the unscaled argument", "tanh %scaled", "tanh %inner"),
    ("softmax", "padding with zero", "padding_value = neg_inf", "padding_value = zero"),
    ("softmax", "only the last tile is summed", "addf %acc, %power", "addf %nothing, %power"),
    ("softmax", "natural exponent by exp2", "%log2e = constant <f32: 1.4426950408889634>", "%log2e = constant <f32: 1.0>"),
    ("argmax", "the last of equals", "cmpf greater_than ordered %value_a", "cmpf greater_than_or_equal ordered %value_a"),
    ("argmax", "the place in the tile, not in the row", "addi %first_full, %lane_line", "addi %lane_line, %lane_line"),
    ("argmax", "the last, partial tile is left out", "divi %V, %BV signed rounding<positive_inf>", "divi %V, %BV signed rounding<zero>"),
    ("kv_append", "off by one", "%place = addi %start, %t", "%place = addi %start, %zero"),
    ("kv_append", "k into both caches", "store_view_tko weak %v_tile", "store_view_tko weak %k_tile"),
    ("attention", "off-by-one mask", "less_than_or_equal %k_place, %q_place", "less_than %k_place, %q_place"),
    ("attention", "no mask", "select %visible, %scaled, %hidden", "select %visible, %scaled, %scaled"),
    ("attention", "the accumulator is not rescaled", "mmaf %p_elem, %v_flat, %acc_scaled", "mmaf %p_elem, %v_flat, %acc_old"),
    ("attention", "the sum is not rescaled", "fma %sum_old, %rescale, %tile_sum_column", "addf %sum_old, %tile_sum_column"),
    ("attention", "queries start at 0, not at S - T", "subi %S, %T", "subi %T, %T"),
    ("attention", "the scale is squared", "mulf %scale, %log2e", "mulf %scale, %scale"),
    ("attention", "the diagonal's key tile is left out", "%behind = addi %first_place, %BT", "%behind = addi %first_place, %zero"),
    ("decode_attention", "one position too many", "less_than %place, %length_full", "less_than_or_equal %place, %length_full"),
    ("decode_attention", "0 times what lies behind the length", "select %filled_full, %v_f32, %nothing", "select %filled_full, %v_f32, %v_f32"),
    ("decode_attention", "the accumulator is not rescaled", "fma %acc_old, %rescale_full, %tile_acc_line", "addf %acc_old, %tile_acc_line"),
)  # fmt: skip

MUTATIONS = tuple(Mutation(*row) for row in _ROWS)
