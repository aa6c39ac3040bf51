// Rotary positions, the append to the cache, and attention over its spans, of one new token of each sequence: rope_append and
// grouped_decode_attention in one kernel. Grid (Z, G, B).
//
// A block takes one span of one head of keys, and the at most BQ heads of queries that share it: the keys are the rows of a
// tile of scores, the queries its columns, as in decode_attention_swap_ab. Keys are read as two halves of E numbers, as they
// are turned. The span is read before the wait for the launches before, as no other kernel writes the caches.

include "decode_attention.mlir"

sizes BQ = 8, D = 64, E = 32, SPAN = 128, BS = 128, R = 8

!span_half_part = !cuda_tile.partition_view<tile=(1xSPANx1xE), padding_value = zero, !batch>
!span_half_tile = !cuda_tile.tile<1xSPANx1xExT>
!span_half = !cuda_tile.tile<SPANxExT>
!heads_half_part = !cuda_tile.partition_view<tile=(1x1xBQxE), padding_value = zero, !batch>
!heads_half_tile = !cuda_tile.tile<1x1xBQxExT>
!heads_half = !cuda_tile.tile<BQxExT>
!heads_half_f32 = !cuda_tile.tile<BQxExf32>
!turned_half = !cuda_tile.tile<ExBQxT>
!one_half_part = !cuda_tile.partition_view<tile=(1x1xE), !heads>
!one_half_tile = !cuda_tile.tile<1x1xExT>
!one_half = !cuda_tile.tile<1xExT>
!half_row_part = !cuda_tile.partition_view<tile=(1x1x1xE), !batch>
!half_row = !cuda_tile.tile<1x1x1xExT>
!angles_part = !cuda_tile.partition_view<tile=(1xE), !reals>
!angles_row = !cuda_tile.tile<1xExf32>
!heads_scores = !cuda_tile.tile<SPANxBQxf32>
!heads_column = !cuda_tile.tile<BQx1xf32>
!heads_row = !cuda_tile.tile<1xBQxf32>
!five = !cuda_tile.tensor_view<?x?x?x?x?xf32, strides=[?,?,?,?,1]>
!heads_partial_part = !cuda_tile.partition_view<tile=(1x1xBQx1xD), !five>
!heads_stat_part = !cuda_tile.partition_view<tile=(1x1xBQx1x1), !five>
!heads_partial = !cuda_tile.tile<1x1xBQx1xDxf32>
!heads_stat = !cuda_tile.tile<1x1xBQx1x1xf32>
!heads_acc = !cuda_tile.tile<DxBQxf32>
!heads_acc_rows = !cuda_tile.tile<BQxDxf32>

// Half %which of a span's keys
fragment @load_half_span(%tiles: !span_half_part, %b: !int, %j: !int, %g: !int, %which: !int) -> (!span_half, token) {
  %tile, %read = load_view_tko weak %tiles[%b, %j, %g, %which] : !span_half_part, !int -> !span_half_tile, token
  %half = reshape %tile : !span_half_tile -> !span_half
  yield %half, %read : !span_half, token
}

fragment @load_half_heads(%tiles: !heads_half_part, %b: !int, %g: !int, %which: !int) -> !heads_half {
  %zero = constant <i32: 0> : !int
  %tile, %read = load_view_tko weak %tiles[%b, %g, %zero, %which] optimization_hints = <default = {allow_tma = false}>
      : !heads_half_part, !int -> !heads_half_tile, token
  %half = reshape %tile : !heads_half_tile -> !heads_half
  yield %half : !heads_half
}

fragment @load_half_head(%tiles: !one_half_part, %b: !int, %g: !int, %which: !int) -> !one_half {
  %tile, %read = load_view_tko weak %tiles[%b, %g, %which] optimization_hints = <default = {allow_tma = false}>
      : !one_half_part, !int -> !one_half_tile, token
  %half = reshape %tile : !one_half_tile -> !one_half
  yield %half : !one_half
}

fragment @load_angles(%tiles: !angles_part, %position: !int) -> (!angles_row, token) {
  %zero = constant <i32: 0> : !int
  %row, %read = load_view_tko weak %tiles[%position, %zero] optimization_hints = <default = {allow_tma = false}>
      : !angles_part, !int -> !angles_row, token
  yield %row, %read : !angles_row, token
}

// Both halves of BQ heads, turned and rounded
fragment @turned_heads(%first: !heads_half, %second: !heads_half, %cos: !angles_row, %sin: !angles_row)
    -> (!heads_half, !heads_half) {
  %x1, %x2 = call @as_they_are(%first, %second)
  %y1, %y2 = call @turn(%x1, %x2, %cos, %sin)
  yield %y1, %y2 : !heads_half, !heads_half
}

// The scores of a span's keys, from both halves
fragment @half_scores(%k1: !span_half, %k2: !span_half, %q1: !heads_half, %q2: !heads_half, %scale: !heads_scores)
    -> !heads_scores {
  %empty = constant <f32: 0.0> : !heads_scores
  %q1_turned = permute %q1 [1, 0] : !heads_half -> !turned_half
  %q2_turned = permute %q2 [1, 0] : !heads_half -> !turned_half
  %first = mmaf %k1, %q1_turned, %empty : !span_half, !turned_half, !heads_scores
  %products = mmaf %k2, %q2_turned, %first : !span_half, !turned_half, !heads_scores
  %scores = mulf %products, %scale : !heads_scores
  yield %scores : !heads_scores
}

// The products of one half of the queries and of the new key
fragment @with_half_key(%q: !heads_half, %key: !one_half) -> !heads_half_f32 {
  %q_f32 = ftof %q : !heads_half -> !heads_half_f32
  %key_f32 = ftof %key : !one_half -> !angles_row
  %key_full = broadcast %key_f32 : !angles_row -> !heads_half_f32
  %products = mulf %q_f32, %key_full : !heads_half_f32
  yield %products : !heads_half_f32
}

// The scores of keys that are not older: the new key's own, and the least score where the cache is unwritten
fragment @new_heads_scores(%q1: !heads_half, %q2: !heads_half, %key1: !one_half, %key2: !one_half, %scale: !real_1x1,
    %there: !k_mask) -> !c_scores {
  %there_full = broadcast %there : !k_mask -> !c_visible
  %products1 = call @with_half_key(%q1, %key1)
  %products2 = call @with_half_key(%q2, %key2)
  %products = addf %products1, %products2 : !heads_half_f32
  %column = call @sum_in_rows<R = BQ, BC = E>(%products)
  %row = permute %column [1, 0] : !heads_column -> !heads_row
  %scales = broadcast %scale : !real_1x1 -> !heads_row
  %new = mulf %row, %scales : !heads_row
  %new_full = broadcast %new : !heads_row -> !c_scores
  // Below every score, and finite: the difference of two of them is 0 and not NaN.
  %least = constant <f32: -1.0e30> : !c_scores
  %scores = select %there_full, %new_full, %least : !c_visible, !c_scores
  yield %scores : !c_scores
}

// Store a half of the new key. Only tokens order memory: %read comes after all reads of the cache that may meet this row.
fragment @append_half(%cache: !batch, %b: !int, %position: !int, %g: !int, %which: !int, %half: !one_half, %read: token) {
  %rows = make_partition_view %cache : !half_row_part
  %tile = reshape %half : !one_half -> !half_row
  %stored = store_view_tko weak %tile, %rows[%b, %position, %g, %which] token = %read
      optimization_hints = <default = {allow_tma = false}> : !half_row, !half_row_part, !int -> token
}

fragment @store_heads_stat(%tiles: !heads_stat_part, %b: !int, %g: !int, %z: !int, %which: !int, %row: !heads_row) {
  %zero = constant <i32: 0> : !int
  %tile = reshape %row : !heads_row -> !heads_stat
  %stored = store_view_tko weak %tile, %tiles[%b, %g, %zero, %z, %which]
      optimization_hints = <default = {allow_tma = false}> : !heads_stat, !heads_stat_part, !int -> token
}

kernel @rope_decode_attention op = rope_decode_attention {
  %k_tiles = make_partition_view %k_cache_view : !span_half_part
  %v_tiles = make_partition_view %v_cache_view : !span_part
  %cos_tiles = make_partition_view %cos_view : !angles_part
  %sin_tiles = make_partition_view %sin_view : !angles_part
  %z, %g, %b = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %SPAN = constant <i32: SPAN> : !int
  %position, %position_read = call @load_position(%positions_view, %b)
  %current = divi %position, %SPAN signed : !int
  %unwritten = addi %current, %one : !int
  %near = mini %z, %unwritten signed : !int
  %k1, %k1_read = call @load_half_span(%k_tiles, %b, %near, %g, %zero)
  %k2, %k2_read = call @load_half_span(%k_tiles, %b, %near, %g, %one)
  %v, %v_read = call @load_kv<BS = SPAN>(%v_tiles, %b, %near, %g)
  %cos, %cos_read = call @load_angles(%cos_tiles, %position)
  %sin, %sin_read = call @load_angles(%sin_tiles, %position)
  %first = muli %z, %SPAN : !int
  %behind = addi %first, %SPAN : !int
  // The wait comes after these reads by the tokens of the last ones: else the compiler may put it first. With all tokens they
  // would be made one after the other.
  %ahead = join_tokens %position_read, %v_read, %cos_read, %sin_read : token
  %ready = gdc_wait_tko token = %ahead -> token
  %q_tiles = make_partition_view %q_view : !heads_half_part
  %q_first = call @load_half_heads(%q_tiles, %b, %g, %zero)
  %q_second = call @load_half_heads(%q_tiles, %b, %g, %one)
  %key_tiles = make_partition_view %k_view : !one_half_part
  %key_first = call @load_half_head(%key_tiles, %b, %g, %zero)
  %key_second = call @load_half_head(%key_tiles, %b, %g, %one)
  %value_tile = call @load_head(%v_view, %b, %g)
  %value = reshape %value_tile : !head_tile -> !head
  %q1, %q2 = call @turned_heads(%q_first, %q_second, %cos, %sin)
  %scale_log2 = call @scale_log2(%scale)
  %scale_full = call @scale_columns<BS = SPAN, R = BQ>(%scale_log2)
  %scores = call @half_scores(%k1, %k2, %q1, %q2, %scale_full)
  %empty = constant <f32: 0.0> : !heads_acc
  %old = cmpi less_than_or_equal %behind, %position, signed : !int -> !flag
  %max, %sum, %acc = if %old -> (!heads_row, !heads_row, !heads_acc) {
    %old_max = call @max_in_columns<R = SPAN, BC = BQ>(%scores)
    %old_weights = call @column_powers<BS = SPAN, R = BQ>(%scores, %old_max)
    %old_sum = call @sum_in_columns<R = SPAN, BC = BQ>(%old_weights)
    %old_acc = call @add_column_values<BS = SPAN, R = BQ>(%old_weights, %v, %empty)
    yield %old_max, %old_sum, %old_acc : !heads_row, !heads_row, !heads_acc
  } else {
    %key1, %key2 = call @turned_heads<BQ = 1>(%key_first, %key_second, %cos, %sin)
    %older, %new, %there = call @masks<BS = SPAN>(%first, %position)
    %others = call @new_heads_scores<BS = SPAN, R = BQ>(%q1, %q2, %key1, %key2, %scale_log2, %there)
    %new_scores = call @older_or<BS = SPAN, R = BQ>(%scores, %older, %others)
    %new_max, %new_sum, %new_acc = call @masked_tile<BS = SPAN, R = BQ>(%new_scores, %v, %value, %older, %there, %there)
    %ours = cmpi less_than_or_equal %first, %position, signed : !int -> !flag
    if %ours {
      %keys_read = join_tokens %k1_read, %k2_read, %ready : token
      call @append_half(%k_cache_view, %b, %position, %g, %zero, %key1, %keys_read)
      call @append_half(%k_cache_view, %b, %position, %g, %one, %key2, %keys_read)
      call @append(%v_cache_view, %b, %position, %g, %value, %ready)
    }
    yield %new_max, %new_sum, %new_acc : !heads_row, !heads_row, !heads_acc
  }
  %partial_tiles = make_partition_view %partial_view : !heads_partial_part
  %stat_tiles = make_partition_view %stats_view : !heads_stat_part
  %acc_rows = permute %acc [1, 0] : !heads_acc -> !heads_acc_rows
  %acc_tile = reshape %acc_rows : !heads_acc_rows -> !heads_partial
  %stored = store_view_tko weak %acc_tile, %partial_tiles[%b, %g, %zero, %z, %zero]
      optimization_hints = <default = {allow_tma = false}> : !heads_partial, !heads_partial_part, !int -> token
  call @store_heads_stat(%stat_tiles, %b, %g, %z, %zero, %max)
  call @store_heads_stat(%stat_tiles, %b, %g, %z, %one, %sum)
  return
}
