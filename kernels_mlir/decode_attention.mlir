// Attention of one new token of each sequence over its cache, to which the token's key and value are appended.
//
// A block makes one query: one head of one sequence, over a span of SPAN positions of the cache (split-KV, grid (Z, H, B);
// `merge_attention` combines the spans) or over all of it (grid (H, B)). The block whose positions include the new one takes
// the new key and value from the arguments and stores them. Behind the new position the cache is unwritten: it may hold
// anything, NaN too. For the scale of the scores and the head size D see attention.mlir.

include "attention.mlir"

sizes BS = 64, D = 64, SPAN = 128, R = 16

!head_part = !cuda_tile.partition_view<tile=(1x1xD), !heads>
!cache_row_part = !cuda_tile.partition_view<tile=(1x1x1xD), !batch>
!span_part = !cuda_tile.partition_view<tile=(1xSPANx1xD), padding_value = zero, !batch>
!partial_part = !cuda_tile.partition_view<tile=(1x1x1xD), !spans>
!stat_part = !cuda_tile.partition_view<tile=(1x1x1x1), !spans>
!head_tile = !cuda_tile.tile<1x1xDxT>
!cache_row = !cuda_tile.tile<1x1x1xDxT>
!partial_tile = !cuda_tile.tile<1x1x1xDxf32>
!stat_tile = !cuda_tile.tile<1x1x1x1xf32>

!head = !cuda_tile.tile<1xDxT>
!head_f32 = !cuda_tile.tile<1xDxf32>
!queries = !cuda_tile.tile<RxDxT>
!k_column = !cuda_tile.tile<BSx1xi32>
!k_mask = !cuda_tile.tile<BSx1xi1>
!k_mask_row = !cuda_tile.tile<1xBSxi1>
!kv_mask = !cuda_tile.tile<BSxDxi1>

// For tensor cores, query by query in rows
!r_scores = !cuda_tile.tile<RxBSxf32>
!r_visible = !cuda_tile.tile<RxBSxi1>
!r_column = !cuda_tile.tile<Rx1xf32>
!r_acc = !cuda_tile.tile<RxDxf32>

// For tensor cores with operands swapped (swap-AB), query by query in columns
!c_queries = !cuda_tile.tile<DxRxT>
!c_scores = !cuda_tile.tile<BSxRxf32>
!c_weights = !cuda_tile.tile<BSxRxT>
!c_visible = !cuda_tile.tile<BSxRxi1>
!c_row = !cuda_tile.tile<1xRxf32>
!c_acc = !cuda_tile.tile<DxRxf32>
!c_first = !cuda_tile.tile<Dx1xf32>
!c_result = !cuda_tile.tile<Dx1xT>

// Element by element
!kv_f32 = !cuda_tile.tile<BSxDxf32>
!e_scores = !cuda_tile.tile<BSx1xf32>

// Loads and stores. Single rows are too small for the copy engine (TMA).

fragment @load_position(%positions: !indices, %b: !int) -> (!int, token) {
  %tiles = make_partition_view %positions : !index_part
  %tile, %read = load_view_tko weak %tiles[%b] optimization_hints = <default = {allow_tma = false}>
      : !index_part, !int -> !int_1, token
  %position = reshape %tile : !int_1 -> !int
  yield %position, %read : !int, token
}

fragment @load_head(%heads: !heads, %b: !int, %h: !int) -> !head_tile {
  %zero = constant <i32: 0> : !int
  %tiles = make_partition_view %heads : !head_part
  %tile, %read = load_view_tko weak %tiles[%b, %h, %zero] optimization_hints = <default = {allow_tma = false}>
      : !head_part, !int -> !head_tile, token
  yield %tile : !head_tile
}

// The query, and the new key and value
fragment @load_new(%q: !heads, %k: !heads, %v: !heads, %b: !int, %h: !int) -> (!head, !head, !head) {
  %q_tile = call @load_head(%q, %b, %h)
  %k_tile = call @load_head(%k, %b, %h)
  %v_tile = call @load_head(%v, %b, %h)
  %key = reshape %k_tile : !head_tile -> !head
  %value = reshape %v_tile : !head_tile -> !head
  %query = reshape %q_tile : !head_tile -> !head
  yield %query, %key, %value : !head, !head, !head
}

// Store the new key or value. Only tokens order memory: %read comes after all reads of the cache that may meet this row.
fragment @append(%cache: !batch, %b: !int, %position: !int, %h: !int, %row: !head, %read: token) {
  %zero = constant <i32: 0> : !int
  %rows = make_partition_view %cache : !cache_row_part
  %tile = reshape %row : !head -> !cache_row
  %stored = store_view_tko weak %tile, %rows[%b, %position, %h, %zero] token = %read
      optimization_hints = <default = {allow_tma = false}> : !cache_row, !cache_row_part, !int -> token
}

// What a span gives to `merge_attention`: its weighted sum of values, its maximum (stat 0) and its sum of weights (stat 1)
fragment @store_span(%partial: !spans, %stats: !spans, %b: !int, %h: !int, %z: !int, %acc: !partial_tile, %max: !real_1x1,
    %sum: !real_1x1) {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  call @store_partial(%partial, %b, %h, %z, %acc)
  call @store_stat(%stats, %b, %h, %z, %zero, %max)
  call @store_stat(%stats, %b, %h, %z, %one, %sum)
}

fragment @store_partial(%partial: !spans, %b: !int, %h: !int, %z: !int, %acc: !partial_tile) {
  %zero = constant <i32: 0> : !int
  %tiles = make_partition_view %partial : !partial_part
  %stored = store_view_tko weak %acc, %tiles[%b, %h, %z, %zero] optimization_hints = <default = {allow_tma = false}>
      : !partial_tile, !partial_part, !int -> token
}

fragment @store_stat(%stats: !spans, %b: !int, %h: !int, %z: !int, %which: !int, %stat: !real_1x1) {
  %tiles = make_partition_view %stats : !stat_part
  %tile = reshape %stat : !real_1x1 -> !stat_tile
  %stored = store_view_tko weak %tile, %tiles[%b, %h, %z, %which] optimization_hints = <default = {allow_tma = false}>
      : !stat_tile, !stat_part, !int -> token
}

// Whether the new position is in the span
fragment @in_span(%position: !int, %first: !int, %behind: !int) -> !flag {
  %begun = cmpi less_than_or_equal %first, %position, signed : !int -> !flag
  %not_over = cmpi less_than %position, %behind, signed : !int -> !flag
  %inside = andi %begun, %not_over : !flag
  yield %inside : !flag
}

// Which of a tile's keys are older than the new one, which is the new one, and which are written: the older ones and it
fragment @masks(%first: !int, %position: !int) -> (!k_mask, !k_mask, !k_mask) {
  %first_1 = reshape %first : !int -> !int_1
  %first_full = broadcast %first_1 : !int_1 -> !k_lanes
  %lanes = iota : !k_lanes
  %key_positions_flat = addi %first_full, %lanes : !k_lanes
  %key_positions = reshape %key_positions_flat : !k_lanes -> !k_column
  %position_1x1 = reshape %position : !int -> !int_1x1
  %positions = broadcast %position_1x1 : !int_1x1 -> !k_column
  %older = cmpi less_than %key_positions, %positions, signed : !k_column -> !k_mask
  %new = cmpi equal %key_positions, %positions, signed : !k_column -> !k_mask
  %written = cmpi less_than_or_equal %key_positions, %positions, signed : !k_column -> !k_mask
  yield %older, %new, %written : !k_mask, !k_mask, !k_mask
}

// Keys or values with the new one in its place
fragment @with_new(%kv: !kv, %row: !head, %new: !k_mask) -> !kv {
  %new_full = broadcast %new : !k_mask -> !kv_mask
  %row_full = broadcast %row : !head -> !kv
  %with_new = select %new_full, %row_full, %kv : !kv_mask, !kv
  yield %with_new : !kv
}

// Values with zeros where the cache is unwritten
fragment @written(%values: !kv, %there: !k_mask) -> !kv {
  %there_full = broadcast %there : !k_mask -> !kv_mask
  %nothing = constant <T: 0.0> : !kv
  %written = select %there_full, %values, %nothing : !kv_mask, !kv
  yield %written : !kv
}

// One span in tiles of BS, on the tensor cores: first those that were full before, then the one with the new position. The
// query is repeated R times, as many rows as the tensor cores want; the first row is stored.
kernel @decode_attention op = decode_attention {
  %k_tiles = make_partition_view %k_cache_view : !kv_part
  %v_tiles = make_partition_view %v_cache_view : !kv_part
  %z, %h, %b = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BS = constant <i32: BS> : !int
  %SPAN = constant <i32: SPAN> : !int
  %position, %position_read = call @load_position(%positions_view, %b)
  %first = muli %z, %SPAN : !int
  %behind = addi %first, %SPAN : !int
  %q_tile = call @load_head(%q_view, %b, %h)
  %q = reshape %q_tile : !head_tile -> !head
  %queries = broadcast %q : !head -> !queries
  %scale_log2 = call @scale_log2(%scale)
  %scale_column = broadcast %scale_log2 : !real_1x1 -> !r_column
  %scale_full = broadcast %scale_log2 : !real_1x1 -> !r_scores
  // Below every score, and finite: the difference of two of them is 0 and not NaN.
  %max_start = constant <f32: -1.0e30> : !r_column
  %sum_start = constant <f32: 0.0> : !r_column
  %acc_start = constant <f32: 0.0> : !r_acc

  %behind_full = mini %behind, %position signed : !int
  %full_from = divi %first, %BS signed : !int
  %full_to = divi %behind_full, %BS signed : !int
  %max_full, %sum_full, %acc_full, %read = call @seen_tiles<BT = R>(%queries, %k_tiles, %v_tiles, %b, %h, %scale_column,
      %scale_full, %full_from, %full_to, %max_start, %sum_start, %acc_start)

  %ours = call @in_span(%position, %first, %behind)
  %max, %sum, %acc = if %ours -> (!r_column, !r_column, !r_acc) {
    %key_tile = call @load_head(%k_view, %b, %h)
    %value_tile = call @load_head(%v_view, %b, %h)
    %key = reshape %key_tile : !head_tile -> !head
    %value = reshape %value_tile : !head_tile -> !head
    %j = divi %position, %BS signed : !int
    %tile_first = muli %j, %BS : !int
    %older, %new, %there = call @masks(%tile_first, %position)
    %there_row = reshape %there : !k_mask -> !k_mask_row
    %visible = broadcast %there_row : !k_mask_row -> !r_visible
    %k, %k_read = call @load_kv(%k_tiles, %b, %j, %h)
    %keys = call @with_new(%k, %key, %new)
    %products = call @scores<BT = R>(%queries, %keys)
    %hidden = constant <f32: 0xFF800000> : !r_scores  // -inf
    %scores = select %visible, %products, %hidden : !r_visible, !r_scores
    %v, %v_read = call @load_kv(%v_tiles, %b, %j, %h)
    %v_new = call @with_new(%v, %value, %new)
    %values = call @written(%v_new, %there)
    %weights, %max_new, %sum_new, %rescale = call @online_softmax<BT = R>(%scores, %scale_column, %scale_full, %max_full,
        %sum_full)
    %acc_new = call @add_values<BT = R>(%weights, %values, %acc_full, %rescale)
    // The reads of this tile would do: no other tile has these rows. But waiting for all of them keeps the compiler from
    // running ahead with more tiles than the registers hold.
    %all_read = join_tokens %read, %k_read, %v_read : token
    call @append(%k_cache_view, %b, %position, %h, %key, %all_read)
    call @append(%v_cache_view, %b, %position, %h, %value, %all_read)
    yield %max_new, %sum_new, %acc_new : !r_column, !r_column, !r_acc
  } else {
    yield %max_full, %sum_full, %acc_full : !r_column, !r_column, !r_acc
  }
  %acc_row = extract %acc[%zero, %zero] : !r_acc -> !head_f32
  %max_row = extract %max[%zero, %zero] : !r_column -> !real_1x1
  %sum_row = extract %sum[%zero, %zero] : !r_column -> !real_1x1
  %acc_tile = reshape %acc_row : !head_f32 -> !partial_tile
  call @store_span(%partial_view, %stats_view, %b, %h, %z, %acc_tile, %max_row, %sum_row)
  return
}

// Swap-AB: keys are the rows of a tile of scores, and the query repeated R times its columns, as few as the tensor cores
// take.

fragment @query_columns(%q: !head) -> !c_queries {
  %rows = broadcast %q : !head -> !queries
  %columns = permute %rows [1, 0] : !queries -> !c_queries
  yield %columns : !c_queries
}

fragment @scale_columns(%scale: !real_1x1) -> !c_scores {
  %scale_full = broadcast %scale : !real_1x1 -> !c_scores
  yield %scale_full : !c_scores
}

// (q @ k.T).T * scale
fragment @column_scores(%k: !kv, %queries: !c_queries, %scale: !c_scores) -> !c_scores {
  %empty = constant <f32: 0.0> : !c_scores
  %products = mmaf %k, %queries, %empty : !kv, !c_queries, !c_scores
  %scores = mulf %products, %scale : !c_scores
  yield %scores : !c_scores
}

// 2^(scores - max)
fragment @column_powers(%scores: !c_scores, %max: !c_row) -> !c_scores {
  %max_full = broadcast %max : !c_row -> !c_scores
  %below = subf %scores, %max_full : !c_scores
  %powers = exp2 %below flush_to_zero : !c_scores
  yield %powers : !c_scores
}

// acc + (weights @ v).T
fragment @add_column_values(%weights: !c_scores, %v: !kv, %acc: !c_acc) -> !c_acc {
  %rounded = ftof %weights : !c_scores -> !c_weights
  %v_turned = permute %v [1, 0] : !kv -> !kv_turned
  %next = mmaf %v_turned, %rounded, %acc : !kv_turned, !c_weights, !c_acc
  yield %next : !c_acc
}

// The scores of keys that are not older: the new key's own, and the least score where the cache is unwritten
fragment @new_scores(%q: !head, %key: !head, %scale: !real_1x1, %there: !k_mask) -> !c_scores {
  %there_full = broadcast %there : !k_mask -> !c_visible
  %q_f32 = ftof %q : !head -> !head_f32
  %key_f32 = ftof %key : !head -> !head_f32
  %products = mulf %q_f32, %key_f32 : !head_f32
  %product_1x1 = call @sum_in_rows<R = 1, BC = D>(%products)
  %new = mulf %product_1x1, %scale : !real_1x1
  %new_full = broadcast %new : !real_1x1 -> !c_scores
  // Below every score, and finite: the difference of two of them is 0 and not NaN.
  %least = constant <f32: -1.0e30> : !c_scores
  %scores = select %there_full, %new_full, %least : !c_visible, !c_scores
  yield %scores : !c_scores
}

// The scores of older keys, and those of the others
fragment @older_or(%scores: !c_scores, %older: !k_mask, %others: !c_scores) -> !c_scores {
  %older_full = broadcast %older : !k_mask -> !c_visible
  %all = select %older_full, %scores, %others : !c_visible, !c_scores
  yield %all : !c_scores
}

// The maximum, the sum of weights and the weighted sum of values of a masked tile. %scores are masked already; the values get
// the new one in its place, and zeros where the cache is unwritten. Keys outside of %weighing get no weight: if the tile is
// all unwritten, its maximum is the least score, and each power 1.
fragment @masked_tile(%scores: !c_scores, %v: !kv, %value: !head, %older: !k_mask, %there: !k_mask, %weighing: !k_mask)
    -> (!c_row, !c_row, !c_acc) {
  %nothing = constant <f32: 0.0> : !c_scores
  %empty = constant <f32: 0.0> : !c_acc
  %max = call @max_in_columns<R = BS, BC = R>(%scores)
  %powers = call @column_powers(%scores, %max)
  %weighing_full = broadcast %weighing : !k_mask -> !c_visible
  %weights = select %weighing_full, %powers, %nothing : !c_visible, !c_scores
  %sum = call @sum_in_columns<R = BS, BC = R>(%weights)
  %older_full = broadcast %older : !k_mask -> !kv_mask
  %value_full = broadcast %value : !head -> !kv
  %new_or_nothing = call @written(%value_full, %there)
  %values = select %older_full, %v, %new_or_nothing : !kv_mask, !kv
  %acc = call @add_column_values(%weights, %values, %empty)
  yield %max, %sum, %acc : !c_row, !c_row, !c_acc
}

// Store the first of the R equal columns.
fragment @store_span_column(%partial: !spans, %stats: !spans, %b: !int, %h: !int, %z: !int, %acc: !c_acc, %max: !c_row,
    %sum: !c_row) {
  %zero = constant <i32: 0> : !int
  %acc_column = extract %acc[%zero, %zero] : !c_acc -> !c_first
  %acc_tile = reshape %acc_column : !c_first -> !partial_tile
  %max_1x1 = extract %max[%zero, %zero] : !c_row -> !real_1x1
  %sum_1x1 = extract %sum[%zero, %zero] : !c_row -> !real_1x1
  call @store_span(%partial, %stats, %b, %h, %z, %acc_tile, %max_1x1, %sum_1x1)
}

// Looped: the tiles of BS positions before the new one, or of the span, one after another. The last of them comes first: it
// alone is masked, and it is read before the wait for the launches before, as no other kernel writes the caches.
//
// The holes: `block` yields its sequence and head; `range` its first and last tile; `weighing` says which keys of the last
// tile may have a weight; `finish` stores.
skeleton @decode_looped {
  %k_tiles = make_partition_view %k_cache_view : !kv_part
  %v_tiles = make_partition_view %v_cache_view : !kv_part
  %b, %h = hole @block -> (!int, !int)
  %one = constant <i32: 1> : !int
  %BS = constant <i32: BS> : !int
  %position, %position_read = call @load_position(%positions_view, %b)
  %current = divi %position, %BS signed : !int
  %first, %last = hole @range(%current) -> (!int, !int)
  %near_k, %k_read = call @load_kv(%k_tiles, %b, %last, %h)
  %near_v, %v_read = call @load_kv(%v_tiles, %b, %last, %h)
  // The wait comes after these reads by the last one's token: else the compiler may put it first. With both tokens they
  // would be made one after the other.
  %ahead = join_tokens %position_read, %v_read : token
  %ready = gdc_wait_tko token = %ahead -> token
  %q, %key, %value = call @load_new(%q_view, %k_view, %v_view, %b, %h)
  %queries = call @query_columns(%q)
  %scale_log2 = call @scale_log2(%scale)
  %scale_full = call @scale_columns(%scale_log2)

  %near_first = muli %last, %BS : !int
  %older, %new, %there = call @masks(%near_first, %position)
  %near_new = call @new_scores(%q, %key, %scale_log2, %there)
  %near_older = call @column_scores(%near_k, %queries, %scale_full)
  %near_scores = call @older_or(%near_older, %older, %near_new)
  %weighing = hole @weighing(%there) -> !k_mask
  %near_max, %near_sum, %near_acc = call @masked_tile(%near_scores, %near_v, %value, %older, %there, %weighing)

  %max, %sum, %acc = for %j in (%first to %last, step %one) : !int
      iter_values(%max_old = %near_max, %sum_old = %near_sum, %acc_old = %near_acc) -> (!c_row, !c_row, !c_acc) {
    %k, %k_token = call @load_kv(%k_tiles, %b, %j, %h)
    %v, %v_token = call @load_kv(%v_tiles, %b, %j, %h)
    %scores = call @column_scores(%k, %queries, %scale_full)
    %top = call @max_in_columns<R = BS, BC = R>(%scores)
    %max_new = maxf %max_old, %top : !c_row
    %fall = subf %max_old, %max_new : !c_row
    %rescale = exp2 %fall flush_to_zero : !c_row
    %weights = call @column_powers(%scores, %max_new)
    %tile_sum = call @sum_in_columns<R = BS, BC = R>(%weights)
    %sum_new = fma %sum_old, %rescale, %tile_sum : !c_row
    %rescale_full = broadcast %rescale : !c_row -> !c_acc
    %rescaled = mulf %acc_old, %rescale_full : !c_acc
    %acc_new = call @add_column_values(%weights, %v, %rescaled)
    continue %max_new, %sum_new, %acc_new : !c_row, !c_row, !c_acc
  }
  hole @finish(%max, %sum, %acc, %b, %h, %position, %key, %value, %k_read, %ready)
  return
}

// All of a sequence's cache
kernel @decode_attention_unsplit op = decode_attention_unsplit, skeleton = @decode_looped {
  @block {
    %block_h, %block_b, %unused = get_tile_block_id : !int
    yield %block_b, %block_h : !int, !int
  }
  @range(%current) {
    %zero = constant <i32: 0> : !int
    yield %zero, %current : !int, !int
  }
  // The new key is always in this tile, so that the least score has weight 0 already.
  @weighing(%there) {
    %all = constant <i1: true> : !k_mask
    yield %all : !k_mask
  }
  @finish(%max, %sum, %acc, %b, %h, %position, %key, %value, %k_read, %ready) {
    %read = join_tokens %k_read, %ready : token
    call @append(%k_cache_view, %b, %position, %h, %key, %read)
    call @append(%v_cache_view, %b, %position, %h, %value, %ready)
    %out_tiles = make_partition_view %out_view : !head_part
    %unit = constant <f32: 1.0> : !c_row
    %inverse = divf %unit, %sum : !c_row
    %inverse_full = broadcast %inverse : !c_row -> !c_acc
    %mean = mulf %acc, %inverse_full : !c_acc
    %column = extract %mean[%zero, %zero] : !c_acc -> !c_first
    %result = ftof %column : !c_first -> !c_result
    %tile = reshape %result : !c_result -> !head_tile
    %stored = store_view_tko weak %tile, %out_tiles[%b, %h, %zero] optimization_hints = <default = {allow_tma = false}>
        : !head_tile, !head_part, !int -> token
  }
}

// One span
kernel @decode_attention_looped op = decode_attention, skeleton = @decode_looped {
  @block {
    %z, %block_h, %block_b = get_tile_block_id : !int
    yield %block_b, %block_h : !int, !int
  }
  // From the span's first tile to the one with the new position, or the span's last one, or its first one
  @range(%current) {
    %one = constant <i32: 1> : !int
    %BS = constant <i32: BS> : !int
    %SPAN = constant <i32: SPAN> : !int
    %tiles = divi %SPAN, %BS signed : !int
    %first = muli %z, %tiles : !int
    %behind = addi %first, %tiles : !int
    %last_of_span = subi %behind, %one : !int
    %nearer = mini %current, %last_of_span signed : !int
    %last = maxi %nearer, %first signed : !int
    yield %first, %last : !int, !int
  }
  @weighing(%there) { yield %there : !k_mask }
  @finish(%max, %sum, %acc, %b, %h, %position, %key, %value, %k_read, %ready) {
    %span_first = muli %z, %SPAN : !int
    %span_behind = addi %span_first, %SPAN : !int
    %ours = call @in_span(%position, %span_first, %span_behind)
    if %ours {
      // The other tiles do not have these rows, and no other block reads them.
      %read = join_tokens %k_read, %ready : token
      call @append(%k_cache_view, %b, %position, %h, %key, %read)
      call @append(%v_cache_view, %b, %position, %h, %value, %ready)
    }
    call @store_span_column(%partial_view, %stats_view, %b, %h, %z, %acc, %max, %sum)
  }
}

// One span in one tile. The caches are read before the wait for the launches before, as no other kernel writes them. Blocks
// whose span is unwritten read the first such span: that costs the traffic to memory once.
//
// The holes: `ahead` comes before the wait; `attend` does the rest.
skeleton @decode_one_tile {
  %k_tiles = make_partition_view %k_cache_view : !span_part
  %v_tiles = make_partition_view %v_cache_view : !span_part
  %z, %h, %b = get_tile_block_id : !int
  %one = constant <i32: 1> : !int
  %SPAN = constant <i32: SPAN> : !int
  %position, %position_read = call @load_position(%positions_view, %b)
  %current = divi %position, %SPAN signed : !int
  %unwritten = addi %current, %one : !int
  %near = mini %z, %unwritten signed : !int
  %k, %k_read = call @load_kv<BS = SPAN>(%k_tiles, %b, %near, %h)
  %v, %v_read = call @load_kv<BS = SPAN>(%v_tiles, %b, %near, %h)
  %first = muli %z, %SPAN : !int
  %behind = addi %first, %SPAN : !int
  hole @ahead(%first, %position)
  // The wait comes after these reads by their tokens: else the compiler may put it first, and the stores of the new rows
  // would not come after their reads.
  %ahead = join_tokens %position_read, %k_read, %v_read : token
  %ready = gdc_wait_tko token = %ahead -> token
  %q, %key, %value = call @load_new(%q_view, %k_view, %v_view, %b, %h)
  %scale_log2 = call @scale_log2(%scale)
  hole @attend(%q, %k, %v, %key, %value, %scale_log2, %first, %behind, %position, %b, %h, %z, %ready)
  return
}

// On the tensor cores, with swap-AB. Only spans from the new position on mask anything.
kernel @decode_attention_swap_ab op = decode_attention, skeleton = @decode_one_tile {
  @attend(%q, %k, %v, %key, %value, %scale_log2, %first, %behind, %position, %b, %h, %z, %ready) {
    %queries = call @query_columns(%q)
    %scale_full = call @scale_columns<BS = SPAN>(%scale_log2)
    %scores = call @column_scores<BS = SPAN>(%k, %queries, %scale_full)
    %empty = constant <f32: 0.0> : !c_acc
    %old = cmpi less_than_or_equal %behind, %position, signed : !int -> !flag
    %max, %sum, %acc = if %old -> (!c_row, !c_row, !c_acc) {
      %old_max = call @max_in_columns<R = SPAN, BC = R>(%scores)
      %old_weights = call @column_powers<BS = SPAN>(%scores, %old_max)
      %old_sum = call @sum_in_columns<R = SPAN, BC = R>(%old_weights)
      %old_acc = call @add_column_values<BS = SPAN>(%old_weights, %v, %empty)
      yield %old_max, %old_sum, %old_acc : !c_row, !c_row, !c_acc
    } else {
      %older, %new, %there = call @masks<BS = SPAN>(%first, %position)
      %others = call @new_scores<BS = SPAN>(%q, %key, %scale_log2, %there)
      %new_scores = call @older_or<BS = SPAN>(%scores, %older, %others)
      %new_max, %new_sum, %new_acc = call @masked_tile<BS = SPAN>(%new_scores, %v, %value, %older, %there, %there)
      %ours = cmpi less_than_or_equal %first, %position, signed : !int -> !flag
      if %ours {
        call @append(%k_cache_view, %b, %position, %h, %key, %ready)
        call @append(%v_cache_view, %b, %position, %h, %value, %ready)
      }
      yield %new_max, %new_sum, %new_acc : !c_row, !c_row, !c_acc
    }
    call @store_span_column(%partial_view, %stats_view, %b, %h, %z, %acc, %max, %sum)
  }
}

// Element by element, without the tensor cores
kernel @decode_attention_one_head op = decode_attention, skeleton = @decode_one_tile {
  @ahead(%first, %position) { %older, %new, %there = call @masks<BS = SPAN>(%first, %position) }
  @attend(%q, %k, %v, %key, %value, %scale_log2, %first, %behind, %position, %b, %h, %z, %ready) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %acc, %max, %weights = call @attend_by_element<BS = SPAN>(%q, %k, %v, %key, %value, %scale_log2, %new, %there)
    // With the sum made before these stores the compiler allocates other registers.
    call @store_partial(%partial_view, %b, %h, %z, %acc)
    call @store_stat(%stats_view, %b, %h, %z, %zero, %max)
    %sum = call @sum_in_columns<R = SPAN, BC = 1>(%weights)
    call @store_stat(%stats_view, %b, %h, %z, %one, %sum)
    %ours = call @in_span(%position, %first, %behind)
    if %ours {
      call @append(%k_cache_view, %b, %position, %h, %key, %ready)
      call @append(%v_cache_view, %b, %position, %h, %value, %ready)
    }
  }
}

// A span's weighted sum of values, its maximum, and its weights
fragment @attend_by_element(%q: !head, %k: !kv, %v: !kv, %key: !head, %value: !head, %scale: !real_1x1, %new: !k_mask,
    %there: !k_mask) -> (!partial_tile, !real_1x1, !e_scores) {
  %q_f32 = ftof %q : !head -> !head_f32
  %keys = call @with_new(%k, %key, %new)
  %keys_f32 = ftof %keys : !kv -> !kv_f32
  %v_new = call @with_new(%v, %value, %new)
  %values = call @written(%v_new, %there)
  %values_f32 = ftof %values : !kv -> !kv_f32

  %scale_full = broadcast %scale : !real_1x1 -> !e_scores
  %q_full = broadcast %q_f32 : !head_f32 -> !kv_f32
  %products = mulf %keys_f32, %q_full : !kv_f32
  %dots = call @sum_in_rows<R = BS, BC = D>(%products)
  %scaled = mulf %dots, %scale_full : !e_scores
  // Below every score, and finite: the difference of two of them is 0 and not NaN.
  %least = constant <f32: -1.0e30> : !e_scores
  %scores = select %there, %scaled, %least : !k_mask, !e_scores
  %max = call @max_in_columns<R = BS, BC = 1>(%scores)
  %max_full = broadcast %max : !real_1x1 -> !e_scores
  %below = subf %scores, %max_full : !e_scores
  %powers = exp2 %below flush_to_zero : !e_scores
  // No weight where the cache is unwritten: in a span that is all unwritten the maximum is the least score.
  %nothing = constant <f32: 0.0> : !e_scores
  %weights = select %there, %powers, %nothing : !k_mask, !e_scores
  %weights_full = broadcast %weights : !e_scores -> !kv_f32
  %weighted = mulf %weights_full, %values_f32 : !kv_f32
  %acc = call @sum_in_columns<R = BS, BC = D>(%weighted)
  %acc_tile = reshape %acc : !head_f32 -> !partial_tile
  yield %acc_tile, %max, %weights : !partial_tile, !real_1x1, !e_scores
}
