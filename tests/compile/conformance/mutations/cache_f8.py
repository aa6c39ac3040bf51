"""Bugs in a cache in 8-bit floats."""

from __future__ import annotations

from .mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = tuple(Mutation(*row) for row in (
    ("fragment @store_scale", "kv_append_f8", "the scale of another position", "%tiles[%b, %g, %at]", "%tiles[%b, %g, %g]", "bf16"),
    ("fragment @append_rounded", "kv_append_f8", "divided by nothing", "%rounded = ftof %scaled", "%rounded = ftof %value", "bf16"),
    ("fragment @append_rounded", "rope_append_f8", "the value at another place", "%tiles[%b, %at, %g, %zero]", "%tiles[%b, %zero, %g, %zero]", "bf16"),
    ("fragment @append_rounded_halves", "rope_append_f8", "the scale of the first half for both", "maxf %largest1, %largest2", "maxf %largest1, %largest1", "bf16"),
    ("fragment @append_rounded_halves", "norm_rope_append_f8", "the halves swapped", "reshape %rounded1", "reshape %rounded2", "bf16"),
    ("kernel @kv_append_f8", "kv_append_f8", "the scales of keys for values", "%v_cache_view, %v_scales_view", "%v_cache_view, %k_scales_view", "bf16"),
    ("kernel @rope_append_f8", "rope_append_f8", "the second half twice", "@append_rounded_halves(%k1, %k2", "@append_rounded_halves(%k2, %k2", "bf16"),
    ("kernel @norm_rope_append_f8", "norm_rope_append_f8", "the scales of keys for values", "%v_cache, %v_scales_view", "%v_cache, %k_scales_view", "bf16"),
    ("fragment @load_narrow", "kv_from_f8", "the scales of another head", "%scale_tiles[%b, %g, %j]", "%scale_tiles[%b, %b, %j]", "bf16"),
    ("fragment @scales_in_row", "grouped_decode_attention_f8", "scales behind the token count as zero times what they hold", "select %written, %row, %none", "select %written, %row, %row", "bf16"),
    ("fragment @narrow_step", "grouped_decode_attention_f8", "the mask is forgotten", "select %visible, %scaled, %hidden", "select %visible, %scaled, %scaled", "bf16"),
    ("fragment @narrow_step", "grouped_decode_attention_f8", "the scales of keys for values", "mulf %value_row, %inverse_row", "mulf %key_row, %inverse_row", "bf16"),
    ("fragment @narrow_step", "grouped_decode_attention_f8", "values behind the token count as zero times what they hold", "select %written_full, %v, %nothing", "select %written_full, %v, %v", "bf16"),
    ("fragment @narrow_step", "grouped_decode_attention_f8", "the largest scale is not taken back", "fma %made, %top_full, %rescaled", "addf %made, %rescaled", "bf16"),
    ("kernel @grouped_decode_attention_f8", "grouped_decode_attention_f8", "the queries' factor is left out", "mulf %unit_column, %scale_column", "mulf %scale_column, %scale_column", "bf16"),
    ("kernel @grouped_decode_attention_f8", "grouped_decode_attention_f8", "the token's tile is not masked", "%last, %written,", "%last, %everything,", "bf16"),
    ("fragment @load_narrow_directly", "grouped_decode_attention_f8_by_element", "the scales of another head", "%scale_tiles[%b, %g, %j]", "%scale_tiles[%b, %b, %j]", "bf16"),
    ("fragment @element_step", "grouped_decode_attention_f8_by_element", "the mask is forgotten", "select %written, %scaled, %hidden", "select %written, %scaled, %scaled", "bf16"),
    ("fragment @element_step", "grouped_decode_attention_f8_by_element", "what was added up is not rescaled", "mulf %acc_old, %rescale_full", "addf %acc_old, %nothing", "bf16"),
    ("fragment @element_step", "grouped_decode_attention_f8_by_element", "values behind the token count as zero times what they hold", "select %written_full, %v, %nothing", "select %written_full, %v, %v", "bf16"),
    ("fragment @element_step", "grouped_decode_attention_f8_by_element", "the scales of keys for values", "mulf %weights, %by_value", "mulf %weights, %by_key", "bf16"),
    ("kernel @grouped_decode_attention_f8_by_element", "grouped_decode_attention_f8_by_element", "the token's tile is not masked", "%last, %written,", "%last, %everything,", "bf16"),
    ("fragment @widened", "kv_from_f8", "as they are stored", "%rounded = ftof %scaled", "%rounded = ftof %value", "bf16"),
    ("kernel @kv_from_f8", "kv_from_f8", "the scales of keys for values", "%v_cache_view, %v_scales_view", "%v_cache_view, %k_scales_view", "bf16"),
))  # fmt: skip
