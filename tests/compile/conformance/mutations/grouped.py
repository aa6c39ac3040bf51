"""Bugs in attention with rotated positions and several heads of queries for each of keys."""

from __future__ import annotations

from .mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = tuple(Mutation(*row) for row in (
    ("fragment @half_scores", "rope_decode_attention", "the second half is forgotten", "mmaf %k2, %q2_turned, %first", "mmaf %k1, %q1_turned, %empty", "bf16"),
    ("fragment @new_heads_scores", "rope_decode_attention", "the new key's second half is forgotten", "addf %products1, %products2", "addf %products1, %products1", "bf16"),
    ("fragment @turned_heads", "rope_decode_attention", "the halves swapped", "yield %y1, %y2", "yield %y2, %y1", "bf16"),
    ("kernel @rope_decode_attention", "rope_decode_attention", "the key is appended as it is", "%zero, %key1, %keys_read", "%zero, %key_first, %keys_read", "bf16"),
    ("kernel @rope_decode_attention", "rope_decode_attention", "angles of the span", "@load_angles(%cos_tiles, %position)", "@load_angles(%cos_tiles, %z)", "bf16"),
    ("kernel @rope_decode_attention", "rope_decode_attention", "every block from the position on appends", "cmpi less_than_or_equal %first, %position", "cmpi less_than_or_equal %zero, %position", "bf16"),
    ("fragment @load_angles", "rope_decode_attention", "the first position's angles", "%tiles[%position, %zero]", "%tiles[%zero, %zero]", "bf16"),
    ("fragment @load_half_span", "rope_decode_attention", "sequences and heads swapped", "%tiles[%b, %j, %g, %which]", "%tiles[%g, %j, %b, %which]", "bf16"),
    ("fragment @load_half_heads", "rope_decode_attention", "sequences and heads swapped", "%tiles[%b, %g, %zero, %which]", "%tiles[%g, %b, %zero, %which]", "bf16"),
    ("fragment @load_half_head", "rope_decode_attention", "sequences and heads swapped", "%tiles[%b, %g, %which]", "%tiles[%g, %b, %which]", "bf16"),
    ("fragment @with_half_key", "rope_decode_attention", "added, not multiplied", "mulf %q_f32, %key_full", "addf %q_f32, %key_full", "bf16"),
    ("fragment @append_half", "rope_decode_attention", "sequences and heads swapped", "%rows[%b, %position, %g, %which]", "%rows[%g, %position, %b, %which]", "bf16"),
    ("fragment @store_heads_stat", "rope_decode_attention", "sequences and heads swapped", "%tiles[%b, %g, %zero, %z, %which]", "%tiles[%g, %b, %zero, %z, %which]", "bf16"),
    ("fragment @turn", "rope_append", "turned the other way", "subf %x1_c, %x2_s", "addf %x1_c, %x2_s"),
    ("fragment @turn", "rope_append", "sine for cosine", "%x2_c = mulf %x2, %c", "%x2_c = mulf %x2, %s"),
    ("skeleton @rope_append", "rope_append", "angles of the place in the text, not in the cache", "%cos_tiles[%place, %zero]", "%cos_tiles[%t, %zero]"),
    ("skeleton @rope_append", "rope_append", "every sequence begins where the first does", "%position_tiles[%b]", "%position_tiles[%zero]"),
    ("skeleton @rope_append", "rope_append", "heads past the first tile are forgotten", "(%zero to %steps, step %one)", "(%zero to %one, step %one)"),
    ("fragment @append_turned", "rope_append", "the second half of the key is the first one's", "%k_cache_tiles[%in, %at, %g, %one]", "%k_cache_tiles[%in, %at, %g, %zero]"),
    ("skeleton @plain_heads", "rope_append", "the halves of a key swapped", "yield %x1, %x2", "yield %x2, %x1"),
    ("fragment @normed_heads", "norm_rope_append", "the second half's squares are forgotten", "fma %x2, %x2, %squares1", "addf %squares1, %squares1"),
    ("fragment @normed_heads", "norm_rope_append", "the first half's weights for both", "@load_line<BC = E>(%weight, %one)", "@load_line<BC = E>(%weight, %zero)"),
    ("skeleton @normed", "norm_rope_append", "the queries' weights for the keys", "%k_weight_view", "%q_weight_view"),
    ("fragment @as_they_are", "rope_append", "the first half twice", "ftof %second", "ftof %first"),
    ("fragment @grouped_positions", "grouped_attention", "rows go through the queries of a head first", "divi %lanes, %heads", "remi %lanes, %heads"),
    ("kernel @grouped_attention", "grouped_attention", "queries stand at the start of the keys", "subi %S, %T", "subi %S, %S"),
    ("kernel @grouped_attention", "grouped_attention", "heads past the first tile are forgotten", "%part = remi %head_part, %parts", "%part = divi %zero, %parts"),
    ("fragment @written_keys", "grouped_decode_attention", "the token does not see itself", "cmpi less_than_or_equal %column", "cmpi less_than %column"),
    ("fragment @last_tile", "grouped_decode_attention", "values behind the token count as zero times what they hold", "select %written_full, %v, %nothing", "select %written_full, %v, %v"),
    ("fragment @last_tile", "grouped_decode_attention", "the mask is forgotten", "select %visible, %products, %hidden", "select %visible, %products, %products"),
    ("skeleton @grouped_decode", "grouped_decode_attention", "the first heads for all", "%part = remi %head_part, %parts", "%part = divi %zero, %parts"),
    ("fragment @walk", "grouped_decode_attention", "only the last tile", "%from, %to, %max_start", "%to, %to, %max_start"),
    ("skeleton @grouped_decode_span", "grouped_decode_attention", "each block walks from the first span on", "%from = divi %first, %BS", "%from = divi %z, %BS"),
    ("skeleton @grouped_decode_span", "grouped_decode_attention", "a token in the last place of a span is in none", "cmpi less_than %position, %behind", "cmpi less_than %position, %full"),
    ("kernel @grouped_decode_attention_unsplit", "grouped_decode_attention_unsplit", "not divided by the sum", "mulf %acc, %inverse_full", "mulf %acc, %acc"),
    ("kernel @grouped_decode_attention_unsplit", "grouped_decode_attention_unsplit", "another head's result", "%out_tiles[%b, %g, %part, %zero]", "%out_tiles[%g, %b, %part, %zero]"),
))  # fmt: skip
