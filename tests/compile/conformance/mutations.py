"""Kernel bugs people write, as replacements in the parts of the `.mlir` files. Each must be caught by a case of an op.

A row: the part that has the bug, the cheapest kernel that shows it, what the bug is, the text that stands in the part
exactly once, and what replaces it; the dtype in which it shows, where that is not f32; and of a text that stands there
several times, which one of how many is meant. A part is `fragment @x`, `skeleton @x`, `kernel @x` or, for a type, its
file's stem and name: `products !x_part`.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.tileir.compose import Library


@dataclass(frozen=True)
class Mutation:
    """`nth` of `count` places where `old` stands in the part."""

    part: str
    kernel: str
    bug: str
    old: str
    new: str
    dtype: str = "f32"
    nth: int = 1
    count: int = 1

    def apply(self, library: Library) -> Library:
        """The library with the bug. Raises ValueError if the part's text is not there as often as it should be."""
        file, start, end = place(library, self.part)
        texts = library.texts
        text = texts[file][start:end]
        if text.count(self.old) != self.count:
            raise ValueError(f"{self.old!r} stands {text.count(self.old)} times in {self.part}: say the bug anew")
        parts = text.split(self.old)
        changed = self.old.join(parts[: self.nth]) + self.new + self.old.join(parts[self.nth :])
        return library.with_file(file, texts[file][:start] + changed + texts[file][end:])


def place(library: Library, part: str) -> tuple[str, int, int]:
    """The file of a part, and where its text begins and ends there. Raises ValueError if there is no such part."""
    first, name = part.split(" ")
    if name.startswith("!"):
        file = next((f for key, f in library.files.items() if key.endswith(f"/{first}.mlir")), None)
        span = file.aliases.get(name[1:]) if file else None
    else:
        item = library.find(first, name[1:])
        file, span = (item.file, (item.start, item.end)) if item else (None, None)
    if file is None or span is None:
        raise ValueError(f"there is no {part} in kernels_mlir")
    last = file.tokens[span[1] - 1]
    return file.name, file.tokens[span[0]].at, last.at + len(last.text)


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

# Parts without a bug of their own, and why.
UNTESTED = {
    part: why
    for why, parts in {
        "it changes a type or a shape only: what is wrong in it does not verify": (
            "fragment @rounded", "fragment @first_columns", "fragment @for_rows", "fragment @for_elements",
            "fragment @for_each_row", "fragment @sum_in_rows", "fragment @sum_in_columns", "fragment @index_line",
            "fragment @scores", "fragment @query_columns", "fragment @scale_columns", "fragment @in_all_lanes",
        ),
        "it gives what it is given": ("fragment @unscaled", "fragment @identity"),
        "it adds nothing to its skeleton": ("kernel @linear_residual", "kernel @linear_residual_split_n"),
        "it orders accesses that the interpreter makes in program order": ("fragment @after_all", "fragment @after_last"),
        "any value that is no less serves as well": ("fragment @largest", "fragment @line_maximum", "fragment @max_in_columns"),
    }.items()
    for part in parts
}  # fmt: skip

MUTATIONS: tuple[Mutation, ...] = tuple(Mutation(*row) for row in (
    ("products !x_part", "linear", "no padding behind K", "padding_value = zero, ", ""),
    ("fragment @tile_place", "linear", "a group of rows as high as the others", "mini %m_left, %GROUP signed", "mini %GROUP, %GROUP signed"),
    ("fragment @tile_place", "linear", "rows and columns in the group swapped", "%row = remi %in_group, %rows", "%row = divi %in_group, %rows"),
    ("fragment @bias_rows", "linear", "the bias twice", "%row = reshape %bias_f32", "%twice = addf %bias_f32, %bias_f32 : !line\n  %row = reshape %twice"),
    ("fragment @half_bias_rows", "linear_gelu", "not halved", "<f32: 0.5>", "<f32: 1.0>"),
    ("fragment @rms_constants", "rms_linear", "the last parts are forgotten", "divi %Z, %four signed rounding<positive_inf>", "divi %Z, %four signed rounding<zero>"),
    ("fragment @rms_constants", "rms_linear", "the sum of squares for their mean", "divf %one, %K_f32", "divf %one, %one"),
    ("fragment @inverse_rms", "rms_linear", "no epsilon", "rsqrt %shifted", "rsqrt %mean_square"),
    ("fragment @sum_of_parts", "rms_linear", "the first part twice", "addf %sum0, %column1", "addf %sum0, %column0"),
    ("fragment @sum_of_parts", "rms_linear", "parts past the fourth are forgotten", "(%zero to %steps, step %one)", "(%zero to %one, step %one)"),
    ("fragment @gelu_of_half", "linear_gelu", "a digit of the cubic term", "<f32: 0.285419265090401>", "<f32: 0.295419265090401>"),
    ("fragment @gelu_of_half", "linear_gelu", "a square for the cube", "fma %cubic, %square, %linear", "fma %cubic, %h, %linear"),
    ("fragment @gelu", "linear_gelu", "no bias", "fma %half, %product, %half_bias", "mulf %half, %product"),
    ("fragment @scale_rows", "rms_linear", "the bias is forgotten", "fma %product, %scales, %bias", "mulf %product, %scales"),
    ("fragment @halved", "rms_linear_gelu", "not halved", "<f32: 0.5>", "<f32: 1.0>"),
    ("fragment @add_residual", "linear_residual", "the residual is forgotten", "addf %value, %residual_f32", "addf %value, %value"),
    ("fragment @row_squares", "linear_residual_squares_persistent", "the sum for the sum of squares", "yield %sum :", "yield %plain :", "bf16"),
    ("fragment @sums_and_squares", "linear_residual_squares_persistent", "the largest square for their sum", "addf %square_a, %square_b", "maxf %square_a, %square_b", "bf16"),
    ("fragment @row_squares_alone", "linear_residual_squares_small_m", "the sum for the sum of squares", "@row_sums<R = BM, BC = BN>(%square)", "@row_sums<R = BM, BC = BN>(%value)", "bf16"),
    ("skeleton @persistent", "linear", "the last, partial step of K is left out", "divi %K, %BK signed rounding<positive_inf>", "divi %K, %BK signed rounding<zero>"),
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
    ("kernel @linear_residual_squares_persistent", "linear_residual_squares_persistent", "another tile's squares", "%squares_tiles[%n, %m]", "%squares_tiles[%m, %n]", "bf16"),
    ("skeleton @persistent_residual", "linear_residual_squares_persistent", "the residual is not in the squares", "hole @after(%value, ", "hole @after(%biased, ", "bf16"),
    ("skeleton @persistent_rms", "rms_linear", "the bias of the row tile", "@load_bias(%bias_tiles, %n)", "@load_bias(%bias_tiles, %m)"),
    ("kernel @rms_linear", "rms_linear", "half of the scale", "@scale = @unscaled", "@scale = @halved"),
    ("skeleton @persistent_rms", "rms_linear", "another row's squares", "(%squares_tiles, %m, ", "(%squares_tiles, %n, "),
    ("kernel @rms_linear_gelu", "rms_linear_gelu", "the bias is not halved", "@bias = @half_bias_rows", "@bias = @bias_rows"),
    ("kernel @rms_linear_gelu", "rms_linear_gelu", "the product is not halved", "@scale = @halved", "@scale = @unscaled"),
    ("fragment @unknown_zero", "linear_split_n", "starts with one", "%zero = itof %row_zero", "%one = constant <i32: 1> : !int\n  %first = addi %row_zero, %one : !int\n  %zero = itof %first", "bf16"),
    ("fragment @split_tiles", "linear_split_n", "the last, partial tile is left out", "signed rounding<positive_inf>", "signed rounding<zero>", "bf16"),
    ("fragment @split_columns", "linear_split_n", "tiles lie as if they had no right part", "muli %n, %per_tile", "muli %n, %before_right", "bf16"),
    ("fragment @split_columns", "linear_split_n", "the right part is the second step", "addi %left, %before_right", "addi %left, %one", "bf16"),
    ("fragment @split_step", "linear_split_n", "the right part's weights are the left one's", "%w_right[%k, %right]", "%w_right[%k, %left]", "bf16"),
    ("fragment @load_split_bias", "linear_split_n", "the right part's bias is the left one's", "%bias_right[%right]", "%bias_right[%left]", "bf16"),
    ("fragment @store_split", "linear_split_n", "the right part overwrites the left one", "%out_right[%m, %right]", "%out_right[%m, %left]", "bf16"),
    ("fragment @store_split_unordered", "linear_gelu_split_n", "the right part overwrites the left one", "%out_right[%m, %right]", "%out_right[%m, %left]", "bf16"),
    ("fragment @split_row_squares", "linear_residual_squares_split_n", "the right part's squares are forgotten", "addf %left_sum, %right_sum", "maxf %left_sum, %left_sum", "bf16"),
    ("fragment @split_row_squares", "linear_residual_squares_split_n", "half of the left part", "addf %half_a, %half_b", "maxf %half_a, %half_b", "bf16"),
    ("skeleton @split_n_residual", "linear_residual_split_n", "the left part's residual in the right one", "%residual_right[%m, %right]", "%residual_right[%m, %left]", "bf16"),
    ("fragment @store_split_squares", "linear_residual_squares_split_n", "another tile's squares", "%squares[%n, %m]", "%squares[%m, %n]", "bf16"),
    ("skeleton @split_n", "linear_split_n", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("skeleton @split_n", "linear_split_n", "the right part's accumulator is dropped", "continue %next, %rest_next", "continue %next, %rest", "bf16"),
    ("skeleton @split_n", "linear_split_n", "the accumulators start with the block's number", "%empty = call @unknown_zero(%row_zero)\n", "%empty = call @unknown_zero(%block)\n", "bf16"),
    ("skeleton @split_n_bias", "linear_split_n", "the right part's bias for its product", "(%rest_product, %rest_bias_rows)", "(%rest_bias_rows, %rest_bias_rows)", "bf16"),
    ("kernel @linear_split_n", "linear_split_n", "half of the bias", "@bias = @bias_rows", "@bias = @half_bias_rows", "bf16"),
    ("kernel @linear_gelu_split_n", "linear_gelu_split_n", "the bias is not halved", "@bias = @half_bias_rows", "@bias = @bias_rows", "bf16"),
    ("skeleton @split_n_residual", "linear_residual_split_n", "stored before the residual is read", "%biased = addf %product, %bias_rows : !acc", EARLY_SPLIT, "bf16"),
    ("kernel @linear_residual_squares_split_n", "linear_residual_squares_split_n", "rows and columns of the squares swapped", "%squares_tiles, %m, %n)", "%squares_tiles, %n, %m)", "bf16"),
    ("skeleton @split_n_rms", "rms_linear_split_n", "the right part's bias for its product", "(%rest_product, %scale", "(%rest_bias_rows, %scale", "bf16"),
    ("kernel @rms_linear_split_n", "rms_linear_split_n", "half of the scale", "@scale = @unscaled", "@scale = @halved", "bf16"),
    ("kernel @rms_linear_gelu_split_n", "rms_linear_gelu_split_n", "the product is not halved", "@scale = @halved", "@scale = @unscaled", "bf16"),
    ("fragment @load_weight", "linear_small_m", "the second tile of the weight twice", "%w_tiles[%k2, %n]", "%w_tiles[%k1, %n]", "bf16"),
    ("fragment @multiply", "linear_small_m", "the first tile of x twice", "%x_tiles[%m, %k1]", "%x_tiles[%m, %k0]", "bf16"),
    ("fragment @multiply", "linear_small_m", "the second tile is left out", "mmaf %x2, %w2, %acc1", "mmaf %x2, %w2, %acc0", "bf16"),
    ("fragment @multiply_swapped", "linear_swap_ab", "the second tile is left out", "%k2, %w2, %acc1", "%k2, %w2, %acc0", "bf16"),
    ("fragment @swapped_step", "linear_swap_ab", "rows and columns of x swapped", "%x_tiles[%m, %k]", "%x_tiles[%k, %m]", "bf16"),
    ("fragment @column_sums", "rms_linear_gelu_small_m", "the largest part for their sum", "addf %a, %b", "maxf %a, %b", "bf16"),
    ("fragment @inverse_rms_of_16", "rms_linear_gelu_small_m", "the first rows' squares", "%squares[%zero, %m]", "%squares[%zero, %zero]", "bf16"),
    ("fragment @store_squares", "linear_residual_squares_swap_ab", "another tile's squares", "%squares[%n, %m]", "%squares[%m, %n]", "bf16"),
    ("fragment @load_bias_directly", "linear_swap_ab", "every block has the first columns' bias", "%bias, %token = load_view_tko weak %tiles[%n]", "%zero = constant <i32: 0> : !int\n  %bias, %token = load_view_tko weak %tiles[%zero]", "bf16"),
    ("fragment @store_directly", "linear_swap_ab", "rows and columns of the output swapped", "%tiles[%m, %n]", "%tiles[%n, %m]", "bf16"),
    ("skeleton @small_m", "linear_small_m", "the weights of the row tile", "%zero, %one, %two, %n)", "%zero, %one, %two, %m)", "bf16"),
    ("skeleton @small_m_bias", "linear_small_m", "the bias for the product", "@value(%product, ", "@value(%bias_rows, ", "bf16"),
    ("kernel @linear_small_m", "linear_small_m", "half of the bias", "@bias = @bias_rows", "@bias = @half_bias_rows", "bf16"),
    ("kernel @linear_residual_small_m", "linear_residual_small_m", "half of the bias", "@bias = @bias_rows", "@bias = @half_bias_rows", "bf16"),
    ("fragment @load_residual", "linear_residual_small_m", "another tile's residual", "%tiles[%m, %n]", "%tiles[%n, %m]", "bf16"),
    ("fragment @load_residual_directly", "linear_residual_squares_swap_ab", "another tile's residual", "%tiles[%m, %n]", "%tiles[%n, %m]", "bf16"),
    ("skeleton @small_m_residual", "linear_residual_small_m", "the bias is forgotten", "@add_residual(%biased, ", "@add_residual(%product, ", "bf16"),
    ("skeleton @small_m_residual", "linear_residual_small_m", "stored before the residual is read", "%value = call @add_residual(%biased, %residual)", EARLY_SMALL_M, "bf16"),
    ("kernel @linear_residual_squares_small_m", "linear_residual_squares_small_m", "rows and columns of the squares swapped", "%squares_tiles, %m, %n)", "%squares_tiles, %n, %m)", "bf16"),
    ("skeleton @small_m_rms", "rms_linear_gelu_small_m", "not divided by the root of the mean square", "@scale(%inverse)", "@scale(%units)", "bf16"),
    ("kernel @rms_linear_gelu_small_m", "rms_linear_gelu_small_m", "the bias is not halved", "@bias = @half_bias_rows", "@bias = @bias_rows", "bf16"),
    ("kernel @linear_swap_ab", "linear_swap_ab", "half of the bias", "@bias = @bias_rows", "@bias = @half_bias_rows", "bf16"),
    ("skeleton @small_m_residual", "linear_residual_squares_swap_ab", "the residual is not in the squares", "hole @after(%value, ", "hole @after(%biased, ", "bf16"),
    ("kernel @linear_residual_squares_swap_ab", "linear_residual_squares_swap_ab", "rows and columns of the squares swapped", "%squares_tiles, %m, %n)", "%squares_tiles, %n, %m)", "bf16"),
    ("kernel @rms_linear_gelu_swap_ab", "rms_linear_gelu_swap_ab", "the bias is not halved", "@bias = @half_bias_rows", "@bias = @bias_rows", "bf16"),
    ("fragment @product", "linear_split_k", "the accumulator is dropped", "mmaf %x_tile, %w_tile, %acc", "mmaf %x_tile, %w_tile, %empty"),
    ("kernel @linear_split_k", "linear_split_k", "every part begins at the first step", "muli %z, %steps", "muli %m, %steps"),
    ("kernel @linear_split_k", "linear_split_k", "the steps that are left over go to nobody", "divi %dealt, %parts signed rounding<positive_inf>", "divi %dealt, %parts signed rounding<zero>"),
    ("kernel @linear_split_k", "linear_split_k", "the last, partial step of K is left out", "divi %K, %BK signed rounding<positive_inf>", "divi %K, %BK signed rounding<zero>"),
    ("kernel @linear_split_k", "linear_split_k", "all parts in one place", "%partial_tiles[%z, %m, %n]", "%partial_tiles[%m, %m, %n]"),
    ("fragment @three_steps", "linear_split_k_small_m", "parts overlap", "muli %z, %three", "muli %z, %two", "bf16"),
    ("fragment @three_steps", "linear_split_k_small_m", "the last tile of a part twice", "%k1 = addi %k0, %one", "%k1 = addi %k0, %two", "bf16"),
    ("kernel @linear_split_k_small_m", "linear_split_k_small_m", "all parts in one place", "%partial_tiles[%z, %m, %n]", "%partial_tiles[%m, %m, %n]", "bf16"),
    ("kernel @linear_split_k_swap_ab", "linear_split_k_swap_ab", "all parts in one place", "%partial_tiles[%z, %m, %n]", "%partial_tiles[%m, %m, %n]", "bf16"),
    ("kernel @linear_residual_squares", "linear_residual_squares", "of several tiles the last alone", "addf %sum, %tile_sum", "maxf %tile_sum, %tile_sum"),
    ("kernel @linear_residual_squares", "linear_residual_squares", "every part begins with the first tile", "%first = muli %z, %part_tiles", "%first = muli %zero, %part_tiles"),
    ("fragment @shifted_identity", "linear_residual_squares_split_n_mma", "not shifted", "addi %rows, %offsets", "maxi %rows, %rows signed", "bf16"),
    ("kernel @linear_residual_squares_split_n_mma", "linear_residual_squares_split_n_mma", "the left part's halves change places", "mmaf %r1, %ones_second", "mmaf %r1, %ones_first", "bf16"),
    ("kernel @linear_residual_squares_split_n_mma", "linear_residual_squares_split_n_mma", "the second half's residual is the first one's", "%residual_tiles[%m, %second]", "%residual_tiles[%m, %left]", "bf16"),
    ("kernel @logits", "logits", "the weight's rows and columns swapped", "%w_tiles[%n, %k]", "%w_tiles[%k, %n]"),
    ("kernel @logits", "logits", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("kernel @logits_split_n", "logits_split_n", "the right part's weights are the left one's", "%w_right[%right, %k]", "%w_right[%left, %k]", "bf16"),
    ("kernel @logits_split_n", "logits_split_n", "the right part overwrites the left one", "%out_right, %m, %left, %right)", "%out_right, %m, %left, %left)", "bf16"),
    ("fragment @columns_from", "embedding_rows", "every tile's columns are the first", "addi %firsts, %lane_1", "maxi %lane_1, %lane_1 signed"),
    ("fragment @inside", "embedding_rows", "the columns that are not there", "cmpi less_than %columns", "cmpi greater_than_or_equal %columns"),
    ("fragment @width_of", "layernorm_two_pass", "the tile's width", "%width = itof %C", "%BC = constant <i32: BC> : !int\n  %width = itof %BC"),
    ("fragment @row_sums", "layernorm_two_pass", "the largest for the sum", "addf %a, %b", "maxf %a, %b"),
    ("fragment @load_line", "layernorm_two_tiles", "every tile has the first columns'", "%tile, %token = load_view_tko weak %tiles[%j]", "%zero = constant <i32: 0> : !int\n  %tile, %token = load_view_tko weak %tiles[%zero]", "bf16"),
    ("fragment @store_rows", "layernorm_two_pass", "rows and columns of the output swapped", "%tiles[%n, %j]", "%tiles[%j, %n]"),
    ("fragment @load_rows", "layernorm_two_pass", "rows and columns of the input swapped", "%tiles[%n, %j]", "%tiles[%j, %n]"),
    ("fragment @inverse_deviation", "layernorm_two_pass", "no epsilon", "rsqrt %shifted", "rsqrt %variance"),
    ("fragment @normed", "layernorm_two_pass", "no bias", "fma %normal, %weight, %bias", "mulf %normal, %weight"),
    ("fragment @two_pass", "layernorm_two_pass", "padding counts in the variance", "select %inside, %difference, %nothing", "select %inside, %difference, %difference"),
    ("fragment @two_pass", "layernorm_two_pass", "variance of the values, not the deviations", "mulf %deviation, %deviation", "mulf %value, %value"),
    ("fragment @sums_and_squares", "layernorm_single_pass", "squares are not added up", "addf %square_a, %square_b", "maxf %square_a, %square_b", "bf16"),
    ("fragment @one_pass", "layernorm_single_pass", "the mean of the squares for the variance", "maxf %spread, %least", "maxf %mean_square, %least", "bf16"),
    ("kernel @layernorm", "layernorm", "no epsilon", "sqrt %shifted", "sqrt %variance"),
    ("kernel @layernorm", "layernorm", "padding counts in the variance", "select %inside, %deviation, %nothing", "select %inside, %deviation, %deviation"),
    ("kernel @layernorm", "layernorm", "the last, partial tile is left out", "divi %C, %BC signed rounding<positive_inf>", "divi %C, %BC signed rounding<zero>"),
    ("kernel @layernorm", "layernorm", "divides by the tile's width", "%width = itof %C", "%width = itof %BC"),
    ("kernel @layernorm_two_pass", "layernorm_two_pass", "the bias is the gain", "%inverse, %weight, %bias)", "%inverse, %weight, %weight)"),
    ("skeleton @resident_norm", "layernorm_two_pass", "the gain is the bias", "%weight = call @for_each_row(%w)", "%weight = call @for_each_row(%b)"),
    ("kernel @layernorm_single_pass", "layernorm_single_pass", "padding counts", "select %inside, %from_first, %nothing", "select %inside, %from_first, %from_first", "bf16"),
    ("kernel @layernorm_single_pass", "layernorm_single_pass", "sums of the values, not of the differences from the first", "subf %value, %firsts", "maxf %value, %value", "f16"),
    ("fragment @from_first", "layernorm_two_tiles", "the values, not the differences from the first", "subf %value, %firsts", "maxf %value, %value", "f16"),
    ("fragment @norm_part", "layernorm_two_tiles", "the mean stays", "subf %difference, %means", "maxf %difference, %difference", "bf16"),
    ("kernel @layernorm_two_tiles", "layernorm_two_tiles", "the right part is not in the mean", "addf %sum_left, %sum_right", "maxf %sum_left, %sum_left", "bf16"),
    ("kernel @layernorm_two_tiles", "layernorm_two_tiles", "the right part overwrites the left one", "%out_right, %n, %right)", "%out_right, %n, %zero)", "bf16"),
    ("skeleton @residual_norm", "residual_layernorm", "the residual is forgotten", "addf %x_f32, %bias", "maxf %bias, %bias"),
    ("skeleton @residual_norm", "residual_layernorm", "the residual stays as it was", "weak %rounded, %x_stores", "weak %x_tile, %x_stores"),
    ("kernel @residual_layernorm", "residual_layernorm", "the last parts are left out", "divi %Z, %BZ signed rounding<positive_inf>", "divi %Z, %BZ signed rounding<zero>"),
    ("kernel @residual_layernorm", "residual_layernorm", "only the last parts are added", "addf %so_far, %line", "addf %biased, %line"),
    ("fragment @load_partial", "residual_layernorm_four", "the first part four times", "[%z, %n, %zero]", "[%zero, %n, %zero]"),
    ("fragment @add_partial", "residual_layernorm_four", "the last part alone", "addf %sum, %line", "maxf %line, %line"),
    ("kernel @residual_layernorm_four", "residual_layernorm_four", "the last part alone", "@add_partial(%sum.Z-1, ", "@add_partial(%sum.0, "),
    ("fragment @add", "embedding", "the position is forgotten", "addf %word_f32, %place_f32", "addf %word_f32, %word_f32"),
    ("fragment @lookup", "embedding", "the position is looked up by token", "%position = reshape %position_tile", "%position = reshape %token_tile"),
    ("fragment @add_tiles", "embedding", "every tile of the position is the first row's", "%wpe[%position, %j]", "%wpe[%j, %j]"),
    ("fragment @gather", "embedding_rows", "rows lie side by side", "muli %index_wide, %steps", "maxi %index_wide, %index_wide signed"),
    ("kernel @embedding", "embedding", "rows and columns of the output swapped", "%out_tiles[%n, %j]", "%out_tiles[%j, %n]"),
    ("kernel @embedding_rows", "embedding_rows", "the second tile of columns is the first", "%first = muli %j, %BC", "%first = muli %n, %BC"),
    ("kernel @embedding_rows", "embedding_rows", "the position is looked up by token", "%wpe_row, %position", "%wpe_row, %token"),
    ("kernel @embedding_centred", "embedding_centred", "the mean stays", "subf %both, %means", "maxf %both, %both"),
    ("kernel @embedding_centred", "embedding_centred", "columns past the width count", "select %inside, %deviation, %nothing", "select %inside, %deviation, %deviation"),
    ("kernel @embedding_centred", "embedding_centred", "the squares of the last tile alone", "fma %centred, %centred, %squares_acc", "mulf %centred, %centred"),
    ("kernel @embedding_centred", "embedding_centred", "the other parts are not set", "(%one to %Z, step %one)", "(%Z to %Z, step %one)"),
    ("fragment @store_part", "embedding_centred_rows", "rows and parts of the squares swapped", "%tiles[%z, %n]", "%tiles[%n, %z]"),
    ("kernel @embedding_centred_rows", "embedding_centred_rows", "the mean stays", "subf %sum, %means", "maxf %sum, %sum"),
    ("kernel @embedding_centred_rows", "embedding_centred_rows", "columns past the width count", "select %mask, %deviation, %zeros", "select %mask, %deviation, %deviation"),
    ("kernel @embedding_centred_rows", "embedding_centred_rows", "the squares are not squared", "mulf %centred, %centred", "maxf %centred, %centred"),
    ("softmax !in_part", "softmax_rows", "padding with zero", "padding_value = neg_inf", "padding_value = zero", "bf16"),
    ("fragment @load", "softmax", "rows and columns of x swapped", "%tiles[%m, %j]", "%tiles[%j, %m]"),
    ("fragment @exponential", "softmax", "natural exponent by exp2", "<f32: 1.4426950408889634>", "<f32: 1.0>"),
    ("fragment @inverse_sum", "softmax", "one for all", "divf %unit, %column", "divf %unit, %unit"),
    ("kernel @softmax", "softmax", "only the last tile is summed", "fma %sum_old, %rescale, %power", "maxf %power, %power"),
    ("kernel @softmax", "softmax", "a lane's sum is not rescaled", "fma %sum_old, %rescale, %power", "addf %sum_old, %power"),
    ("kernel @softmax", "softmax", "the lanes are added as they are", "mulf %sums, %lane_rescale", "maxf %sums, %sums"),
    ("kernel @softmax_rows", "softmax_rows", "the values for the exponentials", "mulf %power, %inverse", "mulf %value, %inverse", "bf16"),
    ("fragment @tile_exponential", "softmax_resident", "the other way round", "@exponential(%value, %largest)", "@exponential(%largest, %value)", "bf16"),
    ("fragment @store_share", "softmax_resident", "not divided by the sum", "mulf %power, %inverse", "maxf %power, %power", "bf16"),
    ("kernel @softmax_resident", "softmax_resident", "the last tile is not summed", "@inverse_sum<R = 1>(%sum.6)", "@inverse_sum<R = 1>(%sum.5)", "bf16"),
    ("kernel @softmax_resident", "softmax_resident", "every tile in the first one's place", "%out_tiles, %m, %j.I)", "%out_tiles, %m, %j.0)", "bf16"),
    ("fragment @load_vectors", "softmax_contiguous", "the vectors of the next row too", "cmpi less_than %index", "cmpi less_than_or_equal %index", "bf16"),
    ("fragment @line_scaled", "softmax_contiguous", "natural exponent by exp2", "<f32: 1.4426950408889634>", "<f32: 1.0>", "bf16"),
    ("fragment @line_exponential", "softmax_contiguous", "the exponent for the power", "exp2 %scaled flush_to_zero", "maxf %scaled, %scaled", "bf16"),
    ("fragment @store_vectors", "softmax_contiguous", "natural exponent by exp2", "<f32: 1.4426950408889634>", "<f32: 1.0>", "bf16"),
    ("fragment @line_sum", "softmax_contiguous", "the largest for the sum", "addf %a, %b", "maxf %a, %b", "bf16"),
    ("fragment @load_edge", "softmax_contiguous", "zeros for what is not there", "<f32: 0xFF800000>", "<f32: 0.0>", "bf16"),
    ("fragment @store_line", "softmax_contiguous", "not divided by the sum", "subf %scaled, %scale", "maxf %scaled, %scaled", "bf16"),
    ("kernel @softmax_contiguous", "softmax_contiguous", "the row before is in the first vector", "greater_than_or_equal %head_index, %start_8", "greater_than_or_equal %head_index, %first_8", "bf16"),
    ("kernel @softmax_contiguous", "softmax_contiguous", "the row behind is in the last vector", "less_than %tail_index, %end_8", "less_than %head_index, %end_8", "bf16"),
    ("kernel @softmax_contiguous", "softmax_contiguous", "the last vector is not in the sum", "addf %head_power, %tail_power", "addf %head_power, %head_power", "bf16"),
    ("kernel @softmax_contiguous", "softmax_contiguous", "the second tile is read twelve times", "%at.I = addi %at.I-1, %BC", "%at.I = addi %at.0, %BC", "bf16"),
    ("kernel @gelu", "gelu", "tanh of the unscaled argument", "tanh %inner", "tanh %slope"),
    ("kernel @gelu", "gelu", "rows and columns of the blocks swapped", "%n, %m, %unused = get_tile_block_id", "%m, %n, %unused = get_tile_block_id"),
    ("fragment @first_of", "argmax_parts", "the last of equals", "mini %a, %b signed", "maxi %a, %b signed"),
    ("fragment @max_in_rows", "next_token", "the least for the largest", "maxf %a, %b", "minf %a, %b"),
    ("fragment @max_or_nan_in_rows", "argmax_parts", "the least for the largest", "maxf %a, %b", "minf %a, %b"),
    ("kernel @argmax_parts", "argmax_parts", "the place in the part, not in the row", "addi %first_full, %lane_line", "addi %lane_line, %lane_line"),
    ("kernel @next_token", "next_token", "the last of equals", "cmpf greater_than ordered %largest,", "cmpf greater_than_or_equal ordered %largest,"),
    ("kernel @next_token", "next_token", "the last, partial tile is left out", "divi %Z, %BZ signed rounding<positive_inf>", "divi %Z, %BZ signed rounding<zero>"),
    ("kernel @next_token", "next_token", "the position stays", "addi %position, %unit", "muli %position, %unit"),
    ("kernel @kv_append", "kv_append", "off by one", "%place = addi %start, %t", "%place = addi %start, %zero"),
    ("kernel @kv_append", "kv_append", "k into both caches", "store_view_tko weak %v_tile", "store_view_tko weak %k_tile"),
    ("next_token !x_part", "argmax_parts", "padding with zero", "padding_value = neg_inf", "padding_value = zero"),
    ("next_token !values_part", "next_token", "padding with zero", "padding_value = neg_inf", "padding_value = zero"),
    ("fragment @scale_log2", "attention", "the scale is squared", "mulf %scale, %log2e", "mulf %scale, %scale"),
    ("fragment @load_kv", "attention", "every head is the first", "[%b, %j, %h, %zero]", "[%b, %j, %zero, %zero]"),
    ("fragment @load_kv_directly", "attention_fixed_max", "every tile is the first", "[%b, %j, %h, %zero]", "[%b, %zero, %h, %zero]", "bf16"),
    ("fragment @causal", "attention", "off-by-one mask", "less_than_or_equal %k_positions, %q_positions", "less_than %k_positions, %q_positions"),
    ("fragment @causal", "attention", "no mask", "select %visible, %scores, %hidden", "select %visible, %scores, %scores"),
    ("fragment @online_softmax", "attention", "the sum is not rescaled", "fma %sum_old, %rescale, %tile_sum", "addf %sum_old, %tile_sum"),
    ("fragment @online_softmax", "attention", "the maximum in natural units", "mulf %top_column, %scale_column", "maxf %top_column, %top_column"),
    ("fragment @add_values", "attention", "the accumulator is not rescaled", "mulf %acc, %rescale_full", "maxf %acc, %acc"),
    ("fragment @seen_tiles", "attention", "every tile has the first one's values", "(%v_tiles, %b, %j, %h)", "(%v_tiles, %b, %first, %h)"),
    ("fragment @masked_tiles", "attention", "begins anew", "%sum_old = %sum_start", "%sum_old = %max_start"),
    ("skeleton @attention", "attention", "queries start at 0, not at S - T", "subi %S, %T", "subi %T, %T"),
    ("skeleton @attention", "attention", "the blocks count from 0, not from the end", "%i = subi %last, %turn", "%i = subi %tiles, %turn"),
    ("skeleton @attention", "attention", "every group of sequences is the first", "%b = addi %before, %in_group", "%b = addi %zero, %in_group"),
    ("skeleton @attention", "attention", "groups are one sequence too short", "muli %group, %GROUP", "muli %group, %in_group"),
    ("skeleton @attention", "attention", "a group's turns go on in the next", "remi %turn_of_group, %tiles", "remi %turn_of_group, %turn_of_group"),
    ("skeleton @attention", "attention", "the diagonal's key tile is left out", "%behind = addi %first, %BT", "%behind = addi %first, %zero"),
    ("kernel @attention", "attention", "one key tile too many is unmasked", "{ yield %seen_by_first : !int }", "{\n    %BT = constant <i32: BT> : !int\n    %too_many = addi %first, %BT : !int\n    yield %too_many : !int\n  }"),
    ("kernel @attention", "attention", "the second loop starts anew", "%max_seen, %sum_seen, %acc_seen)", "%max_seen, %sum_start, %acc_seen)"),
    ("kernel @attention_fixed_max", "attention_fixed_max", "relative to nothing", "fma %scores, %scale_full, %fixed_below", "mulf %scores, %scale_full", "bf16"),
    ("kernel @attention_fixed_max", "attention_fixed_max", "the other tiles begin anew", "%sum_old = %sum_masked", "%sum_old = %sum_start", "bf16"),
    ("kernel @attention_fixed_max", "attention_fixed_max", "the second walk's result is not taken", "yield %sum_again, %acc_again :", "yield %sum_fast, %acc_fast :", "bf16"),
    ("kernel @attention_fixed_max", "attention_fixed_max", "the second walk sees the masked tiles alone", "%max, %sum_again, %acc_again = for %j in (%zero to", "%max, %sum_again, %acc_again = for %j in (%unmasked to", "bf16"),
    ("fragment @fits", "attention_fixed_max", "what is not finite fits", "cmpf less_than ordered %total", "cmpf less_than unordered %total", "bf16"),
    ("fragment @load_position", "decode_attention", "every sequence's position is the first one's", "%tile, %read = load_view_tko weak %tiles[%b]", "%zero = constant <i32: 0> : !int\n  %tile, %read = load_view_tko weak %tiles[%zero]"),
    ("fragment @load_head", "decode_attention", "every head is the first", "[%b, %h, %zero]", "[%b, %zero, %zero]"),
    ("fragment @load_new", "decode_attention_one_head", "the key is stored as value", "%value = reshape %v_tile", "%value = reshape %k_tile", "bf16"),
    ("fragment @append", "decode_attention", "every head's row is the first's", "[%b, %position, %h, %zero]", "[%b, %position, %zero, %zero]"),
    ("fragment @store_span", "decode_attention", "maximum and sum change places", "%h, %z, %zero, %max)", "%h, %z, %one, %max)"),
    ("fragment @store_partial", "decode_attention", "every span is the first", "[%b, %h, %z, %zero]", "[%b, %h, %zero, %zero]"),
    ("fragment @store_stat", "decode_attention", "sequences and heads swapped", "[%b, %h, %z, %which]", "[%h, %b, %z, %which]"),
    ("fragment @in_span", "decode_attention", "the first position of a span is not in it", "cmpi less_than_or_equal %first", "cmpi less_than %first"),
    ("fragment @in_span", "decode_attention", "every span before the new position appends", "andi %begun, %not_over", "andi %begun, %begun"),
    ("fragment @masks", "decode_attention", "the new position is hidden", "%written = cmpi less_than_or_equal", "%written = cmpi less_than"),
    ("fragment @masks", "decode_attention_swap_ab", "the new key is an older one", "%older = cmpi less_than", "%older = cmpi less_than_or_equal", "bf16"),
    ("fragment @with_new", "decode_attention", "the old row in the new place", "select %new_full, %row_full, %kv", "select %new_full, %kv, %kv"),
    ("fragment @written", "decode_attention", "0 times what lies behind the position", "select %there_full, %values, %nothing", "select %there_full, %values, %values"),
    ("kernel @decode_attention", "decode_attention", "what lies behind the position is seen", "select %visible, %products, %hidden", "select %visible, %products, %products"),
    ("kernel @decode_attention", "decode_attention", "the key into both caches", "(%v_cache_view, %b, %position, %h, %value, ", "(%v_cache_view, %b, %position, %h, %key, "),
    ("kernel @decode_attention", "decode_attention", "tiles begin with the first one of the cache", "%full_from = divi %first, %BS", "%full_from = divi %zero, %BS"),
    ("fragment @column_scores", "decode_attention_swap_ab", "the scale is forgotten", "mulf %products, %scale", "maxf %products, %products", "bf16"),
    ("fragment @column_powers", "decode_attention_swap_ab", "the maximum is not taken off", "subf %scores, %max_full", "maxf %scores, %scores", "bf16"),
    ("fragment @column_sums", "decode_attention_swap_ab", "the largest weight for their sum", "addf %a, %b", "maxf %a, %b", "bf16"),
    ("fragment @add_column_values", "decode_attention_unsplit", "the last tile alone", "%next = mmaf %v_turned, %rounded, %acc", "%empty = constant <f32: 0.0> : !c_acc\n  %next = mmaf %v_turned, %rounded, %empty", "bf16"),
    ("fragment @new_scores", "decode_attention_swap_ab", "the new score is not scaled", "mulf %product_1x1, %scale", "maxf %product_1x1, %product_1x1", "bf16"),
    ("fragment @new_scores", "decode_attention_swap_ab", "the new key is not seen", "select %there_full, %new_full, %least", "select %there_full, %least, %least", "bf16"),
    ("fragment @older_or", "decode_attention_swap_ab", "older keys are not seen", "select %older_full, %scores, %others", "select %older_full, %others, %others", "bf16"),
    ("fragment @masked_tile", "decode_attention_swap_ab", "an empty span has weight", "select %weighing_full, %powers, %nothing", "select %weighing_full, %powers, %powers", "bf16"),
    ("fragment @masked_tile", "decode_attention_swap_ab", "values past the new position count", "select %older_full, %v, %new_or_nothing", "select %older_full, %v, %v", "bf16"),
    ("fragment @store_span_column", "decode_attention_swap_ab", "maximum and sum change places", "%acc_tile, %max_1x1, %sum_1x1)", "%acc_tile, %sum_1x1, %max_1x1)", "bf16"),
    ("skeleton @decode_looped", "decode_attention_unsplit", "the accumulator is not rescaled", "mulf %acc_old, %rescale_full", "maxf %acc_old, %acc_old", "bf16"),
    ("skeleton @decode_looped", "decode_attention_unsplit", "the sum is not rescaled", "fma %sum_old, %rescale, %tile_sum", "addf %sum_old, %tile_sum", "bf16"),
    ("kernel @decode_attention_unsplit", "decode_attention_unsplit", "not divided by the sum", "divf %unit, %sum", "divf %unit, %unit", "bf16"),
    ("kernel @decode_attention_unsplit", "decode_attention_unsplit", "the tile before the new position's comes first", "yield %zero, %current : !int, !int", "%one = constant <i32: 1> : !int\n    %before = subi %current, %one : !int\n    %last = maxi %before, %zero signed : !int\n    yield %zero, %last : !int, !int", "bf16"),
    ("kernel @decode_attention_looped", "decode_attention_looped", "every span ends at the new position", "mini %current, %last_of_span signed", "maxi %current, %last_of_span signed", "bf16"),
    ("kernel @decode_attention_looped", "decode_attention_looped", "an empty span takes the tile of the new position", "maxi %nearer, %first signed", "mini %nearer, %nearer signed", "bf16"),
    ("skeleton @decode_one_tile", "decode_attention_swap_ab", "every span begins with the first", "%first = muli %z, %SPAN", "%first = muli %one, %SPAN", "bf16"),
    ("kernel @decode_attention_swap_ab", "decode_attention_swap_ab", "no span is masked", "cmpi less_than_or_equal %behind, %position", "cmpi less_than_or_equal %first, %position", "bf16"),
    ("kernel @decode_attention_swap_ab", "decode_attention_swap_ab", "the first position of a span is not ours", "%ours = cmpi less_than_or_equal %first", "%ours = cmpi less_than %first", "bf16"),
    ("kernel @decode_attention_one_head", "decode_attention_one_head", "the key is stored as value", "(%v_cache_view, %b, %position, %h, %value, ", "(%v_cache_view, %b, %position, %h, %key, ", "bf16"),
    ("fragment @attend_by_element", "decode_attention_one_head", "the scale is forgotten", "mulf %dots, %scale_full", "maxf %dots, %dots", "bf16"),
    ("fragment @attend_by_element", "decode_attention_one_head", "an empty span has weight", "select %there, %powers, %nothing", "select %there, %powers, %powers", "bf16"),
    ("skeleton @merge", "merge_attention", "not divided by the sum", "divf %unit, %sum", "divf %unit, %unit"),
    ("fragment @load_spans", "merge_attention", "the maxima for the sums", "%stats[%b, %h, %j, %one]", "%stats[%b, %h, %j, %zero]"),
    ("fragment @maximum", "merge_attention", "padding is a maximum", "select %there, %maxima, %least", "select %there, %maxima, %maxima"),
    ("fragment @weighted", "merge_attention", "the sums are not weighed", "mulf %sums, %weights", "maxf %sums, %sums"),
    ("fragment @weighted", "merge_attention", "the partial results are not weighed", "mulf %partials, %weights_full", "maxf %partials, %partials"),
    ("kernel @merge_attention", "merge_attention", "the accumulator is not rescaled", "fma %acc_old, %rescale_full, %tile_acc", "addf %acc_old, %tile_acc"),
    ("kernel @merge_attention", "merge_attention", "the last, partial tile is left out", "divi %Z, %BZ signed rounding<positive_inf>", "divi %Z, %BZ signed rounding<zero>"),
    ("kernel @merge_attention_single_pass", "merge_attention_single_pass", "as many spans as heads", "@in_all_lanes(%Z)", "@in_all_lanes(%H)", "bf16"),
    ("kernel @token_embedding", "token_embedding", "the row number for the token", "%wte_tiles[%token, %j]", "%wte_tiles[%n, %j]"),
    ("kernel @token_embedding", "token_embedding", "only the first columns", "%out_tiles[%n, %j]", "%out_tiles[%j, %n]"),
    ("fragment @inverse_root", "rmsnorm", "no epsilon", "rsqrt %shifted", "rsqrt %mean"),
    ("fragment @inverse_root", "rmsnorm", "the sum of squares for their mean", "addf %mean, %epsilons", "addf %square_sum, %epsilons"),
    ("fragment @scaled", "rmsnorm", "the weight is forgotten", "mulf %normal, %weight", "mulf %normal, %inverses"),
    ("kernel @rmsnorm", "rmsnorm", "the last, partial tile is left out", "divi %C, %BC signed rounding<positive_inf>", "divi %C, %BC signed rounding<zero>"),
    ("kernel @quantize_rows", "quantize_rows", "the largest, but not the largest magnitude", "%magnitude = absf %value", "%magnitude = subf %value, %value", "bf16"),
    ("kernel @quantize_rows", "quantize_rows", "the range of another 8-bit type", "<f32: 448.0>", "<f32: 57344.0>", "bf16"),
    ("kernel @quantize_rows", "quantize_rows", "a row of zeros has a scale of zero", "<f32: 0x00800000>", "<f32: 0.0>", "bf16"),
    ("kernel @quantize_rows", "quantize_rows", "multiplied by the scale", "divf %value, %scales", "mulf %value, %scales", "bf16"),
    ("skeleton @persistent_f8", "linear_f8", "a scale is dropped", "fma %half_scaled, %by_column, %bias_rows", "addf %half_scaled, %bias_rows", "bf16"),
    ("skeleton @persistent_f8", "linear_f8", "a scale is applied twice", "mulf %product, %by_row", "mulf %by_row, %by_row", "bf16"),
    ("skeleton @persistent_f8", "linear_f8", "the scales of another tile's rows", "%row_scales[%m]", "%row_scales[%n]", "bf16"),
    ("skeleton @persistent_f8", "linear_f8", "only the last step is kept", "addf %acc, %part", "addf %part, %empty", "bf16"),
    ("kernel @linear_gelu_f8", "linear_gelu_f8", "not halved", "<f32: 0.5>", "<f32: 1.0>", "bf16"),
    ("kernel @linear_residual_f8", "linear_residual_f8", "another tile's residual", "%residual_tiles[%m, %n]", "%residual_tiles[%n, %m]", "bf16"),
    ("kernel @rmsnorm", "rmsnorm", "the sum for the sum of squares", "fma %value, %value, %acc", "addf %value, %acc"),
    ("kernel @rmsnorm_resident", "rmsnorm_resident", "the sum for the sum of squares", "mulf %value, %value", "addf %value, %value"),
    ("kernel @matmul", "matmul", "rows and columns of the output swapped", "(%product, %out_tiles, %m, %n)", "(%product, %out_tiles, %n, %m)"),
    ("kernel @matmul_residual", "matmul_residual", "another tile's residual", "%residual_tiles[%m, %n]", "%residual_tiles[%n, %m]"),
    ("kernel @matmul_residual", "matmul_residual", "the residual is forgotten", "@store_after(%value, ", "@store_after(%product, "),
    ("fragment @gated", "swiglu", "not halved", "<f32: 0.5>", "<f32: 1.0>"),
    ("fragment @gated", "swiglu", "a sigmoid without its factor", "fma %h, %tanh, %h", "fma %half, %tanh, %half"),
    ("fragment @pair_step", "swiglu", "both products are of one weight", "%up_tiles[%k, %n]", "%gate_tiles[%k, %n]"),
    ("kernel @swiglu", "swiglu", "gate and up swapped", "@gated(%gate, %up)", "@gated(%up, %gate)"),
    ("kernel @swiglu", "swiglu", "one accumulator is dropped", "continue %gate_next, %up_next", "continue %gate_next, %up_so_far"),
    ("kernel @swiglu", "swiglu", "each block makes one tile only", "(%block to %tiles, step %blocks)", "(%block to %tiles, step %tiles)", "bf16"),
    ("fragment @turn", "rope_append", "turned the other way", "subf %x1_c, %x2_s", "addf %x1_c, %x2_s"),
    ("fragment @turn", "rope_append", "sine for cosine", "%x2_c = mulf %x2, %c", "%x2_c = mulf %x2, %s"),
    ("skeleton @rope_append", "rope_append", "angles of the place in the text, not in the cache", "%cos_tiles[%place, %zero]", "%cos_tiles[%t, %zero]"),
    ("skeleton @rope_append", "rope_append", "every sequence begins where the first does", "%position_tiles[%b]", "%position_tiles[%zero]"),
    ("skeleton @rope_append", "rope_append", "heads past the first tile are forgotten", "(%zero to %steps, step %one)", "(%zero to %one, step %one)"),
    ("skeleton @rope_append", "rope_append", "the second half of the key is the first one's", "%k_cache_tiles[%b, %place, %g, %one]", "%k_cache_tiles[%b, %place, %g, %zero]"),
    ("kernel @rope_append", "rope_append", "the halves of a key swapped", "yield %x1, %x2", "yield %x2, %x1"),
    ("fragment @normed_heads", "norm_rope_append", "the second half's squares are forgotten", "fma %x2, %x2, %squares1", "addf %squares1, %squares1"),
    ("fragment @normed_heads", "norm_rope_append", "the first half's weights for both", "@load_line<BC = E>(%weight, %one)", "@load_line<BC = E>(%weight, %zero)"),
    ("kernel @norm_rope_append", "norm_rope_append", "the queries' weights for the keys", "%k_weight_view", "%q_weight_view"),
    ("fragment @as_they_are", "rope_append", "the first half twice", "ftof %second", "ftof %first"),
    ("kernel @grouped_attention", "grouped_attention", "rows go through the queries of a head first", "divi %lanes, %heads", "remi %lanes, %heads"),
    ("kernel @grouped_attention", "grouped_attention", "queries stand at the start of the keys", "subi %S, %T", "subi %S, %S"),
    ("kernel @grouped_attention", "grouped_attention", "heads past the first tile are forgotten", "%part = remi %head_part, %parts", "%part = divi %zero, %parts"),
    ("fragment @written_keys", "grouped_decode_attention", "the token does not see itself", "cmpi less_than_or_equal %column", "cmpi less_than %column"),
    ("fragment @last_tile", "grouped_decode_attention", "values behind the token count as zero times what they hold", "select %written_full, %v, %nothing", "select %written_full, %v, %v"),
    ("fragment @last_tile", "grouped_decode_attention", "the mask is forgotten", "select %visible, %products, %hidden", "select %visible, %products, %products"),
    ("skeleton @grouped_decode", "grouped_decode_attention", "the first heads for all", "%part = remi %head_part, %parts", "%part = divi %zero, %parts"),
    ("skeleton @grouped_decode", "grouped_decode_attention", "only the last tile", "%from, %to, %max_start", "%to, %to, %max_start"),
    ("kernel @grouped_decode_attention", "grouped_decode_attention", "each block walks from the first span on", "%from = divi %first, %BS", "%from = divi %z, %BS"),
    ("kernel @grouped_decode_attention", "grouped_decode_attention", "a token in the last place of a span is in none", "cmpi less_than %position, %behind", "cmpi less_than %position, %full"),
    ("kernel @grouped_decode_attention_unsplit", "grouped_decode_attention_unsplit", "not divided by the sum", "mulf %acc, %inverse_full", "mulf %acc, %acc"),
    ("kernel @grouped_decode_attention_unsplit", "grouped_decode_attention_unsplit", "another head's result", "%out_tiles[%b, %g, %part, %zero]", "%out_tiles[%g, %b, %part, %zero]"),
))  # fmt: skip
