// Attention of one token of each sequence over its cache, with grouped queries. The token's own key and value are in the cache
// already (rope_append). Behind the token's position the cache is unwritten: it may hold anything, NaN too.
//
// A block takes the BQ heads of queries that share one head of keys, as rows of one tile: each key and value is read once for
// all of them. Heads past Q are zeros, and what is made of them is dropped. It walks one span of SPAN positions (grid
// (Z, G, B); `merge_attention` combines the spans) or all of the cache (grid (G, B)), in tiles of BS.

include "attention.mlir"

sizes BQ = 16, BS = 64, D = 64, SPAN = 128

!grouped_q = !cuda_tile.partition_view<tile=(1x1xBQxD), padding_value = zero, !batch>
!grouped_result = !cuda_tile.partition_view<tile=(1x1xBQxD), !batch>
!five = !cuda_tile.tensor_view<?x?x?x?x?xf32, strides=[?,?,?,?,1]>
!partial_part = !cuda_tile.partition_view<tile=(1x1xBQx1xD), !five>
!stat_part = !cuda_tile.partition_view<tile=(1x1xBQx1x1), !five>
!partial_tile = !cuda_tile.tile<1x1xBQx1xDxf32>
!stat_tile = !cuda_tile.tile<1x1xBQx1x1xf32>
!queries_tile = !cuda_tile.tile<1x1xBQxDxT>
!queries = !cuda_tile.tile<BQxDxT>
!q_scores = !cuda_tile.tile<BQxBSxf32>
!q_visible = !cuda_tile.tile<BQxBSxi1>
!q_column = !cuda_tile.tile<BQx1xf32>
!q_acc = !cuda_tile.tile<BQxDxf32>
!key_column = !cuda_tile.tile<BSx1xi32>
!key_mask = !cuda_tile.tile<BSx1xi1>
!key_mask_row = !cuda_tile.tile<1xBSxi1>
!kv_mask = !cuda_tile.tile<BSxDxi1>

// Which keys of the tile from %first on are written: those up to %position
fragment @written_keys(%first: !int, %position: !int) -> !key_mask {
  %lanes = iota : !k_lanes
  %first_1 = reshape %first : !int -> !int_1
  %firsts = broadcast %first_1 : !int_1 -> !k_lanes
  %places = addi %firsts, %lanes : !k_lanes
  %column = reshape %places : !k_lanes -> !key_column
  %position_1x1 = reshape %position : !int -> !int_1x1
  %positions = broadcast %position_1x1 : !int_1x1 -> !key_column
  %written = cmpi less_than_or_equal %column, %positions, signed : !key_column -> !key_mask
  yield %written : !key_mask
}

// The tile of keys and values with the token's position, of which the keys behind it are masked
fragment @last_tile(%q: !queries, %k_tiles: !kv_part, %v_tiles: !kv_part, %b: !int, %g: !int, %j: !int, %position: !int,
    %scale_column: !q_column, %scale_full: !q_scores, %max_old: !q_column, %sum_old: !q_column, %acc_old: !q_acc)
    -> (!q_column, !q_column, !q_acc) {
  %BS = constant <i32: BS> : !int
  %first = muli %j, %BS : !int
  %written = call @written_keys(%first, %position)
  %written_row = reshape %written : !key_mask -> !key_mask_row
  %visible = broadcast %written_row : !key_mask_row -> !q_visible
  %k, %k_read = call @load_kv(%k_tiles, %b, %j, %g)
  %products = call @scores<BT = BQ>(%q, %k)
  %hidden = constant <f32: 0xFF800000> : !q_scores  // -inf
  %scores = select %visible, %products, %hidden : !q_visible, !q_scores
  %v, %v_read = call @load_kv(%v_tiles, %b, %j, %g)
  %written_full = broadcast %written : !key_mask -> !kv_mask
  %nothing = constant <T: 0.0> : !kv
  %values = select %written_full, %v, %nothing : !kv_mask, !kv
  %weights, %max, %sum, %rescale = call @online_softmax<BT = BQ>(%scores, %scale_column, %scale_full, %max_old, %sum_old)
  %acc = call @add_values<BT = BQ>(%weights, %values, %acc_old, %rescale)
  yield %max, %sum, %acc : !q_column, !q_column, !q_acc
}

// The holes: `span` says which tiles are walked, those before the one with the token's position, and whether that one is too;
// `walk` makes maximum, sum and weighted values of them; `finish` stores the result.
skeleton @grouped_decode {
  %q_tiles = make_partition_view %q_view : !grouped_q
  %position_tiles = make_partition_view %positions_view : !index_part
  %head_part, %b, %z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %BS = constant <i32: BS> : !int
  %BQ = constant <i32: BQ> : !int
  %parts = divi %Q, %BQ signed rounding<positive_inf> : !int
  %g = divi %head_part, %parts signed : !int
  %part = remi %head_part, %parts signed : !int
  %position_tile, %position_read = load_view_tko weak %position_tiles[%b] optimization_hints = <default = {allow_tma = false}>
      : !index_part, !int -> !int_1, token
  %position = reshape %position_tile : !int_1 -> !int
  %from, %to, %ours = hole @span(%position, %z) -> (!int, !int, !flag)
  %q_tile, %q_read = load_view_tko weak %q_tiles[%b, %g, %part, %zero] : !grouped_q, !int -> !queries_tile, token
  %q = reshape %q_tile : !queries_tile -> !queries
  %scale_log2 = call @scale_log2(%scale)
  %scale_column = broadcast %scale_log2 : !real_1x1 -> !q_column
  %scale_full = broadcast %scale_log2 : !real_1x1 -> !q_scores
  // Below every score, and finite: the difference of two of them is 0 and not NaN.
  %max_start = constant <f32: -1.0e30> : !q_column
  %sum_start = constant <f32: 0.0> : !q_column
  %acc_start = constant <f32: 0.0> : !q_acc
  %max, %sum, %acc = hole @walk(%q, %k_cache_view, %v_cache_view, %b, %g, %position, %from, %to, %ours, %scale_column,
      %scale_full, %max_start, %sum_start, %acc_start) -> (!q_column, !q_column, !q_acc)
  hole @finish(%b, %g, %part, %z, %max, %sum, %acc)
  return
}

fragment @walk(%q: !queries, %k_cache: !batch, %v_cache: !batch, %b: !int, %g: !int, %position: !int, %from: !int, %to: !int,
    %ours: !flag, %scale_column: !q_column, %scale_full: !q_scores, %max_start: !q_column, %sum_start: !q_column,
    %acc_start: !q_acc) -> (!q_column, !q_column, !q_acc) {
  %BS = constant <i32: BS> : !int
  %k_tiles = make_partition_view %k_cache : !kv_part
  %v_tiles = make_partition_view %v_cache : !kv_part
  %max_full, %sum_full, %acc_full, %read = call @seen_tiles<BT = BQ>(%q, %k_tiles, %v_tiles, %b, %g, %scale_column,
      %scale_full, %from, %to, %max_start, %sum_start, %acc_start)
  %max, %sum, %acc = if %ours -> (!q_column, !q_column, !q_acc) {
    %j = divi %position, %BS signed : !int
    %max_new, %sum_new, %acc_new = call @last_tile(%q, %k_tiles, %v_tiles, %b, %g, %j, %position, %scale_column, %scale_full,
        %max_full, %sum_full, %acc_full)
    yield %max_new, %sum_new, %acc_new : !q_column, !q_column, !q_acc
  } else {
    yield %max_full, %sum_full, %acc_full : !q_column, !q_column, !q_acc
  }
  yield %max, %sum, %acc : !q_column, !q_column, !q_acc
}

// A span of SPAN positions. The hole is `walk`.
skeleton @grouped_decode_span, skeleton = @grouped_decode {
  @span(%position, %z) {
    %BS = constant <i32: BS> : !int
    %SPAN = constant <i32: SPAN> : !int
    %first = muli %z, %SPAN : !int
    %behind = addi %first, %SPAN : !int
    %full = mini %behind, %position signed : !int
    %from = divi %first, %BS signed : !int
    %to = divi %full, %BS signed : !int
    %begun = cmpi less_than_or_equal %first, %position, signed : !int -> !flag
    %not_over = cmpi less_than %position, %behind, signed : !int -> !flag
    %ours = andi %begun, %not_over : !flag
    yield %from, %to, %ours : !int, !int, !flag
  }
  @finish(%b, %g, %part, %z, %max, %sum, %acc) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %partial_tiles = make_partition_view %partial_view : !partial_part
    %stat_tiles = make_partition_view %stats_view : !stat_part
    %acc_tile = reshape %acc : !q_acc -> !partial_tile
    %max_tile = reshape %max : !q_column -> !stat_tile
    %sum_tile = reshape %sum : !q_column -> !stat_tile
    %t0 = store_view_tko weak %acc_tile, %partial_tiles[%b, %g, %part, %z, %zero]
        optimization_hints = <default = {allow_tma = false}> : !partial_tile, !partial_part, !int -> token
    %t1 = store_view_tko weak %max_tile, %stat_tiles[%b, %g, %part, %z, %zero]
        optimization_hints = <default = {allow_tma = false}> : !stat_tile, !stat_part, !int -> token
    %t2 = store_view_tko weak %sum_tile, %stat_tiles[%b, %g, %part, %z, %one]
        optimization_hints = <default = {allow_tma = false}> : !stat_tile, !stat_part, !int -> token
  }
}

kernel @grouped_decode_attention op = grouped_decode_attention, skeleton = @grouped_decode_span { @walk = @walk }

kernel @grouped_decode_attention_unsplit op = grouped_decode_attention_unsplit, skeleton = @grouped_decode {
  @walk = @walk
  @span(%position, %z) {
    %from = constant <i32: 0> : !int
    %BS = constant <i32: BS> : !int
    %to = divi %position, %BS signed : !int
    %always = constant <i1: 1> : !flag
    yield %from, %to, %always : !int, !int, !flag
  }
  @finish(%b, %g, %part, %z, %max, %sum, %acc) {
    %zero = constant <i32: 0> : !int
    %out_tiles = make_partition_view %out_view : !grouped_result
    %unit = constant <f32: 1.0> : !q_column
    %inverse = divf %unit, %sum : !q_column
    %inverse_full = broadcast %inverse : !q_column -> !q_acc
    %mean = mulf %acc, %inverse_full : !q_acc
    %result = ftof %mean : !q_acc -> !queries
    %out_tile = reshape %result : !queries -> !queries_tile
    %stored = store_view_tko weak %out_tile, %out_tiles[%b, %g, %part, %zero]
        optimization_hints = <default = {allow_tma = false}> : !queries_tile, !grouped_result, !int -> token
  }
}
