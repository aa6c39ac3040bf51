// A cache of keys and values in 8-bit floats (e4m3), with a scale for each head of each position.
//
// A head is rounded as quantize_rows rounds a row. Scales lie by heads, (B, G, P): those of consecutive positions side by side.

include "rope_append.mlir"
include "grouped_decode.mlir"

sizes BQ = 1  // one query, since a kernel takes no more

!narrow = !cuda_tile.tensor_view<?x?x?x?xf8E4M3FN, strides=[?,?,?,1]>
!narrow_halves = !cuda_tile.partition_view<tile=(1x1x1xE), !narrow>
!narrow_whole = !cuda_tile.partition_view<tile=(1x1x1xD), !narrow>
!narrow_kv = !cuda_tile.partition_view<tile=(1xBSx1xD), padding_value = zero, !narrow>
!narrow_half = !cuda_tile.tile<1xExf8E4M3FN>
!narrow_half_tile = !cuda_tile.tile<1x1x1xExf8E4M3FN>
!narrow_head = !cuda_tile.tile<1xDxf8E4M3FN>
!narrow_head_tile = !cuda_tile.tile<1x1x1xDxf8E4M3FN>
!narrow_rows = !cuda_tile.tile<1xBSx1xDxf8E4M3FN>
!scale_part = !cuda_tile.partition_view<tile=(1x1x1), !parts>
!scales_part = !cuda_tile.partition_view<tile=(1x1xBS), padding_value = zero, !parts>
!one_scale = !cuda_tile.tile<1xf32>
!scale_tile = !cuda_tile.tile<1x1x1xf32>
!scales_tile = !cuda_tile.tile<1x1xBSxf32>
!scales_row = !cuda_tile.tile<1xBSxf32>
!scales_column = !cuda_tile.tile<BSx1xf32>
!head_f32 = !cuda_tile.tile<1xDxf32>
!head_t = !cuda_tile.tile<1xDxT>
!kv_f32 = !cuda_tile.tile<BSxDxf32>
!kv_f32_tile = !cuda_tile.tile<1xBSx1xDxf32>
!kv_half_tile = !cuda_tile.tile<1xBSx1xDxf16>
!kv_half = !cuda_tile.tile<BSxDxf16>
!kv_half_turned = !cuda_tile.tile<DxBSxf16>
!weights_half = !cuda_tile.tile<BQxBSxf16>
!queries_f32 = !cuda_tile.tile<BQxDxf32>
!q_line = !cuda_tile.tile<BQxf32>
!queries_half = !cuda_tile.tile<BQxDxf16>
!kv_out = !cuda_tile.partition_view<tile=(1xBSx1xD), !batch>

fragment @store_scale(%scale: !one_scale, %scales: !parts, %b: !int, %g: !int, %at: !int) {
  %tiles = make_partition_view %scales : !scale_part
  %tile = reshape %scale : !one_scale -> !scale_tile
  %stored = store_view_tko weak %tile, %tiles[%b, %g, %at] optimization_hints = <default = {allow_tma = false}>
      : !scale_tile, !scale_part, !int -> token
}

// Rounds a head to its place in the cache.
fragment @append_rounded(%head: !whole_tile, %cache: !narrow, %scales: !parts, %b: !int, %at: !int, %g: !int) {
  %zero = constant <i32: 0> : !int
  %tiles = make_partition_view %cache : !narrow_whole
  %row = reshape %head : !whole_tile -> !head_t
  %value = ftof %row : !head_t -> !head_f32
  %largest = call @largest_in_rows<R = 1, BC = D>(%value)
  %scale = call @scale_for<R = 1>(%largest)
  %inverse = call @inverse_of<R = 1>(%scale)
  %scaled = call @scaled_down<R = 1, BC = D>(%value, %inverse)
  %rounded = ftof %scaled : !head_f32 -> !narrow_head
  %tile = reshape %rounded : !narrow_head -> !narrow_head_tile
  %stored = store_view_tko weak %tile, %tiles[%b, %at, %g, %zero] : !narrow_head_tile, !narrow_whole, !int -> token
  call @store_scale(%scale, %scales, %b, %g, %at)
}

// The same of a head in two halves
fragment @append_rounded_halves(%first: !half, %second: !half, %cache: !narrow, %scales: !parts, %b: !int, %at: !int,
    %g: !int) {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %tiles = make_partition_view %cache : !narrow_halves
  %x1, %x2 = call @as_they_are<BQ = 1>(%first, %second)
  %largest1 = call @largest_in_rows<R = 1, BC = E>(%x1)
  %largest2 = call @largest_in_rows<R = 1, BC = E>(%x2)
  %largest = maxf %largest1, %largest2 propagate_nan : !one_scale
  %scale = call @scale_for<R = 1>(%largest)
  %inverse = call @inverse_of<R = 1>(%scale)
  %scaled1 = call @scaled_down<R = 1, BC = E>(%x1, %inverse)
  %scaled2 = call @scaled_down<R = 1, BC = E>(%x2, %inverse)
  %rounded1 = ftof %scaled1 : !angles -> !narrow_half
  %rounded2 = ftof %scaled2 : !angles -> !narrow_half
  %tile1 = reshape %rounded1 : !narrow_half -> !narrow_half_tile
  %tile2 = reshape %rounded2 : !narrow_half -> !narrow_half_tile
  %stored1 = store_view_tko weak %tile1, %tiles[%b, %at, %g, %zero] : !narrow_half_tile, !narrow_halves, !int -> token
  %stored2 = store_view_tko weak %tile2, %tiles[%b, %at, %g, %one] : !narrow_half_tile, !narrow_halves, !int -> token
  call @store_scale(%scale, %scales, %b, %g, %at)
}

// k_cache[b, positions[b] + t] = k[b, t] rounded, likewise v: grid (T, H, B)
kernel @kv_append_f8 op = kv_append_f8 {
  %k_tiles = make_partition_view %k_view : !whole_part
  %v_tiles = make_partition_view %v_view : !whole_part
  %position_tiles = make_partition_view %positions_view : !index_part
  %t, %h, %b = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %start_tile, %t0 = load_view_tko weak %position_tiles[%b] : !index_part, !int -> !int_1, token
  %start = reshape %start_tile : !int_1 -> !int
  %place = addi %start, %t : !int
  %k, %t1 = load_view_tko weak %k_tiles[%b, %t, %h, %zero] : !whole_part, !int -> !whole_tile, token
  %v, %t2 = load_view_tko weak %v_tiles[%b, %t, %h, %zero] : !whole_part, !int -> !whole_tile, token
  call @append_rounded(%k, %k_cache_view, %k_scales_view, %b, %place, %h)
  call @append_rounded(%v, %v_cache_view, %v_scales_view, %b, %place, %h)
  return
}

kernel @rope_append_f8 op = rope_append_f8, skeleton = @plain_heads {
  @slot = @own_row
  @append(%k1, %k2, %v, %k_cache, %v_cache, %in, %at, %g) {
    call @append_rounded_halves(%k1, %k2, %k_cache, %k_scales_view, %in, %at, %g)
    call @append_rounded(%v, %v_cache, %v_scales_view, %in, %at, %g)
  }
}

kernel @norm_rope_append_f8 op = norm_rope_append_f8, skeleton = @normed {
  @slot = @own_row
  @append(%k1, %k2, %v, %k_cache, %v_cache, %in, %at, %g) {
    call @append_rounded_halves(%k1, %k2, %k_cache, %k_scales_view, %in, %at, %g)
    call @append_rounded(%v, %v_cache, %v_scales_view, %in, %at, %g)
  }
}

// Tile j of the keys or values of one head as they are stored, in f16, and their scales. Every e4m3 is a number of f16, and
// one instruction makes two of them.
fragment @load_narrow(%cache: !narrow, %scales: !parts, %b: !int, %j: !int, %g: !int) -> (!kv_half, !scales_tile) {
  %zero = constant <i32: 0> : !int
  %tiles = make_partition_view %cache : !narrow_kv
  %scale_tiles = make_partition_view %scales : !scales_part
  %tile, %read = load_view_tko weak %tiles[%b, %j, %g, %zero] : !narrow_kv, !int -> !narrow_rows, token
  %wide = ftof %tile : !narrow_rows -> !kv_half_tile
  %kv = reshape %wide : !kv_half_tile -> !kv_half
  %scale, %scale_read = load_view_tko weak %scale_tiles[%b, %g, %j] optimization_hints = <default = {allow_tma = false}>
      : !scales_part, !int -> !scales_tile, token
  yield %kv, %scale : !kv_half, !scales_tile
}

// Of a row of scales those of written keys, and zeros: what stands behind the token may be anything, NaN too.
fragment @scales_in_row(%scales: !scales_tile, %written: !key_mask_row) -> !scales_row {
  %row = reshape %scales : !scales_tile -> !scales_row
  %none = constant <f32: 0.0> : !scales_row
  %there = select %written, %row, %none : !key_mask_row, !scales_row
  yield %there : !scales_row
}

// A step over tile j. Scores are multiplied by the scales of their keys. Weights are multiplied by the scales of their values
// as parts of the tile's largest, so that f16 holds them, and the result by that one.
fragment @narrow_step(%q: !queries_half, %k_cache: !narrow, %k_scales_all: !parts, %v_cache: !narrow, %v_scales_all: !parts,
    %b: !int, %g: !int, %j: !int, %written: !key_mask, %scale_column: !q_column, %scale_full: !q_scores, %max_old: !q_column,
    %sum_old: !q_column, %acc_old: !q_acc) -> (!q_column, !q_column, !q_acc) {
  %written_row = reshape %written : !key_mask -> !key_mask_row
  %visible = broadcast %written_row : !key_mask_row -> !q_visible
  %hidden = constant <f32: 0xFF800000> : !q_scores  // -inf
  %k, %k_scales = call @load_narrow(%k_cache, %k_scales_all, %b, %j, %g)
  %key_row = call @scales_in_row(%k_scales, %written_row)
  %by_key = broadcast %key_row : !scales_row -> !q_scores
  %nowhere = constant <f32: 0.0> : !q_scores
  %k_turned = permute %k [1, 0] : !kv_half -> !kv_half_turned
  %products = mmaf %q, %k_turned, %nowhere : !queries_half, !kv_half_turned, !q_scores
  %scaled = mulf %products, %by_key : !q_scores
  %scores = select %visible, %scaled, %hidden : !q_visible, !q_scores
  %weights, %max, %sum, %rescale = call @online_softmax<BT = BQ>(%scores, %scale_column, %scale_full, %max_old, %sum_old)
  %v, %v_scales = call @load_narrow(%v_cache, %v_scales_all, %b, %j, %g)
  %value_row = call @scales_in_row(%v_scales, %written_row)
  %largest = call @largest_in_rows<R = 1, BC = BS>(%value_row)
  %range = constant <f32: 1.0> : !one_scale
  %top = call @scale_within<R = 1>(%largest, %range)
  %inverse = call @inverse_of<R = 1>(%top)
  %inverse_row = broadcast %inverse : !real_1x1 -> !scales_row
  %shares = mulf %value_row, %inverse_row : !scales_row
  %by_value = broadcast %shares : !scales_row -> !q_scores
  %weighted = mulf %weights, %by_value : !q_scores
  %written_full = broadcast %written : !key_mask -> !kv_mask
  %nothing = constant <f16: 0.0> : !kv_half
  %values = select %written_full, %v, %nothing : !kv_mask, !kv_half
  %nothing_yet = constant <f32: 0.0> : !q_acc
  %rounded = ftof %weighted : !q_scores -> !weights_half
  %made = mmaf %rounded, %values, %nothing_yet : !weights_half, !kv_half, !q_acc
  %top_1 = reshape %top : !one_scale -> !real_1x1
  %top_full = broadcast %top_1 : !real_1x1 -> !q_acc
  %rescale_full = broadcast %rescale : !q_column -> !q_acc
  %rescaled = mulf %acc_old, %rescale_full : !q_acc
  %acc = fma %made, %top_full, %rescaled : !q_acc
  yield %max, %sum, %acc : !q_column, !q_column, !q_acc
}

// Queries are rounded to f16 as parts of their row's largest, which is a factor of their scores: f16 has fewer sizes than T.
kernel @grouped_decode_attention_f8 op = grouped_decode_attention_f8, skeleton = @grouped_decode_span {
  @walk(%q, %k_cache, %v_cache, %b, %g, %position, %from, %to, %ours, %scale_column, %scale_full, %max_start, %sum_start,
      %acc_start) {
    %one = constant <i32: 1> : !int
    %BS = constant <i32: BS> : !int
    %wide = ftof %q : !queries -> !queries_f32
    %largest = call @largest_in_rows<R = BQ, BC = D>(%wide)
    %units = call @scale_for<R = BQ>(%largest)
    %inverse = call @inverse_of<R = BQ>(%units)
    %parts_of_q = call @scaled_down<R = BQ, BC = D>(%wide, %inverse)
    %half = ftof %parts_of_q : !queries_f32 -> !queries_half
    %unit_column = reshape %units : !q_line -> !q_column
    %factor = mulf %unit_column, %scale_column : !q_column
    %factor_full = broadcast %factor : !q_column -> !q_scores
    %everything = constant <i1: 1> : !key_mask
    %max_full, %sum_full, %acc_full = for %j in (%from to %to, step %one) : !int
        iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start) -> (!q_column, !q_column, !q_acc) {
      %max_new, %sum_new, %acc_new = call @narrow_step(%half, %k_cache, %k_scales_view, %v_cache, %v_scales_view, %b, %g, %j,
          %everything, %factor, %factor_full, %max_old, %sum_old, %acc_old)
      continue %max_new, %sum_new, %acc_new : !q_column, !q_column, !q_acc
    }
    %max, %sum, %acc = if %ours -> (!q_column, !q_column, !q_acc) {
      %last = divi %position, %BS signed : !int
      %first = muli %last, %BS : !int
      %written = call @written_keys(%first, %position)
      %max_new, %sum_new, %acc_new = call @narrow_step(%half, %k_cache, %k_scales_view, %v_cache, %v_scales_view, %b, %g,
          %last, %written, %factor, %factor_full, %max_full, %sum_full, %acc_full)
      yield %max_new, %sum_new, %acc_new : !q_column, !q_column, !q_acc
    } else {
      yield %max_full, %sum_full, %acc_full : !q_column, !q_column, !q_acc
    }
    yield %max, %sum, %acc : !q_column, !q_column, !q_acc
  }
}

// The same of one query a block, element by element. The rows of positions are added up at the end, once.

fragment @load_narrow_directly(%cache: !narrow, %scales: !parts, %b: !int, %j: !int, %g: !int) -> (!kv_f32, !scales_column) {
  %zero = constant <i32: 0> : !int
  %tiles = make_partition_view %cache : !narrow_kv
  %scale_tiles = make_partition_view %scales : !scales_part
  %tile, %read = load_view_tko weak %tiles[%b, %j, %g, %zero] optimization_hints = <default = {allow_tma = false}>
      : !narrow_kv, !int -> !narrow_rows, token
  %wide = ftof %tile : !narrow_rows -> !kv_f32_tile
  %kv = reshape %wide : !kv_f32_tile -> !kv_f32
  %scale, %scale_read = load_view_tko weak %scale_tiles[%b, %g, %j] optimization_hints = <default = {allow_tma = false}>
      : !scales_part, !int -> !scales_tile, token
  %column = reshape %scale : !scales_tile -> !scales_column
  yield %kv, %column : !kv_f32, !scales_column
}

// One tile of positions: the scores of the query, and the weighted values, which stay one row for each position
fragment @element_step(%query: !kv_f32, %k_cache: !narrow, %k_scales: !parts, %v_cache: !narrow, %v_scales: !parts, %b: !int,
    %g: !int, %j: !int, %written: !key_mask, %max_old: !real_1x1, %sums_old: !scales_column, %acc_old: !kv_f32)
    -> (!real_1x1, !scales_column, !kv_f32) {
  %hidden = constant <f32: 0xFF800000> : !scales_column  // -inf
  %none = constant <f32: 0.0> : !scales_column
  %nothing = constant <f32: 0.0> : !kv_f32
  %k, %by_key = call @load_narrow_directly(%k_cache, %k_scales, %b, %j, %g)
  %v, %by_value = call @load_narrow_directly(%v_cache, %v_scales, %b, %j, %g)
  %products = mulf %k, %query : !kv_f32
  %dots = call @sum_in_rows<R = BS, BC = D>(%products)
  %scaled = mulf %dots, %by_key : !scales_column
  %scores = select %written, %scaled, %hidden : !key_mask, !scales_column
  %top = call @max_in_columns<R = BS, BC = 1>(%scores)
  %max = maxf %max_old, %top : !real_1x1
  %fall = subf %max_old, %max : !real_1x1
  %rescale = exp2 %fall flush_to_zero : !real_1x1
  %maxima = broadcast %max : !real_1x1 -> !scales_column
  %below = subf %scores, %maxima : !scales_column
  %weights = exp2 %below flush_to_zero : !scales_column
  %rescale_column = broadcast %rescale : !real_1x1 -> !scales_column
  %sums = fma %sums_old, %rescale_column, %weights : !scales_column
  %weighted = mulf %weights, %by_value : !scales_column
  %there = select %written, %weighted, %none : !key_mask, !scales_column
  %written_full = broadcast %written : !key_mask -> !kv_mask
  %values = select %written_full, %v, %nothing : !kv_mask, !kv_f32
  %there_full = broadcast %there : !scales_column -> !kv_f32
  %rescale_full = broadcast %rescale : !real_1x1 -> !kv_f32
  %rescaled = mulf %acc_old, %rescale_full : !kv_f32
  %acc = fma %there_full, %values, %rescaled : !kv_f32
  yield %max, %sums, %acc : !real_1x1, !scales_column, !kv_f32
}

kernel @grouped_decode_attention_f8_by_element op = grouped_decode_attention_f8, skeleton = @grouped_decode_span {
  @walk(%q, %k_cache, %v_cache, %b, %g, %position, %from, %to, %ours, %scale_column, %scale_full, %max_start, %sum_start,
      %acc_start) {
    %one = constant <i32: 1> : !int
    %BS = constant <i32: BS> : !int
    %wide = ftof %q : !queries -> !queries_f32
    %scale_row = broadcast %scale_column : !q_column -> !queries_f32
    %query_row = mulf %wide, %scale_row : !queries_f32
    %query = broadcast %query_row : !queries_f32 -> !kv_f32
    %everything = constant <i1: 1> : !key_mask
    %no_sums = constant <f32: 0.0> : !scales_column
    %no_values = constant <f32: 0.0> : !kv_f32
    %max_full, %sums_full, %acc_full = for %j in (%from to %to, step %one) : !int
        iter_values(%max_old = %max_start, %sums_old = %no_sums, %acc_old = %no_values) -> (!real_1x1, !scales_column, !kv_f32) {
      %max_new, %sums_new, %acc_new = call @element_step(%query, %k_cache, %k_scales_view, %v_cache, %v_scales_view, %b, %g, %j,
          %everything, %max_old, %sums_old, %acc_old)
      continue %max_new, %sums_new, %acc_new : !real_1x1, !scales_column, !kv_f32
    }
    %max, %sums, %accs = if %ours -> (!real_1x1, !scales_column, !kv_f32) {
      %last = divi %position, %BS signed : !int
      %first = muli %last, %BS : !int
      %written = call @written_keys(%first, %position)
      %max_new, %sums_new, %acc_new = call @element_step(%query, %k_cache, %k_scales_view, %v_cache, %v_scales_view, %b, %g,
          %last, %written, %max_full, %sums_full, %acc_full)
      yield %max_new, %sums_new, %acc_new : !real_1x1, !scales_column, !kv_f32
    } else {
      yield %max_full, %sums_full, %acc_full : !real_1x1, !scales_column, !kv_f32
    }
    %sum = call @sum_in_columns<R = BS, BC = 1>(%sums)
    %acc = call @sum_in_columns<R = BS, BC = D>(%accs)
    yield %max, %sum, %acc : !q_column, !q_column, !q_acc
  }
}

fragment @widened(%cache: !narrow, %scales: !parts, %out: !batch, %b: !int, %j: !int, %g: !int) {
  %zero = constant <i32: 0> : !int
  %out_tiles = make_partition_view %out : !kv_out
  %kv, %scale = call @load_narrow(%cache, %scales, %b, %j, %g)
  %value = ftof %kv : !kv_half -> !kv_f32
  %column = reshape %scale : !scales_tile -> !scales_column
  %rows = broadcast %column : !scales_column -> !kv_f32
  %scaled = mulf %value, %rows : !kv_f32
  %rounded = ftof %scaled : !kv_f32 -> !kv
  %tile = reshape %rounded : !kv -> !kv_tile
  %stored = store_view_tko weak %tile, %out_tiles[%b, %j, %g, %zero] : !kv_tile, !kv_out, !int -> token
}

// Keys and values in T again: BS positions of one head a block, grid (positions, G, B)
kernel @kv_from_f8 op = kv_from_f8 {
  %j, %g, %b = get_tile_block_id : !int
  call @widened(%k_cache_view, %k_scales_view, %k_view, %b, %j, %g)
  call @widened(%v_cache_view, %v_scales_view, %v_view, %b, %j, %g)
  return
}
