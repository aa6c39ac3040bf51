// Causal attention, head size 64. One block makes 64 queries of one head, with a running maximum, sum and result.
!int = !cuda_tile.tile<i32>
!bf16 = !cuda_tile.tile<ptr<bf16>>
!array = !cuda_tile.tensor_view<?x?x64xbf16, strides=[?,64,1]>
!tiles = !cuda_tile.partition_view<tile=(1x64x64), padding_value = zero, !array>
!loaded = !cuda_tile.tile<1x64x64xbf16>
!tile = !cuda_tile.tile<64x64xbf16>
!scores = !cuda_tile.tile<64x64xf32>
!places = !cuda_tile.tile<64x64xi32>
!flags = !cuda_tile.tile<64x64xi1>
!column = !cuda_tile.tile<64x1xf32>
!sums = !cuda_tile.tile<64xf32>

entry @attention(
  %q: !bf16, %q_b: !int, %q_t: !int, %q_d: !int, %q_head: !int, %q_row: !int, %q_unit: !int,
  %k: !bf16, %k_b: !int, %k_t: !int, %k_d: !int, %k_head: !int, %k_row: !int, %k_unit: !int,
  %v: !bf16, %v_b: !int, %v_t: !int, %v_d: !int, %v_head: !int, %v_row: !int, %v_unit: !int,
  %out: !bf16, %o_b: !int, %o_t: !int, %o_d: !int, %o_head: !int, %o_row: !int, %o_unit: !int, %scale_log2: tile<f32>
) {
  %turn, %head, %z = get_tile_block_id : !int
  %blocks, %heads, %nz = get_num_tile_blocks : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %size = constant <i32: 64> : !int
  %last = subi %blocks, %one : !int
  %i = subi %last, %turn : !int  // the longest blocks first
  %q_aligned = assume div_by<16>, %q : !bf16
  %k_aligned = assume div_by<16>, %k : !bf16
  %v_aligned = assume div_by<16>, %v : !bf16
  %out_aligned = assume div_by<16>, %out : !bf16
  %q_step = assume div_by<64>, %q_head : !int
  %k_step = assume div_by<64>, %k_head : !int
  %v_step = assume div_by<64>, %v_head : !int
  %o_step = assume div_by<64>, %o_head : !int
  %q_view = make_tensor_view %q_aligned, shape = [%q_b, %q_t, 64], strides = [%q_step, 64, 1] : !int -> !array
  %k_view = make_tensor_view %k_aligned, shape = [%k_b, %k_t, 64], strides = [%k_step, 64, 1] : !int -> !array
  %v_view = make_tensor_view %v_aligned, shape = [%v_b, %v_t, 64], strides = [%v_step, 64, 1] : !int -> !array
  %out_view = make_tensor_view %out_aligned, shape = [%o_b, %o_t, 64], strides = [%o_step, 64, 1] : !int -> !array
  %q_tiles = make_partition_view %q_view : !tiles
  %k_tiles = make_partition_view %k_view : !tiles
  %v_tiles = make_partition_view %v_view : !tiles
  %out_tiles = make_partition_view %out_view : !tiles
  %q_loaded, %q_read = load_view_tko weak %q_tiles[%head, %i, %zero] : !tiles, !int -> !loaded, token
  %queries = reshape %q_loaded : !loaded -> !tile

  %lanes = iota : tile<64xi32>
  %lane_rows = reshape %lanes : tile<64xi32> -> tile<1x64xi32>
  %lane_columns = reshape %lanes : tile<64xi32> -> tile<64x1xi32>
  %k_lanes = broadcast %lane_rows : tile<1x64xi32> -> !places
  %q_lanes = broadcast %lane_columns : tile<64x1xi32> -> !places
  %first = muli %i, %size : !int
  %first_1 = reshape %first : !int -> tile<1x1xi32>
  %firsts = broadcast %first_1 : tile<1x1xi32> -> !places
  %q_places = addi %firsts, %q_lanes : !places
  %scale_1 = reshape %scale_log2 : tile<f32> -> tile<1x1xf32>
  %scale = broadcast %scale_1 : tile<1x1xf32> -> !scores
  %hidden = constant <f32: -1.0e30> : !scores
  %lowest = constant <f32: -1.0e30> : !column
  %none = constant <f32: 0.0> : !column
  %empty = constant <f32: 0.0> : !scores
  %steps = addi %i, %one : !int

  %top, %total, %result = for %j in (%zero to %steps, step %one) : !int
      iter_values(%top_old = %lowest, %total_old = %none, %result_old = %empty) -> (!column, !column, !scores) {
    %k_loaded, %k_read = load_view_tko weak %k_tiles[%head, %j, %zero] : !tiles, !int -> !loaded, token
    %v_loaded, %v_read = load_view_tko weak %v_tiles[%head, %j, %zero] : !tiles, !int -> !loaded, token
    %keys = reshape %k_loaded : !loaded -> !tile
    %values = reshape %v_loaded : !loaded -> !tile
    %turned = permute %keys [1, 0] : !tile -> !tile
    %products = mmaf %queries, %turned, %empty : !tile, !tile, !scores
    %scaled = mulf %products, %scale : !scores
    %before = muli %j, %size : !int
    %before_1 = reshape %before : !int -> tile<1x1xi32>
    %befores = broadcast %before_1 : tile<1x1xi32> -> !places
    %k_places = addi %befores, %k_lanes : !places
    %visible = cmpi less_than_or_equal %k_places, %q_places, signed : !places -> !flags
    %scores = select %visible, %scaled, %hidden : !flags, !scores

    %tops = reduce %scores dim=1 identities=[-1.0e30 : f32] : !scores -> !sums
    (%a: tile<f32>, %b: tile<f32>) {
      %more = maxf %a, %b : tile<f32>
      yield %more : tile<f32>
    }
    %tops_column = reshape %tops : !sums -> !column
    %risen = maxf %top_old, %tops_column : !column
    %fall = subf %top_old, %risen : !column
    %shrink = exp2 %fall : !column
    %risen_full = broadcast %risen : !column -> !scores
    %below = subf %scores, %risen_full : !scores
    %weights = exp2 %below : !scores
    %sums = reduce %weights dim=1 identities=[0.0 : f32] : !scores -> !sums
    (%c: tile<f32>, %d: tile<f32>) {
      %sum = addf %c, %d : tile<f32>
      yield %sum : tile<f32>
    }
    %sums_column = reshape %sums : !sums -> !column
    %kept = mulf %total_old, %shrink : !column
    %total_new = addf %kept, %sums_column : !column
    %rounded = ftof %weights : !scores -> !tile
    %shrink_full = broadcast %shrink : !column -> !scores
    %shrunk = mulf %result_old, %shrink_full : !scores
    %result_new = mmaf %rounded, %values, %shrunk : !tile, !tile, !scores
    continue %risen, %total_new, %result_new : !column, !column, !scores
  }
  %total_full = broadcast %total : !column -> !scores
  %mean = divf %result, %total_full : !scores
  %made = ftof %mean : !scores -> !tile
  %stored = reshape %made : !tile -> !loaded
  %done = store_view_tko weak %stored, %out_tiles[%head, %i, %zero] : !loaded, !tiles, !int -> token
  return
}
