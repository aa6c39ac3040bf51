"""Bugs in a cache in pages."""

from __future__ import annotations

from .mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = tuple(Mutation(*row) for row in (
    ("kernel @paged_append", "paged_append", "the sequence for its page", "yield %page, %at", "yield %b, %at"),
    ("kernel @paged_rope_append", "paged_rope_append", "the position for the place in the page", "yield %page, %at", "yield %page, %place"),
    ("kernel @paged_norm_rope_append", "paged_norm_rope_append", "the sequence for its page", "yield %page, %at", "yield %b, %at"),
    ("fragment @page_of", "paged_append", "the first page for all", "%which = divi %place, %count signed", "%which = subi %place, %place"),
    ("fragment @page_of", "paged_append", "another text's page", "%tables[%b, %which]", "%tables[%which, %b]"),
    ("fragment @page_of", "paged_append", "the page's number for the place in it", "%at = remi", "%at = divi"),
    ("fragment @tile_of", "paged_attention", "a page is one tile", "%count = divi %PAGE, %BS signed", "%count = divi %BS, %BS signed"),
    ("skeleton @paged", "paged_attention", "every text begins at 0", "%start = reshape %start_tile : !int_1 -> !int", "%start = muli %b, %zero : !int"),
    ("fragment @grouped_positions", "paged_attention", "rows go through the queries of a head first", "divi %lanes, %heads", "remi %lanes, %heads"),
    ("skeleton @paged", "paged_attention", "heads past the first tile are forgotten", "%part = remi %head_part, %parts", "%part = divi %zero, %parts"),
    ("skeleton @paged", "paged_attention", "keys that no mask cuts are forgotten", "(%from to %to, step %one)", "(%to to %to, step %one)"),
    ("skeleton @paged", "paged_attention", "the last tile is forgotten", "(%to to %stop, step %one)", "(%to to %to, step %one)"),
    ("fragment @written_values", "paged_attention", "values behind a text count as zero times what they hold", "select %written_full, %v, %nothing", "select %written_full, %v, %v"),
    ("fragment @written_values", "paged_attention", "the last position is not written", "%left = subi %end, %first", "%one = constant <i32: 1> : !int\n  %next = addi %first, %one : !int\n  %left = subi %end, %next"),
    ("kernel @paged_attention", "paged_attention", "not divided by the sum", "mulf %acc, %inverse_full", "mulf %acc, %acc"),
    ("kernel @paged_attention", "paged_attention", "each block walks the masked tiles alone", "yield %none, %whole", "yield %whole, %whole"),
    ("kernel @paged_decode_attention", "paged_decode_attention", "every span begins with the first key", "%from = muli %turn, %per_span", "%from = subi %turn, %turn"),
    ("kernel @paged_decode_attention", "paged_decode_attention", "a span has the keys of the next", "%last = addi %from, %per_span", "%last = addi %per_span, %per_span"),
    ("kernel @paged_decode_attention", "paged_decode_attention", "spans end with the text", "%stop = mini %steps, %last", "%stop = maxi %steps, %last"),
    ("kernel @paged_decode_attention", "paged_decode_attention", "maximum and sum change places", "%stat_tiles[%b, %g, %part, %turn, %zero]", "%stat_tiles[%b, %g, %part, %turn, %one]"),
))  # fmt: skip
