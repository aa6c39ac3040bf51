sizes D = 32, SPAN = 128

!int = !cuda_tile.tile<i32>
!int_1 = !cuda_tile.tile<1xi32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!bit = !cuda_tile.tile<i1>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!real_1x1x1x1 = !cuda_tile.tile<1x1x1x1xf32>
!ptr = !cuda_tile.tile<ptr<T>>
!int_ptr = !cuda_tile.tile<ptr<i32>>
!real_ptr = !cuda_tile.tile<ptr<f32>>
!heads = !cuda_tile.tensor_view<?x?x?xT, strides=[?,?,1]>
!cache = !cuda_tile.tensor_view<?x?x?x?xT, strides=[?,?,?,1]>
!spans = !cuda_tile.tensor_view<?x?x?x?xf32, strides=[?,?,?,1]>
!indices = !cuda_tile.tensor_view<?xi32, strides=[1]>
!index_part = !cuda_tile.partition_view<tile=(1), !indices>
!head_part_1x1xD = !cuda_tile.partition_view<tile=(1x1xD), !heads>
!cache_part_1xSPANx1xD = !cuda_tile.partition_view<tile=(1xSPANx1xD), padding_value = zero, !cache>
!row_part_1x1x1xD = !cuda_tile.partition_view<tile=(1x1x1xD), !cache>
!partial_part_1x1x1xD = !cuda_tile.partition_view<tile=(1x1x1xD), !spans>
!stat_part_1x1x1x1 = !cuda_tile.partition_view<tile=(1x1x1x1), !spans>
!head_1x1xD = !cuda_tile.tile<1x1xDxT>
!head_1xD = !cuda_tile.tile<1xDxT>
!query_1xD = !cuda_tile.tile<1xDxf32>
!row_1x1x1xD = !cuda_tile.tile<1x1x1xDxT>
!cache_1xSPANx1xD = !cuda_tile.tile<1xSPANx1xDxT>
!kv_SPANxD = !cuda_tile.tile<SPANxDxT>
!f32_SPANxD = !cuda_tile.tile<SPANxDxf32>
!score_SPAN = !cuda_tile.tile<SPANxf32>
!score_SPANx1 = !cuda_tile.tile<SPANx1xf32>
!acc_D = !cuda_tile.tile<Dxf32>
!partial_1xD = !cuda_tile.tile<1xDxf32>
!partial_1x1x1xD = !cuda_tile.tile<1x1x1xDxf32>
!lane_SPAN = !cuda_tile.tile<SPANxi32>
!lane_SPANx1 = !cuda_tile.tile<SPANx1xi32>
!mask_SPANx1 = !cuda_tile.tile<SPANx1xi1>
!mask_SPANxD = !cuda_tile.tile<SPANxDxi1>

// Attention of one new token per sequence over its cache, which its key and value are appended to; `merge_attention` puts
// together what the spans give.
//
// One block makes one head's query of one sequence over the SPAN positions of a span, all in one tile: grid (Z, H, B). It
// multiplies element by element, and reads its keys and values before it waits for the launches before this one, for only
// this kernel writes the caches. The block of the new position appends its key and value, and takes them from the arguments
// itself. What lies past the new position is not ours and may be anything, NaN too; blocks whose span is all past it read
// the first such span, which costs the memory's traffic once. The head size D is a constant of the entry.
kernel @decode_attention_span op = decode_attention {
  %two = constant <i32: 2> : !int
  %stats_two_view = make_tensor_view %stats_ptr, shape = [%B, %H, %Z, %two], strides = [%stats_stride0, %stats_stride1, %stats_stride2, 1] : !int -> !spans
  %q_tiles = make_partition_view %q_view : !head_part_1x1xD
  %k_tiles = make_partition_view %k_view : !head_part_1x1xD
  %v_tiles = make_partition_view %v_view : !head_part_1x1xD
  %position_tiles = make_partition_view %positions_view : !index_part
  %kc_tiles = make_partition_view %k_cache_view : !cache_part_1xSPANx1xD
  %vc_tiles = make_partition_view %v_cache_view : !cache_part_1xSPANx1xD
  %kc_rows = make_partition_view %k_cache_view : !row_part_1x1x1xD
  %vc_rows = make_partition_view %v_cache_view : !row_part_1x1x1xD
  %part_tiles = make_partition_view %partial_view : !partial_part_1x1x1xD
  %stat_tiles = make_partition_view %stats_two_view : !stat_part_1x1x1x1

  %z, %h, %b = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %SPAN = constant <i32: SPAN> : !int
  %position_tile, %t0 = load_view_tko weak %position_tiles[%b] optimization_hints = <default = {allow_tma = false}>
      : !index_part, !int -> !int_1, token
  %position = reshape %position_tile : !int_1 -> !int
  %current = divi %position, %SPAN signed : !int
  %behind_current = addi %current, %one : !int
  %near = mini %z, %behind_current signed : !int
  %k_tile, %k_read = load_view_tko weak %kc_tiles[%b, %near, %h, %zero] : !cache_part_1xSPANx1xD, !int -> !cache_1xSPANx1xD, token
  %v_tile, %v_read = load_view_tko weak %vc_tiles[%b, %near, %h, %zero] : !cache_part_1xSPANx1xD, !int -> !cache_1xSPANx1xD, token
  %k_flat = reshape %k_tile : !cache_1xSPANx1xD -> !kv_SPANxD
  %v_flat = reshape %v_tile : !cache_1xSPANx1xD -> !kv_SPANxD
  %first = muli %z, %SPAN : !int
  %behind = addi %first, %SPAN : !int
  %first_1 = reshape %first : !int -> !int_1
  %first_full = broadcast %first_1 : !int_1 -> !lane_SPAN
  %lane = iota : !lane_SPAN
  %place_line = addi %first_full, %lane : !lane_SPAN
  %place = reshape %place_line : !lane_SPAN -> !lane_SPANx1
  %position_1x1 = reshape %position : !int -> !int_1x1
  %position_column = broadcast %position_1x1 : !int_1x1 -> !lane_SPANx1
  %there = cmpi less_than_or_equal %place, %position_column, signed : !lane_SPANx1 -> !mask_SPANx1
  %new = cmpi equal %place, %position_column, signed : !lane_SPANx1 -> !mask_SPANx1
  %there_full = broadcast %there : !mask_SPANx1 -> !mask_SPANxD
  %new_full = broadcast %new : !mask_SPANx1 -> !mask_SPANxD

  // The wait comes after these reads by their tokens: else the compiler may put it first, and the rows that this block
  // stores would not be ordered after their reads.
  %ahead = join_tokens %t0, %k_read, %v_read : token
  %ready = gdc_wait_tko token = %ahead -> token
  %q_tile, %t1 = load_view_tko weak %q_tiles[%b, %h, %zero] optimization_hints = <default = {allow_tma = false}>
      : !head_part_1x1xD, !int -> !head_1x1xD, token
  %key_tile, %t2 = load_view_tko weak %k_tiles[%b, %h, %zero] optimization_hints = <default = {allow_tma = false}>
      : !head_part_1x1xD, !int -> !head_1x1xD, token
  %value_tile, %t3 = load_view_tko weak %v_tiles[%b, %h, %zero] optimization_hints = <default = {allow_tma = false}>
      : !head_part_1x1xD, !int -> !head_1x1xD, token
  %q_row = reshape %q_tile : !head_1x1xD -> !head_1xD
  %key = reshape %key_tile : !head_1x1xD -> !head_1xD
  %value = reshape %value_tile : !head_1x1xD -> !head_1xD
  %query = ftof %q_row : !head_1xD -> !query_1xD

  %key_full = broadcast %key : !head_1xD -> !kv_SPANxD
  %keys = select %new_full, %key_full, %k_flat : !mask_SPANxD, !kv_SPANxD
  %keys_f32 = ftof %keys : !kv_SPANxD -> !f32_SPANxD
  %value_full = broadcast %value : !head_1xD -> !kv_SPANxD
  %v_new = select %new_full, %value_full, %v_flat : !mask_SPANxD, !kv_SPANxD
  %nothing = constant <T: 0.0> : !kv_SPANxD
  %values = select %there_full, %v_new, %nothing : !mask_SPANxD, !kv_SPANxD
  %values_f32 = ftof %values : !kv_SPANxD -> !f32_SPANxD

  // Scores are in units of log 2 once scaled, so that exp2 serves for exp; its results below 2^-126 are 0.
  %log2e = constant <f32: 1.4426950408889634> : !real
  %scale_log2 = mulf %scale, %log2e : !real
  %scale_1x1 = reshape %scale_log2 : !real -> !real_1x1
  %scale_column = broadcast %scale_1x1 : !real_1x1 -> !score_SPANx1
  %query_full = broadcast %query : !query_1xD -> !f32_SPANxD
  %products = mulf %keys_f32, %query_full : !f32_SPANxD
  %dots = reduce %products dim=1 identities=[0.0 : f32] : !f32_SPANxD -> !score_SPAN
  (%dot_a: !real, %dot_b: !real) {
    %dot_ab = addf %dot_a, %dot_b : !real
    yield %dot_ab : !real
  }
  %dot_column = reshape %dots : !score_SPAN -> !score_SPANx1
  %scaled = mulf %dot_column, %scale_column : !score_SPANx1
  // Below every score; finite, so that the difference of two of them is 0 and not NaN.
  %least = constant <f32: -1.0e30> : !score_SPANx1
  %score = select %there, %scaled, %least : !mask_SPANx1, !score_SPANx1
  %top = reduce %score dim=0 identities=[0xFF800000 : f32] : !score_SPANx1 -> !real_1
  (%max_a: !real, %max_b: !real) {
    %larger = maxf %max_a, %max_b : !real
    yield %larger : !real
  }
  %max = reshape %top : !real_1 -> !real_1x1
  %max_column = broadcast %max : !real_1x1 -> !score_SPANx1
  %below = subf %score, %max_column : !score_SPANx1
  %power = exp2 %below flush_to_zero : !score_SPANx1
  // Of an empty span the maximum is the least, and every power 1.
  %no_weight = constant <f32: 0.0> : !score_SPANx1
  %p = select %there, %power, %no_weight : !mask_SPANx1, !score_SPANx1
  %p_full = broadcast %p : !score_SPANx1 -> !f32_SPANxD
  %weighted = mulf %p_full, %values_f32 : !f32_SPANxD
  %acc = reduce %weighted dim=0 identities=[0.0 : f32] : !f32_SPANxD -> !acc_D
  (%acc_a: !real, %acc_b: !real) {
    %acc_ab = addf %acc_a, %acc_b : !real
    yield %acc_ab : !real
  }
  %acc_row = reshape %acc : !acc_D -> !partial_1xD
  %acc_tile = reshape %acc_row : !partial_1xD -> !partial_1x1x1xD
  %max_tile = reshape %max : !real_1x1 -> !real_1x1x1x1
  %t4 = store_view_tko weak %acc_tile, %part_tiles[%b, %h, %z, %zero] optimization_hints = <default = {allow_tma = false}>
      : !partial_1x1x1xD, !partial_part_1x1x1xD, !int -> token
  %t5 = store_view_tko weak %max_tile, %stat_tiles[%b, %h, %z, %zero] optimization_hints = <default = {allow_tma = false}>
      : !real_1x1x1x1, !stat_part_1x1x1x1, !int -> token
  %sum = reduce %p dim=0 identities=[0.0 : f32] : !score_SPANx1 -> !real_1
  (%sum_a: !real, %sum_b: !real) {
    %sum_ab = addf %sum_a, %sum_b : !real
    yield %sum_ab : !real
  }
  %sum_1x1 = reshape %sum : !real_1 -> !real_1x1
  %sum_tile = reshape %sum_1x1 : !real_1x1 -> !real_1x1x1x1
  %t6 = store_view_tko weak %sum_tile, %stat_tiles[%b, %h, %z, %one] optimization_hints = <default = {allow_tma = false}>
      : !real_1x1x1x1, !stat_part_1x1x1x1, !int -> token

  %begun = cmpi less_than_or_equal %first, %position, signed : !int -> !bit
  %not_over = cmpi less_than %position, %behind, signed : !int -> !bit
  %ours = andi %begun, %not_over : !bit
  if %ours {
    // Only tokens order memory. These rows are of the tiles read above, which the wait came after; no other block reads
    // them.
    %key_row = reshape %key : !head_1xD -> !row_1x1x1xD
    %value_row = reshape %value : !head_1xD -> !row_1x1x1xD
    %t7 = store_view_tko weak %key_row, %kc_rows[%b, %position, %h, %zero] token = %ready optimization_hints = <default = {allow_tma = false}>
        : !row_1x1x1xD, !row_part_1x1x1xD, !int -> token
    %t8 = store_view_tko weak %value_row, %vc_rows[%b, %position, %h, %zero] token = %ready optimization_hints = <default = {allow_tma = false}>
        : !row_1x1x1xD, !row_part_1x1x1xD, !int -> token
  }
  return
}
