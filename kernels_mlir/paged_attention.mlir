// Causal attention over a cache in pages (pages.mlir), with grouped queries: Q heads of queries share one head of keys.
//
// Query t of sequence b stands at position positions[b] + t and sees the keys up to its own. What stands behind the sequence's
// last position is of no one, or of a former text: it may be anything, NaN too. A block makes BT queries of BQ heads, ROWS = BT *
// BQ rows of one tile, heads first, with the online softmax of attention.mlir; a page holds whole tiles of BS keys. It walks all
// keys (grid (heads, B, tiles of queries)), or one span of SPAN positions with BT = 1 (grid (heads, B, Z)), for `merge_attention`.

include "attention.mlir"
include "pages.mlir"

sizes BT = 16, BQ = 4, ROWS = 64, BS = 64, D = 64, SPAN = 256

!grouped = !cuda_tile.tensor_view<?x?x?x?x?xT, strides=[?,?,?,?,1]>
!grouped_in = !cuda_tile.partition_view<tile=(1xBTx1xBQxD), padding_value = zero, !grouped>
!grouped_out = !cuda_tile.partition_view<tile=(1xBTx1xBQxD), !grouped>
!grouped_tile = !cuda_tile.tile<1xBTx1xBQxDxT>
!five = !cuda_tile.tensor_view<?x?x?x?x?xf32, strides=[?,?,?,?,1]>
!partial_part = !cuda_tile.partition_view<tile=(1x1xROWSx1xD), !five>
!stat_part = !cuda_tile.partition_view<tile=(1x1xROWSx1x1), !five>
!partial_tile = !cuda_tile.tile<1x1xROWSx1xDxf32>
!stat_tile = !cuda_tile.tile<1x1xROWSx1x1xf32>
!rows_q = !cuda_tile.tile<ROWSxDxT>
!rows_lanes = !cuda_tile.tile<ROWSxi32>
!rows_lanes_column = !cuda_tile.tile<ROWSx1xi32>
!rows_positions = !cuda_tile.tile<ROWSxBSxi32>
!rows_column = !cuda_tile.tile<ROWSx1xf32>
!rows_scores = !cuda_tile.tile<ROWSxBSxf32>
!rows_acc = !cuda_tile.tile<ROWSxDxf32>
!k_place_column = !cuda_tile.tile<BSx1xi32>
!written = !cuda_tile.tile<BSx1xi1>
!written_full = !cuda_tile.tile<BSxDxi1>

// Tile j of a sequence's keys and of its values: which tile of which page
fragment @tile_of(%tables: !table_part, %b: !int, %j: !int, %PAGE: !int) -> (!int, !int) {
  %BS = constant <i32: BS> : !int
  %count = divi %PAGE, %BS signed : !int
  %page, %at = call @page_of(%tables, %b, %j, %count)
  yield %page, %at : !int, !int
}

// The holes: `tile` says which tile of queries the block makes; `walk` which keys it walks: from %from to %to those that all its
// queries see, then up to %stop those that the causal mask cuts; `finish` stores the result.
skeleton @paged {
  %q_tiles = make_partition_view %q_view : !grouped_in
  %k_tiles = make_partition_view %k_cache_view : !kv_part
  %v_tiles = make_partition_view %v_cache_view : !kv_part
  %table_tiles = make_partition_view %tables_view : !table_part
  %position_tiles = make_partition_view %positions_view : !index_part
  %head_part, %b, %turn = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BT = constant <i32: BT> : !int
  %BQ = constant <i32: BQ> : !int
  %BS = constant <i32: BS> : !int
  %parts = divi %Q, %BQ signed rounding<positive_inf> : !int
  %g = divi %head_part, %parts signed : !int
  %part = remi %head_part, %parts signed : !int
  %i = hole @tile(%turn) -> !int
  %start_tile, %start_read = load_view_tko weak %position_tiles[%b] optimization_hints = <default = {allow_tma = false}>
      : !index_part, !int -> !int_1, token
  %start = reshape %start_tile : !int_1 -> !int
  %i_first = muli %i, %BT : !int
  %first = addi %start, %i_first : !int
  %end = addi %start, %T : !int

  // The block's first query sees first + 1 keys, its last one those before first + BT, and the sequence has %end.
  %seen_by_first = addi %first, %one : !int
  %whole = divi %seen_by_first, %BS signed : !int
  %behind = addi %first, %BT : !int
  %seen = mini %behind, %end signed : !int
  %steps = divi %seen, %BS signed rounding<positive_inf> : !int
  %from, %to, %stop = hole @walk(%turn, %whole, %steps) -> (!int, !int, !int)

  %q_positions = call @grouped_positions(%first)
  %k_lanes_flat = iota : !k_lanes
  %k_lanes = reshape %k_lanes_flat : !k_lanes -> !k_positions
  %k_column = reshape %k_lanes_flat : !k_lanes -> !k_place_column

  %q_tile, %q_read = load_view_tko weak %q_tiles[%b, %i, %g, %part, %zero] : !grouped_in, !int -> !grouped_tile, token
  %q = reshape %q_tile : !grouped_tile -> !rows_q
  %scale_log2 = call @scale_log2(%scale)
  %scale_column = broadcast %scale_log2 : !real_1x1 -> !rows_column
  %scale_full = broadcast %scale_log2 : !real_1x1 -> !rows_scores
  // Below every score, and finite: the difference of two of them is 0 and not NaN.
  %max_start = constant <f32: -1.0e30> : !rows_column
  %sum_start = constant <f32: 0.0> : !rows_column
  %acc_start = constant <f32: 0.0> : !rows_acc
  %max_seen, %sum_seen, %acc_seen = for %j in (%from to %to, step %one) : !int
      iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start)
      -> (!rows_column, !rows_column, !rows_acc) {
    %page, %at = call @tile_of(%table_tiles, %b, %j, %PAGE)
    %k, %k_read = call @load_kv(%k_tiles, %page, %at, %g)
    %scores = call @scores<BT = ROWS>(%q, %k)
    %weights, %max_new, %sum_new, %rescale = call @online_softmax<BT = ROWS>(%scores, %scale_column, %scale_full, %max_old,
        %sum_old)
    %v, %v_read = call @load_kv(%v_tiles, %page, %at, %g)
    %acc_new = call @add_values<BT = ROWS>(%weights, %v, %acc_old, %rescale)
    continue %max_new, %sum_new, %acc_new : !rows_column, !rows_column, !rows_acc
  }
  %max, %sum, %acc = for %j in (%to to %stop, step %one) : !int
      iter_values(%max_old = %max_seen, %sum_old = %sum_seen, %acc_old = %acc_seen)
      -> (!rows_column, !rows_column, !rows_acc) {
    %page, %at = call @tile_of(%table_tiles, %b, %j, %PAGE)
    %k, %k_read = call @load_kv(%k_tiles, %page, %at, %g)
    %products = call @scores<BT = ROWS>(%q, %k)
    %scores = call @causal<BT = ROWS>(%products, %j, %q_positions, %k_lanes)
    %weights, %max_new, %sum_new, %rescale = call @online_softmax<BT = ROWS>(%scores, %scale_column, %scale_full, %max_old,
        %sum_old)
    %v, %v_read = call @load_kv(%v_tiles, %page, %at, %g)
    %values = call @written_values(%v, %j, %k_column, %end)
    %acc_new = call @add_values<BT = ROWS>(%weights, %values, %acc_old, %rescale)
    continue %max_new, %sum_new, %acc_new : !rows_column, !rows_column, !rows_acc
  }
  hole @finish(%b, %g, %part, %turn, %max, %sum, %acc)
  return
}

// The values of tile j, with zeros for those behind the last position: a weight of 0 does not undo a NaN
fragment @written_values(%v: !kv, %j: !int, %lanes: !k_place_column, %end: !int) -> !kv {
  %BS = constant <i32: BS> : !int
  %first = muli %j, %BS : !int
  %left = subi %end, %first : !int
  %left_1x1 = reshape %left : !int -> !int_1x1
  %left_column = broadcast %left_1x1 : !int_1x1 -> !k_place_column
  %written = cmpi less_than %lanes, %left_column, signed : !k_place_column -> !written
  %written_full = broadcast %written : !written -> !written_full
  %nothing = constant <T: 0.0> : !kv
  %values = select %written_full, %v, %nothing : !written_full, !kv
  yield %values : !kv
}

kernel @paged_attention op = paged_attention, skeleton = @paged {
  @tile(%turn) { yield %turn : !int }
  @walk(%turn, %whole, %steps) {
    %none = constant <i32: 0> : !int
    yield %none, %whole, %steps : !int, !int, !int
  }
  @finish(%b, %g, %part, %turn, %max, %sum, %acc) {
    %zero = constant <i32: 0> : !int
    %out_tiles = make_partition_view %out_view : !grouped_out
    %unit = constant <f32: 1.0> : !rows_column
    %inverse = divf %unit, %sum : !rows_column
    %inverse_full = broadcast %inverse : !rows_column -> !rows_acc
    %mean = mulf %acc, %inverse_full : !rows_acc
    %result = ftof %mean : !rows_acc -> !rows_q
    %out_tile = reshape %result : !rows_q -> !grouped_tile
    %stored = store_view_tko weak %out_tile, %out_tiles[%b, %turn, %g, %part, %zero]
        : !grouped_tile, !grouped_out, !int -> token
  }
}

kernel @paged_decode_attention op = paged_decode_attention, skeleton = @paged {
  @tile(%turn) {
    %only = constant <i32: 0> : !int
    yield %only : !int
  }
  @walk(%turn, %whole, %steps) {
    %tiles = constant <i32: SPAN> : !int
    %BS = constant <i32: BS> : !int
    %per_span = divi %tiles, %BS signed : !int
    %from = muli %turn, %per_span : !int
    %last = addi %from, %per_span : !int
    %not_over = mini %whole, %last signed : !int
    %to = maxi %not_over, %from signed : !int
    %stop = mini %steps, %last signed : !int
    yield %from, %to, %stop : !int, !int, !int
  }
  @finish(%b, %g, %part, %turn, %max, %sum, %acc) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %partial_tiles = make_partition_view %partial_view : !partial_part
    %stat_tiles = make_partition_view %stats_view : !stat_part
    %acc_tile = reshape %acc : !rows_acc -> !partial_tile
    %max_tile = reshape %max : !rows_column -> !stat_tile
    %sum_tile = reshape %sum : !rows_column -> !stat_tile
    %t0 = store_view_tko weak %acc_tile, %partial_tiles[%b, %g, %part, %turn, %zero]
        optimization_hints = <default = {allow_tma = false}> : !partial_tile, !partial_part, !int -> token
    %t1 = store_view_tko weak %max_tile, %stat_tiles[%b, %g, %part, %turn, %zero]
        optimization_hints = <default = {allow_tma = false}> : !stat_tile, !stat_part, !int -> token
    %t2 = store_view_tko weak %sum_tile, %stat_tiles[%b, %g, %part, %turn, %one]
        optimization_hints = <default = {allow_tma = false}> : !stat_tile, !stat_part, !int -> token
  }
}
