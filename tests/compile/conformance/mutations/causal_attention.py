"""Bugs in attention over whole prompts."""

from __future__ import annotations

from .mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = tuple(Mutation(*row) for row in (
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
    ("skeleton @attention_online", "attention", "one key tile too many is unmasked", "{ yield %seen_by_first : !int }", "{\n    %BT = constant <i32: BT> : !int\n    %too_many = addi %first, %BT : !int\n    yield %too_many : !int\n  }"),
    ("skeleton @attention_online", "attention", "the second loop starts anew", "%max_seen, %sum_seen, %acc_seen)", "%max_seen, %sum_start, %acc_seen)"),
    ("skeleton @attention_anchored", "attention_fixed_max", "relative to nothing", "fma %scores, %scale_full, %fixed_below", "mulf %scores, %scale_full", "bf16"),
    ("skeleton @attention_anchored", "attention_fixed_max", "the other tiles begin anew", "%sum_old = %sum_masked", "%sum_old = %sum_start", "bf16"),
    ("skeleton @attention_anchored", "attention_fixed_max", "the second walk's result is not taken", "yield %sum_again, %acc_again :", "yield %sum_fast, %acc_fast :", "bf16"),
    ("skeleton @attention_anchored", "attention_fixed_max", "the second walk sees the masked tiles alone", "%max, %sum_again, %acc_again = for %j in (%zero to", "%max, %sum_again, %acc_again = for %j in (%unmasked to", "bf16"),
    ("kernel @attention", "attention", "every tile is stored as the first", "%out_tiles, %b, %i, %h, %zero)", "%out_tiles, %b, %zero, %h, %zero)"),
    ("kernel @attention_fixed_max", "attention_fixed_max", "every tile is stored as the first", "%out_tiles, %b, %i, %h, %zero)", "%out_tiles, %b, %zero, %h, %zero)", "bf16"),
    ("kernel @attention_to_f8", "attention_to_f8", "every tile is stored as the first", "%out_tiles, %b, %i, %h, %zero)", "%out_tiles, %b, %zero, %h, %zero)", "bf16"),
    ("kernel @attention_to_f8_fixed_max", "attention_to_f8_fixed_max", "every tile is stored as the first", "%out_tiles, %b, %i, %h, %zero)", "%out_tiles, %b, %zero, %h, %zero)", "bf16"),
    ("fragment @store_mean", "attention", "heads and tiles swapped", "[%b, %i, %h, %zero]", "[%b, %h, %i, %zero]"),
    ("fragment @store_mean_in_f8", "attention_to_f8", "heads and tiles swapped", "[%b, %i, %h, %zero]", "[%b, %h, %i, %zero]", "bf16"),
    ("fragment @fits", "attention_fixed_max", "what is not finite fits", "cmpf less_than ordered %total", "cmpf less_than unordered %total", "bf16"),
))  # fmt: skip
