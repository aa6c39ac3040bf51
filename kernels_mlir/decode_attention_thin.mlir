sizes D = 64, SPAN = 128, R = 8

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
!query_RxD = !cuda_tile.tile<RxDxT>
!query_DxR = !cuda_tile.tile<DxRxT>
!row_1x1x1xD = !cuda_tile.tile<1x1x1xDxT>
!cache_1xSPANx1xD = !cuda_tile.tile<1xSPANx1xDxT>
!kv_SPANxD = !cuda_tile.tile<SPANxDxT>
!kv_DxSPAN = !cuda_tile.tile<DxSPANxT>
!score_SPANxR = !cuda_tile.tile<SPANxRxf32>
!weight_SPANxR = !cuda_tile.tile<SPANxRxT>
!acc_DxR = !cuda_tile.tile<DxRxf32>
!stat_R = !cuda_tile.tile<Rxf32>
!stat_1xR = !cuda_tile.tile<1xRxf32>
!acc_Dx1 = !cuda_tile.tile<Dx1xf32>
!partial_1x1x1xD = !cuda_tile.tile<1x1x1xDxf32>
!lane_SPAN = !cuda_tile.tile<SPANxi32>
!lane_SPANx1 = !cuda_tile.tile<SPANx1xi32>
!mask_SPANx1 = !cuda_tile.tile<SPANx1xi1>
!mask_SPANxR = !cuda_tile.tile<SPANxRxi1>
!mask_SPANxD = !cuda_tile.tile<SPANxDxi1>

// Attention of one new token per sequence over its cache, which its key and value are appended to; `merge_attention` puts
// together what the spans give.
//
// One block makes one head's query of one sequence over the SPAN positions of a span, all in one tile: grid (Z, H, B). It
// multiplies on the tensor cores, transposed: the keys are the rows of the tile, the query repeated R times its columns, as
// few as the cores take. It reads its keys and values before it waits for the launches before this one, for only this kernel
// writes the caches. Only blocks from the new position on mask anything: the block of the new position appends its key and
// value, and takes them from the arguments itself. What lies past it is not ours and may be anything, NaN too; blocks whose
// span is all past it read the first such span, which costs the memory's traffic once. The head size D is a constant of the
// entry.
kernel @decode_attention_thin op = decode_attention {
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
  %key = reshape %key_tile : !head_1x1xD -> !head_1xD
  %value = reshape %value_tile : !head_1x1xD -> !head_1xD
  %q_row = reshape %q_tile : !head_1x1xD -> !head_1xD
  %q_rows = broadcast %q_row : !head_1xD -> !query_RxD
  %queries = permute %q_rows [1, 0] : !query_RxD -> !query_DxR

  // Scores are in units of log 2 once scaled, so that exp2 serves for exp; its results below 2^-126 are 0.
  %log2e = constant <f32: 1.4426950408889634> : !real
  %scale_log2 = mulf %scale, %log2e : !real
  %scale_1x1 = reshape %scale_log2 : !real -> !real_1x1
  %scale_full = broadcast %scale_1x1 : !real_1x1 -> !score_SPANxR
  %no_score = constant <f32: 0.0> : !score_SPANxR
  %dots = mmaf %k_flat, %queries, %no_score : !kv_SPANxD, !query_DxR, !score_SPANxR
  %scaled = mulf %dots, %scale_full : !score_SPANxR
  %empty = constant <f32: 0.0> : !acc_DxR

  %old = cmpi less_than_or_equal %behind, %position, signed : !int -> !bit
  %max, %sum, %acc = if %old -> (!stat_1xR, !stat_1xR, !acc_DxR) {
    %old_top = reduce %scaled dim=0 identities=[0xFF800000 : f32] : !score_SPANxR -> !stat_R
    (%old_max_a: !real, %old_max_b: !real) {
      %old_larger = maxf %old_max_a, %old_max_b : !real
      yield %old_larger : !real
    }
    %old_max = reshape %old_top : !stat_R -> !stat_1xR
    %old_max_full = broadcast %old_max : !stat_1xR -> !score_SPANxR
    %old_below = subf %scaled, %old_max_full : !score_SPANxR
    %old_power = exp2 %old_below flush_to_zero : !score_SPANxR
    %old_total = reduce %old_power dim=0 identities=[0.0 : f32] : !score_SPANxR -> !stat_R
    (%old_sum_a: !real, %old_sum_b: !real) {
      %old_sum_ab = addf %old_sum_a, %old_sum_b : !real
      yield %old_sum_ab : !real
    }
    %old_sum = reshape %old_total : !stat_R -> !stat_1xR
    %old_weights = ftof %old_power : !score_SPANxR -> !weight_SPANxR
    %old_values = permute %v_flat [1, 0] : !kv_SPANxD -> !kv_DxSPAN
    %old_acc = mmaf %old_values, %old_weights, %empty : !kv_DxSPAN, !weight_SPANxR, !acc_DxR
    yield %old_max, %old_sum, %old_acc : !stat_1xR, !stat_1xR, !acc_DxR
  } else {
    %first_1 = reshape %first : !int -> !int_1
    %first_full = broadcast %first_1 : !int_1 -> !lane_SPAN
    %lane = iota : !lane_SPAN
    %place_line = addi %first_full, %lane : !lane_SPAN
    %place = reshape %place_line : !lane_SPAN -> !lane_SPANx1
    %position_1x1 = reshape %position : !int -> !int_1x1
    %position_column = broadcast %position_1x1 : !int_1x1 -> !lane_SPANx1
    %before = cmpi less_than %place, %position_column, signed : !lane_SPANx1 -> !mask_SPANx1
    %there = cmpi less_than_or_equal %place, %position_column, signed : !lane_SPANx1 -> !mask_SPANx1
    %before_full = broadcast %before : !mask_SPANx1 -> !mask_SPANxR
    %there_full = broadcast %there : !mask_SPANx1 -> !mask_SPANxR

    %query = ftof %q_row : !head_1xD -> !query_1xD
    %key_f32 = ftof %key : !head_1xD -> !query_1xD
    %products = mulf %query, %key_f32 : !query_1xD
    %dot = reduce %products dim=1 identities=[0.0 : f32] : !query_1xD -> !real_1
    (%dot_a: !real, %dot_b: !real) {
      %dot_ab = addf %dot_a, %dot_b : !real
      yield %dot_ab : !real
    }
    %dot_1x1 = reshape %dot : !real_1 -> !real_1x1
    %new = mulf %dot_1x1, %scale_1x1 : !real_1x1
    %new_full = broadcast %new : !real_1x1 -> !score_SPANxR
    // Below every score; finite, so that the difference of two of them is 0 and not NaN.
    %least = constant <f32: -1.0e30> : !score_SPANxR
    %new_or_least = select %there_full, %new_full, %least : !mask_SPANxR, !score_SPANxR
    %score = select %before_full, %scaled, %new_or_least : !mask_SPANxR, !score_SPANxR
    %new_top = reduce %score dim=0 identities=[0xFF800000 : f32] : !score_SPANxR -> !stat_R
    (%new_max_a: !real, %new_max_b: !real) {
      %new_larger = maxf %new_max_a, %new_max_b : !real
      yield %new_larger : !real
    }
    %new_max = reshape %new_top : !stat_R -> !stat_1xR
    %new_max_full = broadcast %new_max : !stat_1xR -> !score_SPANxR
    %new_below = subf %score, %new_max_full : !score_SPANxR
    %new_power = exp2 %new_below flush_to_zero : !score_SPANxR
    // Of an empty span the maximum is the least, and every power 1.
    %no_weight = constant <f32: 0.0> : !score_SPANxR
    %new_p = select %there_full, %new_power, %no_weight : !mask_SPANxR, !score_SPANxR
    %new_total = reduce %new_p dim=0 identities=[0.0 : f32] : !score_SPANxR -> !stat_R
    (%new_sum_a: !real, %new_sum_b: !real) {
      %new_sum_ab = addf %new_sum_a, %new_sum_b : !real
      yield %new_sum_ab : !real
    }
    %new_sum = reshape %new_total : !stat_R -> !stat_1xR
    %new_weights = ftof %new_p : !score_SPANxR -> !weight_SPANxR
    %before_values = broadcast %before : !mask_SPANx1 -> !mask_SPANxD
    %there_values = broadcast %there : !mask_SPANx1 -> !mask_SPANxD
    %value_full = broadcast %value : !head_1xD -> !kv_SPANxD
    %nothing = constant <T: 0.0> : !kv_SPANxD
    %value_or_nothing = select %there_values, %value_full, %nothing : !mask_SPANxD, !kv_SPANxD
    %values = select %before_values, %v_flat, %value_or_nothing : !mask_SPANxD, !kv_SPANxD
    %new_values = permute %values [1, 0] : !kv_SPANxD -> !kv_DxSPAN
    %new_acc = mmaf %new_values, %new_weights, %empty : !kv_DxSPAN, !weight_SPANxR, !acc_DxR
    %ours = cmpi less_than_or_equal %first, %position, signed : !int -> !bit
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
    yield %new_max, %new_sum, %new_acc : !stat_1xR, !stat_1xR, !acc_DxR
  }

  %acc_column = extract %acc[%zero, %zero] : !acc_DxR -> !acc_Dx1
  %acc_tile = reshape %acc_column : !acc_Dx1 -> !partial_1x1x1xD
  %max_1x1 = extract %max[%zero, %zero] : !stat_1xR -> !real_1x1
  %sum_1x1 = extract %sum[%zero, %zero] : !stat_1xR -> !real_1x1
  %max_tile = reshape %max_1x1 : !real_1x1 -> !real_1x1x1x1
  %sum_tile = reshape %sum_1x1 : !real_1x1 -> !real_1x1x1x1
  %t4 = store_view_tko weak %acc_tile, %part_tiles[%b, %h, %z, %zero] optimization_hints = <default = {allow_tma = false}>
      : !partial_1x1x1xD, !partial_part_1x1x1xD, !int -> token
  %t5 = store_view_tko weak %max_tile, %stat_tiles[%b, %h, %z, %zero] optimization_hints = <default = {allow_tma = false}>
      : !real_1x1x1x1, !stat_part_1x1x1x1, !int -> token
  %t6 = store_view_tko weak %sum_tile, %stat_tiles[%b, %h, %z, %one] optimization_hints = <default = {allow_tma = false}>
      : !real_1x1x1x1, !stat_part_1x1x1x1, !int -> token
  return
}
