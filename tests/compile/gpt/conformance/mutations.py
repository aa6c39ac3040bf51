"""Kernel bugs people write, as replacements in the `.mlir` files. Each must be caught by the cases of the kernel's op.

A row: the kernel, what the bug is, the text that stands in the file exactly once, and what replaces it; the dtype in
which it shows, where that is not f32; and of a text that stands there several times, which one of how many is meant.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """`nth` of `count` places where `old` stands in `<kernel>.mlir`."""

    kernel: str
    bug: str
    old: str
    new: str
    dtype: str = "f32"
    nth: int = 1
    count: int = 1

    def apply(self, text: str) -> str:
        """The kernel with the bug. Raises ValueError if the text is not there as often as it should be."""
        if text.count(self.old) != self.count:
            raise ValueError(
                f"{self.old!r} stands {text.count(self.old)} times in {self.kernel}.mlir: say the bug anew"
            )
        parts = text.split(self.old)
        return self.old.join(parts[: self.nth]) + self.new + self.old.join(parts[self.nth :])


# An epilogue in two steps: right unless the residual is the output itself.
EARLY = """%early = ftof %biased : !{acc} -> !{out}
      %stored_early = store_view_tko weak %early, %out_tiles[%m, %n] : !{out}, !{part}, !int -> token
      %r_tile, %r_token = load_view_tko weak %r_tiles[%m, %n] token = %stored_early"""
EARLY_PAIR = """%early = ftof %biased : !acc_BMxBN -> !out_BMxBN
      %stored_early = store_view_tko weak %early, %out_left[%m, %left] token = %before
          : !out_BMxBN, !out_part_BMxBN_every_BMxBR, !int -> token
      %r_tile, %r_token = load_view_tko weak %r_left[%m, %left] token = %stored_early"""
EARLY_ROW = """%early = ftof %biased : !f32_1xBN -> !line_1xBN
    %stored_early = store_view_tko weak %early, %out_tiles[%m, %n] : !line_1xBN, !out_part_1xBN, !int -> token
    %r_late, %late_token = load_view_tko weak %r_tiles[%m, %n] token = %stored_early : !r_part_1xBN, !int -> !line_1xBN, token
    %r_late_f32 = ftof %r_late : !line_1xBN -> !f32_1xBN
    %sum = addf %biased, %r_late_f32"""
EARLY_FEW = """%early = ftof %biased : !acc_BMxBN -> !out_BMxBN
    %stored_early = store_view_tko weak %early, %out_tiles[%m, %n] : !out_BMxBN, !out_part_BMxBN, !int -> token
    %r_late, %late_token = load_view_tko weak %r_tiles[%m, %n] token = %stored_early : !r_part_BMxBN, !int -> !out_BMxBN, token
    %r_late_f32 = ftof %r_late : !out_BMxBN -> !acc_BMxBN
    %summed = addf %biased, %r_late_f32"""

MUTATIONS: tuple[Mutation, ...] = tuple(Mutation(*row) for row in (
    ("embedding", "the position is looked up by token", "%wpe_tiles[%position, %j]", "%wpe_tiles[%token, %j]"),
    ("embedding", "the position is forgotten", "%sum = addf %word_f32, %place_f32", "%sum = addf %word_f32, %word_f32"),
    ("embedding_rows", "the position is looked up by token", "reshape %position : !index_R", "reshape %token : !index_R"),
    ("embedding_rows", "the position is forgotten", "%sum = addf %word_f32, %place_f32", "%sum = addf %word_f32, %word_f32"),
    ("embedding_rows", "columns behind the row are read", "%inside = cmpi less_than %column", "%inside = cmpi greater_than_or_equal %column"),
    ("embedding_rows", "the second tile of columns is the first", "%first = muli %j, %BC", "%first = muli %n, %BC"),
    ("layernorm", "no epsilon", "sqrt %shifted", "sqrt %variance"),
    ("layernorm", "padding counts in the variance", "select %inside, %deviation, %nothing", "select %inside, %deviation, %deviation"),
    ("layernorm", "divides by the tile's width", "%width = itof %C", "%width = itof %BC"),
    ("layernorm", "the last, partial tile is left out", "divi %C, %BC signed rounding<positive_inf>", "divi %C, %BC signed rounding<zero>"),
    ("layernorm", "no bias", "fma %normal, %w_line, %b_line", "fma %normal, %w_line, %nothing"),
    ("layernorm", "variance of the values, not the deviations", "subf %value, %mean_full : !f32_1xBC\n      %counted", "subf %value, %nothing : !f32_1xBC\n      %counted"),
    ("layernorm_row", "no epsilon", "rsqrt %shifted", "rsqrt %variance"),
    ("layernorm_row", "padding counts in the variance", "select %inside_full, %difference, %nothing", "select %inside_full, %difference, %difference"),
    ("layernorm_row", "divides by the tile's width", "%width = itof %C", "%width_i = constant <i32: 1024> : !int\n    %width = itof %width_i"),
    ("layernorm_row", "no bias", "fma %normal, %w_full, %b_full", "fma %normal, %w_full, %nothing"),
    ("linear", "the last, partial step of K is left out", "divi %K, %BK signed rounding<positive_inf>", "divi %K, %BK signed rounding<zero>"),
    ("linear", "no padding behind K", "(128x64), padding_value = zero, !matrix>", "(128x64), !matrix>"),
    ("linear", "swapped strides", "%x_view = make_tensor_view %x, shape = [%M, %K], strides = [%x_row, 1]", "%x_view = make_tensor_view %x, shape = [%M, %K], strides = [%w_row, 1]"),
    ("linear", "the bias of the row tile", "%bias_tiles[%n]", "%bias_tiles[%m]"),
    ("linear", "rows and columns of the output swapped", "%out_tiles[%m, %n]", "%out_tiles[%n, %m]"),
    ("linear", "the accumulator is dropped", "mmaf %x_tile, %w_tile, %acc :", "mmaf %x_tile, %w_tile, %empty :"),
    ("linear", "one step of K too few", "(%zero to %steps", "(%one to %steps"),
    ("linear", "a group of rows as high as the others", "mini %m_left, %GROUP signed", "mini %GROUP, %GROUP signed"),
    ("linear", "rows and columns in the group swapped", "%row = remi %in_group, %rows", "%row = divi %in_group, %rows"),
    ("linear", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("linear", "a block makes the next block's tiles too", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %one)", "bf16"),
    ("linear_gelu", "a digit of the cubic term", "<f32: 0.044715>", "<f32: 0.04715>"),
    ("linear_gelu", "not halved", "%half = constant <f32: 0.5>", "%half = constant <f32: 1.0>"),
    ("linear_gelu", "the bias after the GELU is lost", "%gelu = mulf %halved, %gate", "%gelu = mulf %product, %gate"),
    ("linear_gelu", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("linear_residual", "another tile's residual", "%r_tiles[%m, %n]", "%r_tiles[%n, %m]"),
    ("linear_residual", "the residual's stride is the output's neighbour", "shape = [%M, %N], strides = [%r_row, 1]", "shape = [%M, %N], strides = [%x_row, 1]"),
    ("linear_residual", "stored before the residual is read", "%r_tile, %r_token = load_view_tko weak %r_tiles[%m, %n] token = %before", EARLY.format(acc="acc_BMxBN", out="out_BMxBN", part="out_part_BMxBN")),
    ("linear_residual", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("linear_residual_row", "the last, partial step of K is left out", "divi %K, %BK signed rounding<positive_inf>", "divi %K, %BK signed rounding<zero>"),
    ("linear_residual_row", "only the last step is summed", "fma %x_full, %w_f32, %acc", "mulf %x_full, %w_f32"),
    ("linear_residual_row", "the bias of the row", "%b_tiles[%n]", "%b_tiles[%m]"),
    ("linear_parts", "every part begins one step after the one before", "muli %z, %steps", "muli %z, %one"),
    ("linear_parts", "the steps that are left over go to nobody", "divi %dealt, %parts signed rounding<positive_inf>", "divi %dealt, %parts signed rounding<zero>"),
    ("linear_parts", "the last, partial step of K is left out", "divi %K, %BK signed rounding<positive_inf>", "divi %K, %BK signed rounding<zero>"),
    ("linear_parts", "the accumulator is dropped", "mmaf %x_tile, %w_tile, %acc", "mmaf %x_tile, %w_tile, %empty"),
    ("linear_parts", "all parts in one place", "%p_tiles[%z, %m, %n]", "%p_tiles[%zero, %m, %n]"),
    ("residual_layernorm", "the last parts are left out", "divi %Z, %BZ signed rounding<positive_inf>", "divi %Z, %BZ signed rounding<zero>"),
    ("residual_layernorm", "the residual is forgotten", "addf %x_f32, %bias_line", "maxf %bias_line, %bias_line"),
    ("residual_layernorm", "only the last parts are added", "addf %so_far, %p_line", "addf %biased, %p_line"),
    ("residual_layernorm", "the residual stays as it was", "weak %rounded, %x_stores", "weak %x_tile, %x_stores"),
    ("residual_layernorm", "no epsilon", "rsqrt %shifted", "rsqrt %variance"),
    ("residual_layernorm", "padding counts in the variance", "select %inside, %difference, %nothing", "select %inside, %difference, %difference"),
    ("linear_pair", "the rest's weights are the next tile's", "%w_right[%k, %right]", "%w_right[%k, %left]", "bf16"),
    ("linear_pair", "the rest's bias is the tile's first", "%bias_right[%right]", "%bias_right[%left]", "bf16"),
    ("linear_pair", "the rest overwrites the tile's first columns", "%out_right[%m, %right]", "%out_right[%m, %left]", "bf16"),
    ("linear_pair", "tiles lie as if they had no rest", "%per_tile = addi %before_right, %one", "%per_tile = addi %before_right, %zero", "bf16"),
    ("linear_pair", "the last, partial tile is left out", "divi %N, %width signed rounding<positive_inf>", "divi %N, %width signed rounding<zero>", "bf16"),
    ("linear_pair", "the rest's accumulator is dropped", "mmaf %x_tile, %rest_w_tile, %rest :", "mmaf %x_tile, %rest_w_tile, %rest_empty :", "bf16"),
    ("linear_pair", "the accumulators start with the block's number", "itof %row_zero", "itof %block", "bf16"),
    ("linear_pair", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("linear_gelu_pair", "no GELU of the rest", "ftof %rest_gelu", "ftof %rest_biased", "bf16"),
    ("linear_gelu_pair", "not halved", "%rest_half = constant <f32: 0.5>", "%rest_half = constant <f32: 1.0>", "bf16"),
    ("linear_residual_pair", "the first columns' residual for the rest", "%r_right[%m, %right]", "%r_right[%m, %left]", "bf16"),
    ("linear_residual_pair", "no residual in the rest", "ftof %rest_summed", "ftof %rest_biased", "bf16"),
    ("linear_residual_pair", "stored before the residual is read", "%r_tile, %r_token = load_view_tko weak %r_left[%m, %left] token = %before", EARLY_PAIR, "bf16"),
    ("logits_pair", "the rest's weights are the tile's first", "%w_right[%right, %k]", "%w_right[%left, %k]", "bf16"),
    ("logits_pair", "the rest overwrites the tile's first columns", "%out_right[%m, %right]", "%out_right[%m, %left]", "bf16"),
    ("logits", "the weight's rows and columns", "%w_tiles[%n, %k]", "%w_tiles[%k, %n]"),
    ("logits", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("gelu", "tanh of the unscaled argument", "tanh %scaled", "tanh %inner"),
    ("gelu", "rows and columns of the blocks swapped", "%n, %m, %unused = get_tile_block_id", "%m, %n, %unused = get_tile_block_id"),
    ("softmax", "padding with zero", "padding_value = neg_inf", "padding_value = zero"),
    ("softmax", "only the last tile is summed", "fma %sum_old, %rescale, %power", "maxf %power, %power"),
    ("softmax", "a lane's sum is not rescaled", "fma %sum_old, %rescale, %power", "addf %sum_old, %power"),
    ("softmax", "the lanes are added as they are", "mulf %sums, %lane_rescale", "maxf %sums, %sums"),
    ("softmax", "natural exponent by exp2", "%log2e = constant <f32: 1.4426950408889634>", "%log2e = constant <f32: 1.0>"),
    ("softmax_row", "padding with zero", "padding_value = neg_inf", "padding_value = zero"),
    ("softmax_row", "natural exponent by exp2", "%log2e = constant <f32: 1.4426950408889634>", "%log2e = constant <f32: 1.0>"),
    ("softmax_held", "padding with zero", "padding_value = neg_inf", "padding_value = zero", "bf16"),
    ("softmax_held", "the last tile is not summed", "reduce %sum6", "reduce %sum5", "bf16"),
    ("softmax_held", "the largest of all tiles but one", "%max3 = maxf %max2, %tile3", "%max3 = maxf %max2, %tile2", "bf16"),
    ("softmax_held", "a tile in another's place", "%out_tiles[%m, %j3]", "%out_tiles[%m, %j2]", "bf16"),
    ("argmax_parts", "the last of equals", "mini %place_a, %place_b signed", "maxi %place_a, %place_b signed"),
    ("argmax_parts", "the place in the part, not in the row", "addi %first_full, %lane_line", "addi %lane_line, %lane_line"),
    ("argmax_parts", "padding with zero", "padding_value = neg_inf", "padding_value = zero"),
    ("next_token", "the last of equals", "cmpf greater_than ordered %largest_1x1", "cmpf greater_than_or_equal ordered %largest_1x1"),
    ("next_token", "the last, partial tile is left out", "divi %Z, %BZ signed rounding<positive_inf>", "divi %Z, %BZ signed rounding<zero>"),
    ("next_token", "padding with zero", "padding_value = neg_inf", "padding_value = zero"),
    ("next_token", "the position stays", "addi %position, %unit", "muli %position, %unit"),
    ("kv_append", "off by one", "%place = addi %start, %t", "%place = addi %start, %zero"),
    ("kv_append", "k into both caches", "store_view_tko weak %v_tile", "store_view_tko weak %k_tile"),
    ("attention", "off-by-one mask", "less_than_or_equal %k_place, %q_place", "less_than %k_place, %q_place"),
    ("attention", "no mask", "select %visible, %product, %hidden", "select %visible, %product, %product"),
    ("attention", "one key tile too many is whole", "%whole_there = divi %seen_by_all, %BS signed", "%too_many = addi %first_place, %BT : !int\n    %whole_there = divi %too_many, %BS signed"),
    ("attention", "the accumulator is not rescaled", "mmaf %p_elem, %v_flat, %acc_scaled", "mmaf %p_elem, %v_flat, %acc_old", "f32", 1, 2),
    ("attention", "the accumulator is not rescaled under the mask", "mmaf %p_elem, %v_flat, %acc_scaled", "mmaf %p_elem, %v_flat, %acc_old", "f32", 2, 2),
    ("attention", "the sum is not rescaled", "fma %sum_old, %rescale, %tile_sum_column", "addf %sum_old, %tile_sum_column", "f32", 1, 2),
    ("attention", "the sum is not rescaled under the mask", "fma %sum_old, %rescale, %tile_sum_column", "addf %sum_old, %tile_sum_column", "f32", 2, 2),
    ("attention", "the second loop starts anew", "%sum_old = %sum_whole", "%sum_old = %sum_start"),
    ("attention", "queries start at 0, not at S - T", "subi %S, %T", "subi %T, %T"),
    ("attention", "the blocks count from 0, not from the end", "%i = subi %last, %turn", "%i = subi %tiles, %turn"),
    ("attention", "every group of sequences is the first", "%b = addi %before, %in_group", "%b = addi %zero, %in_group"),
    ("attention", "groups are one sequence too short", "muli %group, %GROUP", "muli %group, %in_group"),
    ("attention", "a group's turns go on in the next", "remi %turn_of_group, %tiles", "remi %turn_of_group, %turn_of_group"),
    ("attention", "the scale is squared", "mulf %scale, %log2e", "mulf %scale, %scale"),
    ("attention", "the diagonal's key tile is left out", "%behind = addi %first_place, %BT", "%behind = addi %first_place, %zero"),
    ("decode_attention", "the new position is hidden", "%filled = cmpi less_than_or_equal", "%filled = cmpi less_than"),
    ("decode_attention", "what lies behind the position is seen", "select %visible, %product, %hidden", "select %visible, %product, %product"),
    ("decode_attention", "0 times what lies behind the position", "select %filled_full, %v_new, %nothing", "select %filled_full, %v_new, %v_new"),
    ("decode_attention", "the old key in the new place", "select %new_full, %key_full, %k_flat", "select %new_full, %k_flat, %k_flat"),
    ("decode_attention", "the old value in the new place", "select %new_full, %value_full, %v_flat", "select %new_full, %v_flat, %v_flat"),
    ("decode_attention", "the store does not wait for the loads", "%kc_rows[%b, %position, %h, %zero] token = %all_read", "%kc_rows[%b, %position, %h, %zero]"),
    ("decode_attention", "the key into both caches", "weak %value_row,", "weak %key_row,"),
    ("decode_attention", "the accumulator is not rescaled", "mulf %acc_old, %rescale_full", "maxf %acc_old, %acc_old"),
    ("decode_attention", "the last tile's accumulator is not rescaled", "mulf %acc_full, %rescale_full", "maxf %acc_full, %acc_full"),
    ("decode_attention", "the last tile's sum forgets the others", "fma %sum_full, %rescale, %tile_sum_column", "fma %sum_start, %rescale, %tile_sum_column"),
    ("decode_attention", "the last tile's sum is not rescaled", "fma %sum_full, %rescale, %tile_sum_column", "addf %sum_full, %tile_sum_column"),
    ("decode_attention", "every span appends", "andi %begun, %not_over", "ori %begun, %not_over"),
    ("decode_attention", "the maximum in natural units", "%tile_max_scaled = mulf %tile_max_column, %scale_column", "%tile_max_scaled = maxf %tile_max_column, %tile_max_column", "f32", 1, 2),
    ("decode_attention", "the last tile's maximum in natural units", "%tile_max_scaled = mulf %tile_max_column, %scale_column", "%tile_max_scaled = maxf %tile_max_column, %tile_max_column", "f32", 2, 2),
    ("merge_attention", "padding is a maximum", "select %there, %max_column, %least", "select %there, %max_column, %max_column"),
    ("merge_attention", "the accumulator is not rescaled", "fma %acc_old, %rescale_full, %tile_acc_line", "addf %acc_old, %tile_acc_line"),
    ("merge_attention", "the sum is not rescaled", "fma %sum_old, %rescale, %tile_sum_1x1", "addf %sum_old, %tile_sum_1x1"),
    ("merge_attention", "the sums are not weighed", "mulf %sum_column, %weights", "maxf %sum_column, %sum_column"),
    ("merge_attention", "the last, partial tile is left out", "divi %Z, %BZ signed rounding<positive_inf>", "divi %Z, %BZ signed rounding<zero>"),
    ("linear_residual_row", "stored before the residual is read", "%sum = addf %biased, %r_f32", EARLY_ROW),
    ("linear_residual_row", "the first step is not summed", "iter_values(%acc = %products_first)", "iter_values(%acc = %x_first_full)"),
    ("linear_residual_row", "the first step is summed twice", "for %k in (%one to %steps", "for %k in (%zero to %steps"),
    ("linear_few", "the second tile of the weight twice", "%w_tiles[%two, %n]", "%w_tiles[%one, %n]", "bf16"),
    ("linear_few", "the accumulator is dropped", "mmaf %x_tile_2, %w_tile_2, %acc_1", "mmaf %x_tile_2, %w_tile_2, %empty", "bf16"),
    ("linear_few", "the bias of the row tile", "%bias_tiles[%n]", "%bias_tiles[%m]", "bf16"),
    ("linear_few", "no padding behind K", "(16x256), padding_value = zero, !matrix>", "(16x256), !matrix>", "bf16"),
    ("linear_gelu_few", "the first tile of x twice", "%x_tiles[%m, %one]", "%x_tiles[%m, %zero]", "bf16"),
    ("linear_gelu_few", "a square for the cube", "fma %cubic, %cube, %biased", "fma %cubic, %square, %biased", "f16"),
    ("linear_gelu_few", "no bias", "addf %product, %bias_full", "addf %product, %empty", "bf16"),
    ("linear_residual_few", "the residual is forgotten", "addf %biased, %r_f32", "addf %biased, %empty", "bf16"),
    ("linear_residual_few", "stored before the residual is read", "%summed = addf %biased, %r_f32", EARLY_FEW, "bf16"),
    ("linear_residual_few", "the third tile is left out", "mmaf %x_tile_2, %w_tile_2, %acc_1", "mmaf %x_tile_1, %w_tile_1, %acc_0", "bf16"),
    ("linear_parts_few", "parts overlap", "muli %z, %three", "muli %z, %two", "bf16"),
    ("linear_parts_few", "every part the first", "%p_tiles[%z, %m, %n]", "%p_tiles[%m, %m, %n]", "bf16"),
    ("linear_parts_few", "the last tile of a part twice", "addi %k_0, %one", "addi %k_0, %two", "bf16"),
    ("linear_thin", "the second tile of the weight twice", "%w_tiles[%two, %n]", "%w_tiles[%one, %n]", "bf16"),
    ("linear_thin", "the accumulator is dropped", "%w_turned_2, %x_turned_2, %acc_1", "%w_turned_2, %x_turned_2, %empty", "bf16"),
    ("linear_thin", "the bias of the row tile", "%bias_tiles[%n]", "%bias_tiles[%m]", "bf16"),
    ("linear_thin", "no padding behind K", "(16x256), padding_value = zero, !matrix>", "(16x256), !matrix>", "bf16"),
    ("linear_gelu_thin", "the first tile of x twice", "%x_tiles[%m, %one]", "%x_tiles[%m, %zero]", "bf16"),
    ("linear_gelu_thin", "a square for the cube", "fma %cubic, %cube, %biased", "fma %cubic, %square, %biased", "f16"),
    ("linear_residual_thin", "the residual is forgotten", "addf %biased, %r_f32", "addf %biased, %bias_full", "bf16"),
    ("linear_residual_thin", "stored before the residual is read", "%summed = addf %biased, %r_f32", EARLY_FEW, "bf16"),
    ("linear_residual_thin", "the third tile is left out", "%w_turned_2, %x_turned_2, %acc_1", "%w_turned_1, %x_turned_1, %acc_0", "bf16"),
    ("linear_parts_thin", "parts overlap", "muli %z, %three", "muli %z, %two", "bf16"),
    ("linear_parts_thin", "every part the first", "%p_tiles[%z, %m, %n]", "%p_tiles[%m, %m, %n]", "bf16"),
    ("linear_parts_thin", "the last tile of a part twice", "addi %k_0, %one", "addi %k_0, %two", "bf16"),
    ("decode_attention_thin", "the new key is not seen", "select %there_full, %new_full, %least", "select %there_full, %scaled, %least", "bf16"),
    ("decode_attention_thin", "the new value is not seen", "select %there_values, %value_full, %nothing", "select %there_values, %nothing, %nothing", "bf16"),
    ("decode_attention_thin", "values past the new position count", "select %before_values, %v_flat, %value_or_nothing", "select %before_values, %v_flat, %v_flat", "bf16"),
    ("decode_attention_thin", "an empty span has weight", "select %there_full, %new_power, %no_weight", "select %there_full, %new_power, %new_power", "bf16"),
    ("decode_attention_thin", "no span is masked", "cmpi less_than_or_equal %behind, %position", "cmpi less_than_or_equal %first, %position", "bf16"),
    ("decode_attention_thin", "a whole span's maximum is not taken off", "subf %scaled, %old_max_full", "maxf %scaled, %scaled", "f16"),
    ("decode_attention_thin", "a whole span's largest weight for their sum", "addf %old_sum_a, %old_sum_b", "maxf %old_sum_a, %old_sum_b", "bf16"),
    ("decode_attention_thin", "the scale is forgotten", "mulf %dots, %scale_full", "mulf %dots, %dots", "bf16"),
    ("decode_attention_thin", "the new score is not scaled", "mulf %dot_1x1, %scale_1x1", "maxf %dot_1x1, %dot_1x1", "bf16"),
    ("decode_attention_thin", "the first place of a span is not ours", "%ours = cmpi less_than_or_equal %first", "%ours = cmpi less_than %first", "bf16"),
    ("decode_attention_thin", "the key is stored while its tile is read", "join_tokens %t0, %k_read, %v_read", "join_tokens %t0, %v_read", "bf16"),
    ("decode_attention_thin", "the key is stored as value", "store_view_tko weak %value_row", "store_view_tko weak %key_row", "bf16"),
    ("decode_attention_thin", "spans past the new position are read from the current one", "addi %current, %one", "addi %current, %zero", "bf16"),
    ("decode_attention_span", "the new key is not seen", "select %new_full, %key_full, %k_flat", "select %new_full, %k_flat, %k_flat", "bf16"),
    ("decode_attention_span", "values past the new position count", "select %there_full, %v_new, %nothing", "select %there_full, %v_new, %v_new", "bf16"),
    ("decode_attention_span", "an empty span has weight", "select %there, %power, %no_weight", "select %there, %power, %power", "bf16"),
    ("decode_attention_span", "the new position is not seen", "cmpi less_than_or_equal %place, %position_column", "cmpi less_than %place, %position_column", "bf16"),
    ("decode_attention_span", "the scale is forgotten", "mulf %dot_column, %scale_column", "mulf %dot_column, %dot_column", "bf16"),
    ("decode_attention_span", "the first place of a span is not ours", "cmpi less_than_or_equal %first, %position", "cmpi less_than %first, %position", "bf16"),
    ("decode_attention_span", "the last place of a span is not ours", "%behind = addi %first, %SPAN : !int", "%behind_all = addi %first, %SPAN : !int\n    %behind = subi %behind_all, %one : !int", "bf16"),
    ("decode_attention_span", "the key is stored while its tile is read", "join_tokens %t0, %k_read, %v_read", "join_tokens %t0, %v_read", "bf16"),
    ("decode_attention_span", "the key is stored as value", "store_view_tko weak %value_row", "store_view_tko weak %key_row", "bf16"),
    ("merge_attention_once", "padding has a maximum", "select %there, %max_column, %least", "select %there, %max_column, %max_column"),
    ("merge_attention_once", "sums are not weighted", "mulf %sum_column, %weights", "mulf %sum_column, %sum_column"),
    ("merge_attention_once", "parts are not weighted", "mulf %part_flat, %weights_full", "maxf %part_flat, %part_flat"),
    ("merge_attention_once", "the maximum is not taken off", "subf %tops, %max_full", "maxf %tops, %tops"),
    ("layernorm_once", "no epsilon", "rsqrt %shifted", "rsqrt %variance", "bf16"),
    ("layernorm_once", "padding counts", "select %inside_full, %from_first, %nothing", "select %inside_full, %from_first, %from_first", "bf16"),
    ("layernorm_once", "the mean of the squares for the variance", "maxf %spread, %least", "maxf %mean_square, %least", "bf16"),
    ("layernorm_once", "sums of the values, not of the differences from the first", "subf %value, %first_full", "maxf %value, %value", "f16"),
    ("layernorm_once", "squares are not added up", "%square_ab = addf %square_a, %square_b", "%square_ab = maxf %square_a, %square_b", "bf16"),
    ("residual_layernorm_four", "the residual is forgotten", "addf %x_f32, %bias_line", "maxf %bias_line, %bias_line"),
    ("residual_layernorm_four", "the third part twice, the fourth not", "%p_tiles[%three, %n, %zero]", "%p_tiles[%two, %n, %zero]"),
    ("residual_layernorm_four", "the second part is lost", "%sum_1 = addf %sum_0, %p1_line", "%sum_1 = maxf %sum_0, %sum_0"),
    ("residual_layernorm_four", "the residual stays as it was", "weak %rounded, %x_stores", "weak %x_tile, %x_stores"),
    ("residual_layernorm_four", "padding counts", "select %inside, %difference, %nothing", "select %inside, %difference, %difference"),
    ("decode_attention_span", "spans past the new position are read from the current one", "addi %current, %one", "addi %current, %zero", "bf16"),
    ("decode_attention_whole", "the new key is not seen", "select %there_full, %new_full, %least", "select %there_full, %least, %least", "bf16"),
    ("decode_attention_whole", "the new value is not seen", "select %there_values, %value_full, %nothing", "select %there_values, %nothing, %nothing", "bf16"),
    ("decode_attention_whole", "values past the new position count", "select %before_values, %v_flat, %value_or_nothing", "select %before_values, %v_flat, %v_flat", "bf16"),
    ("decode_attention_whole", "the largest weight for the sum of the first tile", "addf %near_sum_a, %near_sum_b", "maxf %near_sum_a, %near_sum_b", "bf16"),
    ("decode_attention_whole", "the largest weight for a tile's sum", "addf %sum_a, %sum_b", "maxf %sum_a, %sum_b", "bf16"),
    ("decode_attention_whole", "the accumulator is not rescaled", "mulf %acc_old, %rescale_full", "maxf %acc_old, %acc_old", "bf16"),
    ("decode_attention_whole", "the sum is not rescaled", "fma %sum_old, %rescale, %total_line", "addf %sum_old, %total_line", "bf16"),
    ("decode_attention_whole", "the scale is forgotten behind the first tile", "mulf %dots, %scale_full", "maxf %dots, %dots", "bf16"),
    ("decode_attention_whole", "the new score is not scaled", "mulf %dot_1x1, %scale_1x1", "maxf %dot_1x1, %dot_1x1", "bf16"),
    ("decode_attention_whole", "the key is stored as value", "store_view_tko weak %value_row", "store_view_tko weak %key_row", "bf16"),
    ("decode_attention_whole", "the key is stored while its tile is read", "join_tokens %k_read, %ready", "join_tokens %t0, %ready", "bf16"),
    ("decode_attention_walk", "the new key is not seen", "select %there_full, %new_full, %least", "select %there_full, %least, %least", "bf16"),
    ("decode_attention_walk", "the new value is not seen", "select %there_values, %value_full, %nothing", "select %there_values, %nothing, %nothing", "bf16"),
    ("decode_attention_walk", "values past the new position count", "select %before_values, %v_flat, %value_or_nothing", "select %before_values, %v_flat, %v_flat", "bf16"),
    ("decode_attention_walk", "the largest weight for the sum of the first tile", "addf %near_sum_a, %near_sum_b", "maxf %near_sum_a, %near_sum_b", "bf16"),
    ("decode_attention_walk", "the largest weight for a tile's sum", "addf %sum_a, %sum_b", "maxf %sum_a, %sum_b", "bf16"),
    ("decode_attention_walk", "the accumulator is not rescaled", "mulf %acc_old, %rescale_full", "maxf %acc_old, %acc_old", "bf16"),
    ("decode_attention_walk", "the sum is not rescaled", "fma %sum_old, %rescale, %total_line", "addf %sum_old, %total_line", "bf16"),
    ("decode_attention_walk", "the maximum does not rise", "maxf %max_old, %top_line", "maxf %max_old, %max_old", "bf16"),
    ("decode_attention_walk", "the scale is forgotten behind the first tile", "mulf %dots, %scale_full", "maxf %dots, %dots", "bf16"),
    ("decode_attention_walk", "the new score is not scaled", "mulf %dot_1x1, %scale_1x1", "maxf %dot_1x1, %dot_1x1", "bf16"),
    ("decode_attention_walk", "the key is stored as value", "store_view_tko weak %value_row", "store_view_tko weak %key_row", "bf16"),
    ("decode_attention_walk", "the key is stored while its tile is read", "join_tokens %k_read, %ready", "join_tokens %t0, %ready", "bf16"),
    ("decode_attention_whole", "not divided by the sum", "divf %one_f32, %sum", "divf %one_f32, %one_f32", "bf16"),
    ("decode_attention_whole", "the tile before the new position's comes first", "%last = divi %position, %BS signed : !int", "%current = divi %position, %BS signed : !int\n    %before_it = subi %current, %one : !int\n    %last = maxi %before_it, %zero signed : !int", "bf16"),
    ("decode_attention_walk", "an empty span has weight", "select %there_full, %near_power, %no_score", "select %there_full, %near_power, %near_power", "bf16"),
    ("decode_attention_walk", "every span ends at the new position", "mini %current, %last_of_span signed", "maxi %current, %last_of_span signed", "bf16"),
    ("decode_attention_walk", "an empty span takes the tile of the new position", "maxi %nearer, %first signed", "mini %nearer, %nearer signed", "bf16"),
    ("decode_attention_walk", "the first place of a span is not ours", "cmpi less_than_or_equal %span_first, %position", "cmpi less_than %span_first, %position", "bf16"),
    ("decode_attention_walk", "every span before the new position appends", "andi %begun, %not_over", "andi %begun, %begun", "bf16"),
))  # fmt: skip
