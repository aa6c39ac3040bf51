"""Parts without a bug of their own, and why."""

from __future__ import annotations

UNTESTED = {
    part: why
    for why, parts in {
        "it changes a type or a shape only: what is wrong in it does not verify": (
            "fragment @rounded", "fragment @first_columns", "fragment @for_rows", "fragment @for_elements",
            "fragment @for_each_row", "fragment @sum_in_rows", "fragment @sum_in_columns", "fragment @index_line",
            "fragment @scores", "fragment @query_columns", "fragment @scale_columns", "fragment @in_all_lanes",
            "fragment @turned_back", "fragment @in_f32",
        ),
        "it gives what it is given": ("fragment @unscaled", "fragment @identity", "fragment @scaled_alone"),
        "it adds nothing to its skeleton": (
            "kernel @linear_residual", "kernel @linear_residual_split_n", "kernel @linear_f8", "kernel @linear_f8_whole", "kernel @linear_i8", "kernel @kv_append",
            "kernel @rope_append", "kernel @norm_rope_append", "kernel @grouped_decode_attention", "kernel @rms_swiglu_small_m", "kernel @rms_swiglu_gemv",
            "kernel @linear_weight_f8", "kernel @linear_gelu_weight_f8", "kernel @linear_residual_weight_f8",
            "kernel @swiglu_weight_f8", "kernel @linear_weight_f8_one_row", "kernel @linear_gelu_weight_f8_one_row",
            "kernel @linear_residual_weight_f8_one_row", "kernel @swiglu_weight_f8_one_row", "skeleton @rows_over_f8",
            "skeleton @one_row_over_f8", "kernel @linear_weight_i8", "kernel @linear_gelu_weight_i8",
            "kernel @linear_residual_weight_i8", "kernel @swiglu_weight_i8", "kernel @linear_weight_i8_one_row",
            "kernel @linear_gelu_weight_i8_one_row", "kernel @linear_residual_weight_i8_one_row",
            "kernel @swiglu_weight_i8_one_row", "skeleton @rows_over_i8", "skeleton @one_row_over_i8",
            "fragment @one_row", "kernel @linear_weight_f8_ahead", "kernel @linear_weight_i8_ahead",
            "kernel @linear_gelu_weight_f8_ahead", "kernel @linear_gelu_weight_i8_ahead",
            "kernel @linear_split_k_weight_f8", "kernel @linear_split_k_weight_i8",
            "kernel @linear_split_k_weight_f8_ahead", "kernel @linear_split_k_weight_i8_ahead",
            "kernel @layernorm_linear_weight_f8", "kernel @layernorm_linear_weight_i8",
            "kernel @layernorm_linear_gelu_weight_f8", "kernel @layernorm_linear_gelu_weight_i8",
            "kernel @layernorm_linear_weight_f8_one_row", "kernel @layernorm_linear_weight_i8_one_row",
            "kernel @layernorm_linear_gelu_weight_f8_one_row", "kernel @layernorm_linear_gelu_weight_i8_one_row",
            "kernel @linear_gelu_f8_to_f8", "kernel @linear_gelu_f8_to_f8_whole", "kernel @linear_residual_f8",
            "kernel @linear_residual_f8_whole", "kernel @linear_residual_f8_in_runs",
            "kernel @linear_residual_weight_f8_ahead", "kernel @linear_residual_weight_i8_ahead",
            "kernel @layernorm_linear_weight_f8_ahead", "kernel @layernorm_linear_weight_i8_ahead",
            "kernel @layernorm_linear_gelu_weight_f8_ahead", "kernel @layernorm_linear_gelu_weight_i8_ahead",
            "kernel @linear_residual_squares_small_m", "kernel @linear_residual_squares_swap_ab",
            "kernel @linear_residual_squares_gemv",
        ),
        "it orders accesses that the interpreter makes in program order": ("fragment @after_all", "fragment @after_last",
            "fragment @after_both", "fragment @after_last_of_both",
        ),
        "any value that is no less serves as well": ("fragment @largest", "fragment @line_maximum", "fragment @max_in_columns"),
    }.items()
    for part in parts
}  # fmt: skip
