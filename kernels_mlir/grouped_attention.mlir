// Causal attention with grouped queries: Q heads of queries share one head of keys and values.
//
// A block makes BT queries of BQ such heads, ROWS = BT * BQ rows of one tile, and walks the keys in tiles of BS with the
// online softmax of attention.mlir: the tile's keys and values are read once for all of them. Rows go through the heads of
// one query first. Heads past Q are zeros, and what is made of them is dropped.

include "attention.mlir"

sizes BT = 16, BQ = 4, ROWS = 64, BS = 64, D = 64, GROUP = 8

!grouped = !cuda_tile.tensor_view<?x?x?x?x?xT, strides=[?,?,?,?,1]>
!grouped_in = !cuda_tile.partition_view<tile=(1xBTx1xBQxD), padding_value = zero, !grouped>
!grouped_out = !cuda_tile.partition_view<tile=(1xBTx1xBQxD), !grouped>
!grouped_tile = !cuda_tile.tile<1xBTx1xBQxDxT>
!rows_q = !cuda_tile.tile<ROWSxDxT>
!rows_lanes = !cuda_tile.tile<ROWSxi32>
!rows_positions = !cuda_tile.tile<ROWSxBSxi32>
!rows_lanes_column = !cuda_tile.tile<ROWSx1xi32>
!rows_column = !cuda_tile.tile<ROWSx1xf32>
!rows_scores = !cuda_tile.tile<ROWSxBSxf32>
!rows_acc = !cuda_tile.tile<ROWSxDxf32>

// The positions of the queries of ROWS rows, of which the first is at %first
fragment @grouped_positions(%first: !int) -> !rows_positions {
  %lanes = iota : !rows_lanes
  %heads = constant <i32: BQ> : !rows_lanes
  %offsets = divi %lanes, %heads signed : !rows_lanes
  %offsets_column = reshape %offsets : !rows_lanes -> !rows_lanes_column
  %first_1x1 = reshape %first : !int -> !int_1x1
  %first_column = broadcast %first_1x1 : !int_1x1 -> !rows_lanes_column
  %q_column = addi %first_column, %offsets_column : !rows_lanes_column
  %q_positions = broadcast %q_column : !rows_lanes_column -> !rows_positions
  yield %q_positions : !rows_positions
}

// The order of the blocks is that of attention.mlir.
kernel @grouped_attention op = grouped_attention {
  %q_tiles = make_partition_view %q_view : !grouped_in
  %k_tiles = make_partition_view %k_view : !kv_part
  %v_tiles = make_partition_view %v_view : !kv_part
  %out_tiles = make_partition_view %out_view : !grouped_out
  %head_part, %in_group, %turn_of_group = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BT = constant <i32: BT> : !int
  %BQ = constant <i32: BQ> : !int
  %BS = constant <i32: BS> : !int
  %GROUP = constant <i32: GROUP> : !int
  %parts = divi %Q, %BQ signed rounding<positive_inf> : !int
  %g = divi %head_part, %parts signed : !int
  %part = remi %head_part, %parts signed : !int
  %tiles = divi %T, %BT signed rounding<positive_inf> : !int
  %group = divi %turn_of_group, %tiles signed : !int
  %turn = remi %turn_of_group, %tiles signed : !int
  %before = muli %group, %GROUP : !int
  %b = addi %before, %in_group : !int
  %last = subi %tiles, %one : !int
  %i = subi %last, %turn : !int
  %ready = gdc_wait_tko -> token

  %past = subi %S, %T : !int
  %i_first = muli %i, %BT : !int
  %first = addi %past, %i_first : !int
  %q_positions = call @grouped_positions(%first)
  %k_lanes_flat = iota : !k_lanes
  %k_lanes = reshape %k_lanes_flat : !k_lanes -> !k_positions

  // The block's first query sees first + 1 keys, its last one those before first + BT, and there are S of them.
  %seen_by_first = addi %first, %one : !int
  %unmasked_there = divi %seen_by_first, %BS signed : !int
  %behind = addi %first, %BT : !int
  %seen = mini %behind, %S signed : !int
  %steps_there = divi %seen, %BS signed rounding<positive_inf> : !int
  %there = cmpi less_than %b, %B, signed : !int -> !flag
  %unmasked = select %there, %unmasked_there, %zero : !flag, !int
  %steps = select %there, %steps_there, %zero : !flag, !int

  %q_tile, %q_read = load_view_tko weak %q_tiles[%b, %i, %g, %part, %zero] : !grouped_in, !int -> !grouped_tile, token
  %q = reshape %q_tile : !grouped_tile -> !rows_q
  %scale_log2 = call @scale_log2(%scale)
  %scale_column = broadcast %scale_log2 : !real_1x1 -> !rows_column
  %scale_full = broadcast %scale_log2 : !real_1x1 -> !rows_scores
  %max_start = constant <f32: 0xFF800000> : !rows_column  // -inf
  %sum_start = constant <f32: 0.0> : !rows_column
  %acc_start = constant <f32: 0.0> : !rows_acc
  // First the tiles that all queries of the block see, then those that the causal mask cuts
  %max_seen, %sum_seen, %acc_seen, %read = call @seen_tiles<BT = ROWS>(%q, %k_tiles, %v_tiles, %b, %g, %scale_column,
      %scale_full, %zero, %unmasked, %max_start, %sum_start, %acc_start)
  %max, %sum, %acc = call @masked_tiles<BT = ROWS>(%q, %k_tiles, %v_tiles, %b, %g, %q_positions, %k_lanes, %scale_column,
      %scale_full, %unmasked, %steps, %max_seen, %sum_seen, %acc_seen)
  %unit = constant <f32: 1.0> : !rows_column
  %inverse = divf %unit, %sum : !rows_column
  %inverse_full = broadcast %inverse : !rows_column -> !rows_acc
  %mean = mulf %acc, %inverse_full : !rows_acc
  %result = ftof %mean : !rows_acc -> !rows_q
  %out_tile = reshape %result : !rows_q -> !grouped_tile
  %stored = store_view_tko weak %out_tile, %out_tiles[%b, %i, %g, %part, %zero]
      : !grouped_tile, !grouped_out, !int -> token
  return
}
