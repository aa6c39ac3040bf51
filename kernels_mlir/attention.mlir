// Causal flash attention: out = softmax(scale * q @ k.T + mask) @ v, for each batch and head.
//
// A block makes BT queries of one head and walks the keys in tiles of BS with the online softmax: it keeps a maximum and a
// sum for each query, and rescales both the sum and the output when the maximum rises. Scores are scaled by log2(e) too, so
// that exp2 serves as exp; powers below 2^-126 become 0. The head size D is a constant of the entry.

include "common.mlir"

sizes BT = 64, BS = 64, D = 64, GROUP = 8

!q_part = !cuda_tile.partition_view<tile=(1xBTx1xD), padding_value = zero, !batch>
!kv_part = !cuda_tile.partition_view<tile=(1xBSx1xD), padding_value = zero, !batch>
!out_part = !cuda_tile.partition_view<tile=(1xBTx1xD), !batch>
!f8_batch = !cuda_tile.tensor_view<?x?x?x?xf8E4M3FN, strides=[?,?,?,1]>
!f8_part = !cuda_tile.partition_view<tile=(1xBTx1xD), !f8_batch>
!q_tile = !cuda_tile.tile<1xBTx1xDxT>
!f8_tile = !cuda_tile.tile<1xBTx1xDxf8E4M3FN>
!kv_tile = !cuda_tile.tile<1xBSx1xDxT>

!q = !cuda_tile.tile<BTxDxT>
!f8 = !cuda_tile.tile<BTxDxf8E4M3FN>
!kv = !cuda_tile.tile<BSxDxT>
!kv_turned = !cuda_tile.tile<DxBSxT>
!scores = !cuda_tile.tile<BTxBSxf32>
!weights = !cuda_tile.tile<BTxBSxT>
!visible = !cuda_tile.tile<BTxBSxi1>
!positions = !cuda_tile.tile<BTxBSxi32>
!q_lanes = !cuda_tile.tile<BTxi32>
!q_positions = !cuda_tile.tile<BTx1xi32>
!k_lanes = !cuda_tile.tile<BSxi32>
!k_positions = !cuda_tile.tile<1xBSxi32>
!row = !cuda_tile.tile<BTxf32>
!column = !cuda_tile.tile<BTx1xf32>
!acc = !cuda_tile.tile<BTxDxf32>

// scale * log2(e)
fragment @scale_log2(%scale: !real) -> !real_1x1 {
  %log2e = constant <f32: 1.4426950408889634> : !real
  %scaled = mulf %scale, %log2e : !real
  %scale_1x1 = reshape %scaled : !real -> !real_1x1
  yield %scale_1x1 : !real_1x1
}

// Tile j of the keys or values of one head
fragment @load_kv(%tiles: !kv_part, %b: !int, %j: !int, %h: !int) -> (!kv, token) {
  %zero = constant <i32: 0> : !int
  %tile, %read = load_view_tko weak %tiles[%b, %j, %h, %zero] : !kv_part, !int -> !kv_tile, token
  %kv = reshape %tile : !kv_tile -> !kv
  yield %kv, %read : !kv, token
}

// The same without the copy engine (TMA)
fragment @load_kv_directly(%tiles: !kv_part, %b: !int, %j: !int, %h: !int) -> !kv {
  %zero = constant <i32: 0> : !int
  %tile, %read = load_view_tko weak %tiles[%b, %j, %h, %zero] optimization_hints = <default = {allow_tma = false}>
      : !kv_part, !int -> !kv_tile, token
  %kv = reshape %tile : !kv_tile -> !kv
  yield %kv : !kv
}

// q @ k.T
fragment @scores(%q: !q, %k: !kv) -> !scores {
  %empty = constant <f32: 0.0> : !scores
  %k_turned = permute %k [1, 0] : !kv -> !kv_turned
  %scores = mmaf %q, %k_turned, %empty : !q, !kv_turned, !scores
  yield %scores : !scores
}

// -inf where the key of tile j stands behind the query
fragment @causal(%scores: !scores, %j: !int, %q_positions: !positions, %k_lanes: !k_positions) -> !scores {
  %BS = constant <i32: BS> : !int
  %hidden = constant <f32: 0xFF800000> : !scores  // -inf
  %first = muli %j, %BS : !int
  %first_1x1 = reshape %first : !int -> !int_1x1
  %first_row = broadcast %first_1x1 : !int_1x1 -> !k_positions
  %k_row = addi %first_row, %k_lanes : !k_positions
  %k_positions = broadcast %k_row : !k_positions -> !positions
  %visible = cmpi less_than_or_equal %k_positions, %q_positions, signed : !positions -> !visible
  %masked = select %visible, %scores, %hidden : !visible, !scores
  yield %masked : !scores
}

// A step of the online softmax: weights 2^(scale * scores - maximum), the new maximum and sum, the factor of older results
fragment @online_softmax(%scores: !scores, %scale_column: !column, %scale_full: !scores, %max_old: !column,
    %sum_old: !column) -> (!scores, !column, !column, !column) {
  %top_column = call @max_in_rows<R = BT, BC = BS>(%scores)
  %top_scaled = mulf %top_column, %scale_column : !column
  %max = maxf %max_old, %top_scaled : !column
  %fall = subf %max_old, %max : !column
  %rescale = exp2 %fall flush_to_zero : !column
  %max_full = broadcast %max : !column -> !scores
  %max_below = negf %max_full : !scores
  %below = fma %scores, %scale_full, %max_below : !scores
  %weights = exp2 %below flush_to_zero : !scores
  %tile_sum = call @sum_in_rows<R = BT, BC = BS>(%weights)
  %sum = fma %sum_old, %rescale, %tile_sum : !column
  yield %weights, %max, %sum, %rescale : !scores, !column, !column, !column
}

// acc * rescale + weights @ v
fragment @add_values(%weights: !scores, %v: !kv, %acc: !acc, %rescale: !column) -> !acc {
  %rounded = ftof %weights : !scores -> !weights
  %rescale_full = broadcast %rescale : !column -> !acc
  %rescaled = mulf %acc, %rescale_full : !acc
  %next = mmaf %rounded, %v, %rescaled : !weights, !kv, !acc
  yield %next : !acc
}

// The online softmax over the key tiles from %first to %last, and a token of all their reads
fragment @seen_tiles(%q: !q, %k_tiles: !kv_part, %v_tiles: !kv_part, %b: !int, %h: !int, %scale_column: !column,
    %scale_full: !scores, %first: !int, %last: !int, %max_start: !column, %sum_start: !column, %acc_start: !acc)
    -> (!column, !column, !acc, token) {
  %one = constant <i32: 1> : !int
  %unread = make_token : token
  %max, %sum, %acc, %read = for %j in (%first to %last, step %one) : !int
      iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start, %read_old = %unread)
      -> (!column, !column, !acc, token) {
    %k, %k_read = call @load_kv(%k_tiles, %b, %j, %h)
    %scores = call @scores(%q, %k)
    %weights, %max_new, %sum_new, %rescale = call @online_softmax(%scores, %scale_column, %scale_full, %max_old, %sum_old)
    %v, %v_read = call @load_kv(%v_tiles, %b, %j, %h)
    %acc_new = call @add_values(%weights, %v, %acc_old, %rescale)
    %read_new = join_tokens %read_old, %k_read, %v_read : token
    continue %max_new, %sum_new, %acc_new, %read_new : !column, !column, !acc, token
  }
  yield %max, %sum, %acc, %read : !column, !column, !acc, token
}

// The same with the causal mask. Each query has seen a key after the first tile, here or before: its maximum is finite.
fragment @masked_tiles(%q: !q, %k_tiles: !kv_part, %v_tiles: !kv_part, %b: !int, %h: !int, %q_positions: !positions,
    %k_lanes: !k_positions, %scale_column: !column, %scale_full: !scores, %first: !int, %last: !int, %max_start: !column,
    %sum_start: !column, %acc_start: !acc) -> (!column, !column, !acc) {
  %one = constant <i32: 1> : !int
  %max, %sum, %acc = for %j in (%first to %last, step %one) : !int
      iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start) -> (!column, !column, !acc) {
    %k, %k_read = call @load_kv(%k_tiles, %b, %j, %h)
    %products = call @scores(%q, %k)
    %scores = call @causal(%products, %j, %q_positions, %k_lanes)
    %weights, %max_new, %sum_new, %rescale = call @online_softmax(%scores, %scale_column, %scale_full, %max_old, %sum_old)
    %v, %v_read = call @load_kv(%v_tiles, %b, %j, %h)
    %acc_new = call @add_values(%weights, %v, %acc_old, %rescale)
    continue %max_new, %sum_new, %acc_new : !column, !column, !acc
  }
  yield %max, %sum, %acc : !column, !column, !acc
}

// The T queries are the last of S positions: query t stands at position S - T + t. The first blocks take the last queries,
// which have the most keys, of all heads of GROUP sequences, then those before them: short blocks fill the gaps at the end,
// and the keys and values of so many heads fit the L2 cache. Blocks past the last sequence have no steps: what they read is
// zero, what they write is dropped.
//
// The holes: `setup` makes the view of out; `unmasked` counts the keys that need no mask; `walk` makes each query's sum of weights
// and weighted sum of values; `store_tile` stores a tile of the result.
skeleton @attention {
  %q_tiles = make_partition_view %q_view : !q_part
  %k_tiles = make_partition_view %k_view : !kv_part
  %v_tiles = make_partition_view %v_view : !kv_part
  hole @setup
  %h, %in_group, %turn_of_group = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BT = constant <i32: BT> : !int
  %BS = constant <i32: BS> : !int
  %GROUP = constant <i32: GROUP> : !int
  %tiles = divi %T, %BT signed rounding<positive_inf> : !int
  %group = divi %turn_of_group, %tiles signed : !int
  %turn = remi %turn_of_group, %tiles signed : !int
  %before = muli %group, %GROUP : !int
  %b = addi %before, %in_group : !int
  %last = subi %tiles, %one : !int
  %i = subi %last, %turn : !int
  // What stands above is done while the launch before it ends. With the wait just before the first load the compiler
  // overlaps the steps of the loop in another way, and registers spill.
  %ready = gdc_wait_tko -> token

  %past = subi %S, %T : !int
  %i_first = muli %i, %BT : !int
  %first = addi %past, %i_first : !int
  %q_lanes = iota : !q_lanes
  %q_lanes_column = reshape %q_lanes : !q_lanes -> !q_positions
  %first_1x1 = reshape %first : !int -> !int_1x1
  %first_column = broadcast %first_1x1 : !int_1x1 -> !q_positions
  %q_column = addi %first_column, %q_lanes_column : !q_positions
  %q_positions = broadcast %q_column : !q_positions -> !positions
  %k_lanes_flat = iota : !k_lanes
  %k_lanes = reshape %k_lanes_flat : !k_lanes -> !k_positions

  // The block's first query sees first + 1 keys, its last one those before first + BT, and there are S of them.
  %seen_by_first = addi %first, %one : !int
  %unmasked_keys = hole @unmasked(%first, %seen_by_first) -> !int
  %unmasked_there = divi %unmasked_keys, %BS signed : !int
  %behind = addi %first, %BT : !int
  %seen = mini %behind, %S signed : !int
  %steps_there = divi %seen, %BS signed rounding<positive_inf> : !int
  %there = cmpi less_than %b, %B, signed : !int -> !flag
  %unmasked = select %there, %unmasked_there, %zero : !flag, !int
  %steps = select %there, %steps_there, %zero : !flag, !int

  %q_tile, %q_read = load_view_tko weak %q_tiles[%b, %i, %h, %zero] : !q_part, !int -> !q_tile, token
  %q = reshape %q_tile : !q_tile -> !q
  %scale_log2 = call @scale_log2(%scale)
  %scale_column = broadcast %scale_log2 : !real_1x1 -> !column
  %scale_full = broadcast %scale_log2 : !real_1x1 -> !scores
  %max_start = constant <f32: 0xFF800000> : !column  // -inf
  %sum_start = constant <f32: 0.0> : !column
  %acc_start = constant <f32: 0.0> : !acc
  %sum, %acc = hole @walk(%q, %k_tiles, %v_tiles, %b, %h, %q_positions, %k_lanes, %scale_column, %scale_full, %unmasked, %steps,
      %max_start, %sum_start, %acc_start) -> (!column, !acc)
  %unit = constant <f32: 1.0> : !column
  %inverse = divf %unit, %sum : !column
  %inverse_full = broadcast %inverse : !column -> !acc
  %mean = mulf %acc, %inverse_full : !acc
  hole @store_tile(%mean, %b, %i, %h, %zero)
  return
}

fragment @store_mean(%mean: !acc, %tiles: !out_part, %b: !int, %i: !int, %h: !int, %zero: !int) {
  %result = ftof %mean : !acc -> !q
  %out_tile = reshape %result : !q -> !q_tile
  %stored = store_view_tko weak %out_tile, %tiles[%b, %i, %h, %zero] : !q_tile, !out_part, !int -> token
}

fragment @store_mean_in_f8(%mean: !acc, %tiles: !f8_part, %b: !int, %i: !int, %h: !int, %zero: !int) {
  %result = ftof %mean : !acc -> !f8
  %out_tile = reshape %result : !f8 -> !f8_tile
  %stored = store_view_tko weak %out_tile, %tiles[%b, %i, %h, %zero] : !f8_tile, !f8_part, !int -> token
}

// First the tiles that all queries of the block see, then those that the causal mask cuts
skeleton @attention_online, skeleton = @attention {
  @unmasked(%first, %seen_by_first) { yield %seen_by_first : !int }
  @walk(%q, %k_tiles, %v_tiles, %b, %h, %q_positions, %k_lanes, %scale_column, %scale_full, %unmasked, %steps,
      %max_start, %sum_start, %acc_start) {
    %zero = constant <i32: 0> : !int
    %max_seen, %sum_seen, %acc_seen, %read = call @seen_tiles(%q, %k_tiles, %v_tiles, %b, %h, %scale_column, %scale_full,
        %zero, %unmasked, %max_start, %sum_start, %acc_start)
    %max, %sum, %acc = call @masked_tiles(%q, %k_tiles, %v_tiles, %b, %h, %q_positions, %k_lanes, %scale_column,
        %scale_full, %unmasked, %steps, %max_seen, %sum_seen, %acc_seen)
    yield %sum, %acc : !column, !acc
  }
}

// Attention with a fixed-max softmax. The tiles that the causal mask cuts come first, with the online softmax. The maximum
// of these is kept for all other tiles: no step has to find a maximum, to rescale, or to wait for another step. Any maximum
// gives the same quotient unless something overflows; then the block begins again, with the online softmax for all tiles.
// Weights in f16 would overflow early: not for f16.
skeleton @attention_anchored, skeleton = @attention {
  // Without the tile of the first query's own key: each query has a key in that one.
  @unmasked(%first, %seen_by_first) { yield %first : !int }
  @walk(%q, %k_tiles, %v_tiles, %b, %h, %q_positions, %k_lanes, %scale_column, %scale_full, %unmasked, %steps,
      %max_start, %sum_start, %acc_start) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %fixed, %sum_masked, %acc_masked = call @masked_tiles(%q, %k_tiles, %v_tiles, %b, %h, %q_positions, %k_lanes, %scale_column,
        %scale_full, %unmasked, %steps, %max_start, %sum_start, %acc_start)
    %fixed_full = broadcast %fixed : !column -> !scores
    %fixed_below = negf %fixed_full : !scores
    %sum_fast, %acc_fast = for %j in (%zero to %unmasked, step %one) : !int
        iter_values(%sum_old = %sum_masked, %acc_old = %acc_masked) -> (!column, !acc) {
      %k, %k_read = call @load_kv(%k_tiles, %b, %j, %h)
      %scores = call @scores(%q, %k)
      %below = fma %scores, %scale_full, %fixed_below : !scores
      %weights = exp2 %below flush_to_zero : !scores
      %tile_sum = call @sum_in_rows<R = BT, BC = BS>(%weights)
      %sum_new = addf %sum_old, %tile_sum : !column
      %v, %v_read = call @load_kv(%v_tiles, %b, %j, %h)
      %rounded = ftof %weights : !scores -> !weights
      %acc_new = mmaf %rounded, %v, %acc_old : !weights, !kv, !acc
      continue %sum_new, %acc_new : !column, !acc
    }

    %fits = call @fits(%sum_fast, %acc_fast)
    %sum, %acc = if %fits -> (!column, !acc) {
      yield %sum_fast, %acc_fast : !column, !acc
    } else {
      // Without the copy engine: only the threads that multiply know that this branch is taken.
      %max, %sum_again, %acc_again = for %j in (%zero to %steps, step %one) : !int
          iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start) -> (!column, !column, !acc) {
        %k = call @load_kv_directly(%k_tiles, %b, %j, %h)
        %products = call @scores(%q, %k)
        %scores = call @causal(%products, %j, %q_positions, %k_lanes)
        %weights, %max_new, %sum_new, %rescale = call @online_softmax(%scores, %scale_column, %scale_full, %max_old, %sum_old)
        %v = call @load_kv_directly(%v_tiles, %b, %j, %h)
        %acc_new = call @add_values(%weights, %v, %acc_old, %rescale)
        continue %max_new, %sum_new, %acc_new : !column, !column, !acc
      }
      yield %sum_again, %acc_again : !column, !acc
    }
    yield %sum, %acc : !column, !acc
  }
}

kernel @attention op = attention, skeleton = @attention_online {
  @setup { %out_tiles = make_partition_view %out_view : !out_part }
  @store_tile(%mean, %b, %i, %h, %zero) { call @store_mean(%mean, %out_tiles, %b, %i, %h, %zero) }
}

kernel @attention_fixed_max op = attention, skeleton = @attention_anchored {
  @setup { %out_tiles = make_partition_view %out_view : !out_part }
  @store_tile(%mean, %b, %i, %h, %zero) { call @store_mean(%mean, %out_tiles, %b, %i, %h, %zero) }
}

// The same with a result in 8 bits
kernel @attention_to_f8 op = attention_to_f8, skeleton = @attention_online {
  @setup { %out_tiles = make_partition_view %out_view : !f8_part }
  @store_tile(%mean, %b, %i, %h, %zero) { call @store_mean_in_f8(%mean, %out_tiles, %b, %i, %h, %zero) }
}

kernel @attention_to_f8_fixed_max op = attention_to_f8, skeleton = @attention_anchored {
  @setup { %out_tiles = make_partition_view %out_view : !f8_part }
  @store_tile(%mean, %b, %i, %h, %zero) { call @store_mean_in_f8(%mean, %out_tiles, %b, %i, %h, %zero) }
}

// Whether the sums are finite and below 2^120, which is less than the range of bf16 and f32: scores may be 83 above the
// fixed maximum. What is not finite in %acc, times zero, makes the total NaN.
fragment @fits(%sum: !column, %acc: !acc) -> !flag {
  %nothing = constant <f32: 0.0> : !column
  %most = constant <f32: 1.329227995784916e36> : !real
  %acc_column = call @sum_in_rows<R = BT, BC = D>(%acc)
  %totals_column = fma %acc_column, %nothing, %sum : !column
  %totals = reshape %totals_column : !column -> !row
  %total = call @line_sum<BC = BT>(%totals)
  %fits = cmpf less_than ordered %total, %most : !real -> !flag
  yield %fits : !flag
}
