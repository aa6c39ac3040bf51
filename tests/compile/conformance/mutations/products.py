"""Bugs in products of matrices."""

from __future__ import annotations

from .mutation import Mutation

# An epilogue in two steps: right unless the residual is the output itself.
EARLY = """%early = call @rounded(%biased)
    %stored_early = store_view_tko weak %early, %out_tiles[%m, %n] : !out, !out_part, !int -> token
    %residual_late, %read_late = load_view_tko weak %residual_tiles[%m, %n] token = %stored_early
        : !residual_part, !int -> !out, token
    %value = call @add_residual(%biased, %residual_late)"""
EARLY_SPLIT = """%early = addf %product, %bias_rows : !acc
    %early_out = call @rounded(%early)
    %stored_early = store_view_tko weak %early_out, %out_left[%m, %left] token = %before : !out, !out_left, !int -> token
    %biased = addf %product, %bias_rows : !acc"""
EARLY_SMALL_M = """%early = hole @store(%biased, %out_tiles, %m, %n, %ready) -> token
    %late, %late_read = hole @load_residual(%residual_tiles, %m, %n) -> (!out, token)
    %value = call @add_residual(%biased, %late)"""

MUTATIONS: tuple[Mutation, ...] = tuple(Mutation(*row) for row in (
    ("products !x_part", "linear", "no padding behind K", "padding_value = zero, ", ""),
    ("fragment @tile_place", "linear", "a group of rows as high as the others", "mini %m_left, %GROUP signed", "mini %GROUP, %GROUP signed"),
    ("fragment @tile_place", "linear", "rows and columns in the group swapped", "%row = remi %in_group, %rows", "%row = divi %in_group, %rows"),
    ("fragment @bias_rows", "linear", "the bias twice", "%row = reshape %bias_f32", "%twice = addf %bias_f32, %bias_f32 : !line\n  %row = reshape %twice"),
    ("fragment @half_bias_rows", "linear_gelu", "not halved", "<f32: 0.5>", "<f32: 1.0>"),
    ("fragment @gelu_of_half", "linear_gelu", "a digit of the cubic term", "<f32: 0.285419265090401>", "<f32: 0.295419265090401>"),
    ("fragment @gelu_of_half", "linear_gelu", "a square for the cube", "fma %cubic, %square, %linear", "fma %cubic, %h, %linear"),
    ("fragment @gelu", "linear_gelu", "no bias", "fma %half, %product, %half_bias", "mulf %half, %product"),
    ("fragment @add_residual", "linear_residual", "the residual is forgotten", "addf %value, %residual_f32", "addf %value, %value"),
    ("fragment @tiles_of", "linear", "the last, partial step of K is left out", "divi %K, %BK signed rounding<positive_inf>", "divi %K, %BK signed rounding<zero>"),
    ("fragment @step", "linear", "the accumulator is dropped", "%next = mmaf %x_tile, %w_tile, %acc", "%empty = constant <f32: 0.0> : !acc\n  %next = mmaf %x_tile, %w_tile, %empty"),
    ("skeleton @persistent", "linear", "one step of K too few", "(%zero to %steps", "(%one to %steps"),
    ("skeleton @persistent", "linear", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("skeleton @persistent", "linear", "a block makes the next block's tiles too", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %one)", "bf16"),
    ("fragment @load_bias", "linear", "every block has the first columns' bias", "%bias, %read = load_view_tko weak %tiles[%n]", "%zero = constant <i32: 0> : !int\n  %bias, %read = load_view_tko weak %tiles[%zero]"),
    ("fragment @store", "linear", "rows and columns of the output swapped", "%tiles[%m, %n]", "%tiles[%n, %m]"),
    ("fragment @store_after", "linear_residual", "rows and columns of the output swapped", "%tiles[%m, %n]", "%tiles[%n, %m]"),
    ("fragment @add_bias", "linear", "the bias is forgotten", "addf %product, %bias", "addf %product, %product"),
    ("skeleton @persistent_bias", "linear", "the bias for the product", "@value(%product, ", "@value(%bias_rows, "),
    ("kernel @linear", "linear", "half of the bias", "@bias = @bias_rows", "@bias = @half_bias_rows"),
    ("kernel @linear_gelu", "linear_gelu", "the bias is not halved", "@bias = @half_bias_rows", "@bias = @bias_rows"),
    ("skeleton @persistent_residual", "linear_residual", "another tile's residual", "%residual_tiles[%m, %n]", "%residual_tiles[%n, %m]"),
    ("skeleton @persistent_residual", "linear_residual", "stored before the residual is read", "%value = call @add_residual(%biased, %residual)", EARLY),
    ("fragment @unknown_zero", "linear_split_n", "starts with one", "%zero = itof %row_zero", "%one = constant <i32: 1> : !int\n  %first = addi %row_zero, %one : !int\n  %zero = itof %first", "bf16"),
    ("fragment @split_tiles", "linear_split_n", "the last, partial tile is left out", "signed rounding<positive_inf>", "signed rounding<zero>", "bf16"),
    ("fragment @split_columns", "linear_split_n", "tiles lie as if they had no right part", "muli %n, %per_tile", "muli %n, %before_right", "bf16"),
    ("fragment @split_columns", "linear_split_n", "the right part is the second step", "addi %left, %before_right", "addi %left, %one", "bf16"),
    ("fragment @split_step", "linear_split_n", "the right part's weights are the left one's", "%w_right[%k, %right]", "%w_right[%k, %left]", "bf16"),
    ("fragment @load_split_bias", "linear_split_n", "the right part's bias is the left one's", "%bias_right[%right]", "%bias_right[%left]", "bf16"),
    ("fragment @store_split", "linear_split_n", "the right part overwrites the left one", "%out_right[%m, %right]", "%out_right[%m, %left]", "bf16"),
    ("fragment @store_split_unordered", "linear_gelu_split_n", "the right part overwrites the left one", "%out_right[%m, %right]", "%out_right[%m, %left]", "bf16"),
    ("skeleton @split_n_residual", "linear_residual_split_n", "the left part's residual in the right one", "%residual_right[%m, %right]", "%residual_right[%m, %left]", "bf16"),
    ("fragment @split_tiles_of", "linear_split_n", "the last, partial tile of rows is left out", "divi %M, %BM signed rounding<positive_inf>", "divi %M, %BM signed rounding<zero>", "bf16"),
    ("skeleton @split_n", "linear_split_n", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("skeleton @split_n", "linear_split_n", "the right part's accumulator is dropped", "continue %next, %rest_next", "continue %next, %rest", "bf16"),
    ("skeleton @split_n", "linear_split_n", "the accumulators start with the block's number", "%empty = call @unknown_zero(%row_zero)\n", "%empty = call @unknown_zero(%block)\n", "bf16"),
    ("skeleton @split_n_bias", "linear_split_n", "the right part's bias for its product", "(%rest_product, %rest_bias_rows)", "(%rest_bias_rows, %rest_bias_rows)", "bf16"),
    ("kernel @linear_split_n", "linear_split_n", "half of the bias", "@bias = @bias_rows", "@bias = @half_bias_rows", "bf16"),
    ("kernel @linear_gelu_split_n", "linear_gelu_split_n", "the bias is not halved", "@bias = @half_bias_rows", "@bias = @bias_rows", "bf16"),
    ("skeleton @split_n_residual", "linear_residual_split_n", "stored before the residual is read", "%biased = addf %product, %bias_rows : !acc", EARLY_SPLIT, "bf16"),
    ("fragment @load_weight", "linear_small_m", "the second tile of the weight twice", "%w_tiles[%k2, %n]", "%w_tiles[%k1, %n]", "bf16"),
    ("fragment @multiply", "linear_small_m", "the first tile of x twice", "%x_tiles[%m, %k1]", "%x_tiles[%m, %k0]", "bf16"),
    ("fragment @multiply", "linear_small_m", "the second tile is left out", "mmaf %x2, %w2, %acc1", "mmaf %x2, %w2, %acc0", "bf16"),
    ("fragment @multiply_swapped", "linear_swap_ab", "the second tile is left out", "%k2, %w2, %acc1", "%k2, %w2, %acc0", "bf16"),
    ("fragment @swapped_step", "linear_swap_ab", "rows and columns of x swapped", "%x_tiles[%m, %k]", "%x_tiles[%k, %m]", "bf16"),
    ("fragment @load_bias_directly", "linear_swap_ab", "every block has the first columns' bias", "%bias, %token = load_view_tko weak %tiles[%n]", "%zero = constant <i32: 0> : !int\n  %bias, %token = load_view_tko weak %tiles[%zero]", "bf16"),
    ("fragment @store_directly", "linear_swap_ab", "rows and columns of the output swapped", "%tiles[%m, %n]", "%tiles[%n, %m]", "bf16"),
    ("skeleton @small_m", "linear_small_m", "the weights of the row tile", "%zero, %one, %two, %n)", "%zero, %one, %two, %m)", "bf16"),
    ("skeleton @small_m_bias", "linear_small_m", "the bias for the product", "@value(%product, ", "@value(%bias_rows, ", "bf16"),
    ("kernel @linear_small_m", "linear_small_m", "half of the bias", "@bias = @bias_rows", "@bias = @half_bias_rows", "bf16"),
    ("kernel @linear_residual_small_m", "linear_residual_small_m", "half of the bias", "@bias = @bias_rows", "@bias = @half_bias_rows", "bf16"),
    ("fragment @load_residual", "linear_residual_small_m", "another tile's residual", "%tiles[%m, %n]", "%tiles[%n, %m]", "bf16"),
    ("skeleton @small_m_residual", "linear_residual_small_m", "the bias is forgotten", "@add_residual(%biased, ", "@add_residual(%product, ", "bf16"),
    ("skeleton @small_m_residual", "linear_residual_small_m", "stored before the residual is read", "%value = call @add_residual(%biased, %residual)", EARLY_SMALL_M, "bf16"),
    ("kernel @linear_swap_ab", "linear_swap_ab", "half of the bias", "@bias = @bias_rows", "@bias = @half_bias_rows", "bf16"),
    ("fragment @product", "linear_split_k", "the accumulator is dropped", "mmaf %x_tile, %w_tile, %acc", "mmaf %x_tile, %w_tile, %empty"),
    ("fragment @steps_of_part", "linear_split_k", "every part begins at the first step", "muli %z, %steps", "subi %z, %z"),
    ("fragment @steps_of_part", "linear_split_k", "the steps that are left over go to nobody", "divi %dealt, %parts signed rounding<positive_inf>", "divi %dealt, %parts signed rounding<zero>"),
    ("fragment @steps_of_part", "linear_split_k", "the last, partial step of K is left out", "divi %K, %BK signed rounding<positive_inf>", "divi %K, %BK signed rounding<zero>"),
    ("kernel @linear_split_k", "linear_split_k", "all parts in one place", "%partial_tiles[%z, %m, %n]", "%partial_tiles[%m, %m, %n]"),
    ("fragment @three_steps", "linear_split_k_small_m", "parts overlap", "muli %z, %three", "muli %z, %two", "bf16"),
    ("fragment @three_steps", "linear_split_k_small_m", "the last tile of a part twice", "%k1 = addi %k0, %one", "%k1 = addi %k0, %two", "bf16"),
    ("kernel @linear_split_k_small_m", "linear_split_k_small_m", "all parts in one place", "%partial_tiles[%z, %m, %n]", "%partial_tiles[%m, %m, %n]", "bf16"),
    ("kernel @linear_split_k_swap_ab", "linear_split_k_swap_ab", "all parts in one place", "%partial_tiles[%z, %m, %n]", "%partial_tiles[%m, %m, %n]", "bf16"),
    ("kernel @logits", "logits", "the weight's rows and columns swapped", "%w_tiles[%n, %k]", "%w_tiles[%k, %n]"),
    ("kernel @logits", "logits", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("kernel @logits_split_n", "logits_split_n", "the right part's weights are the left one's", "%w_right[%right, %k]", "%w_right[%left, %k]", "bf16"),
    ("kernel @logits_split_n", "logits_split_n", "the right part overwrites the left one", "%out_right, %m, %left, %right)", "%out_right, %m, %left, %left)", "bf16"),
    ("kernel @matmul", "matmul", "rows and columns of the output swapped", "(%product, %out_tiles, %m, %n)", "(%product, %out_tiles, %n, %m)"),
    ("kernel @matmul_residual", "matmul_residual", "another tile's residual", "%residual_tiles[%m, %n]", "%residual_tiles[%n, %m]"),
    ("kernel @matmul_residual", "matmul_residual", "the residual is forgotten", "@store_after(%value, ", "@store_after(%product, "),
    ("fragment @gated", "swiglu", "not halved", "<f32: 0.5>", "<f32: 1.0>"),
    ("fragment @gated", "swiglu", "a sigmoid without its factor", "fma %h, %tanh, %h", "fma %half, %tanh, %half"),
    ("fragment @pair_step", "swiglu", "both products are of one weight", "%up_tiles[%k, %n]", "%gate_tiles[%k, %n]"),
    ("kernel @swiglu", "swiglu", "gate and up swapped", "@gated(%gate, %up)", "@gated(%up, %gate)"),
    ("skeleton @persistent_pair", "swiglu", "one accumulator is dropped", "continue %gate_next, %up_next", "continue %gate_next, %up_so_far"),
    ("skeleton @persistent_pair", "swiglu", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
))  # fmt: skip
