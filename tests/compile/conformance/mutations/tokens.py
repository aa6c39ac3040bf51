"""Bugs in embeddings and in the choice of the next token."""

from __future__ import annotations

from .mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = tuple(Mutation(*row) for row in (
    ("fragment @columns_from", "embedding_rows", "every tile's columns are the first", "addi %firsts, %lane_1", "maxi %lane_1, %lane_1 signed"),
    ("fragment @inside", "embedding_rows", "the columns that are not there", "cmpi less_than %columns", "cmpi greater_than_or_equal %columns"),
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
    ("fragment @first_of", "argmax_parts", "the last of equals", "mini %a, %b signed", "maxi %a, %b signed"),
    ("fragment @max_in_rows", "next_token", "the least for the largest", "maxf %a, %b", "minf %a, %b"),
    ("fragment @max_or_nan_in_rows", "argmax_parts", "the least for the largest", "maxf %a, %b", "minf %a, %b"),
    ("kernel @argmax_parts", "argmax_parts", "the place in the part, not in the row", "addi %first_full, %lane_line", "addi %lane_line, %lane_line"),
    ("fragment @comes_first", "next_token", "the last of equals", "cmpi less_than", "cmpi greater_than"),
    ("fragment @comes_first", "next_token", "of equals the first part's", "andi %as_large, %before", "andi %larger, %before"),
    ("kernel @next_token", "next_token", "the last, partial tile is left out", "divi %Z, %BZ signed rounding<positive_inf>", "divi %Z, %BZ signed rounding<zero>"),
    ("kernel @next_token", "next_token", "the position stays", "addi %position, %unit", "muli %position, %unit"),
    ("next_token !x_part", "argmax_parts", "padding with zero", "padding_value = neg_inf", "padding_value = zero"),
    ("next_token !values_part", "next_token", "padding with zero", "padding_value = neg_inf", "padding_value = zero"),
    ("kernel @token_embedding", "token_embedding", "the row number for the token", "%wte_tiles[%token, %j]", "%wte_tiles[%n, %j]"),
    ("kernel @token_embedding", "token_embedding", "only the first columns", "%out_tiles[%n, %j]", "%out_tiles[%j, %n]"),
))  # fmt: skip
