sizes D = 64, BS = 64, SPAN = 512, R = 8

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
!cache_part_1xBSx1xD = !cuda_tile.partition_view<tile=(1xBSx1xD), padding_value = zero, !cache>
!row_part_1x1x1xD = !cuda_tile.partition_view<tile=(1x1x1xD), !cache>
!partial_part_1x1x1xD = !cuda_tile.partition_view<tile=(1x1x1xD), !spans>
!stat_part_1x1x1x1 = !cuda_tile.partition_view<tile=(1x1x1x1), !spans>
!head_1x1xD = !cuda_tile.tile<1x1xDxT>
!head_1xD = !cuda_tile.tile<1xDxT>
!query_1xD = !cuda_tile.tile<1xDxf32>
!query_RxD = !cuda_tile.tile<RxDxT>
!query_DxR = !cuda_tile.tile<DxRxT>
!row_1x1x1xD = !cuda_tile.tile<1x1x1xDxT>
!cache_1xBSx1xD = !cuda_tile.tile<1xBSx1xDxT>
!kv_BSxD = !cuda_tile.tile<BSxDxT>
!kv_DxBS = !cuda_tile.tile<DxBSxT>
!score_BSxR = !cuda_tile.tile<BSxRxf32>
!weight_BSxR = !cuda_tile.tile<BSxRxT>
!acc_DxR = !cuda_tile.tile<DxRxf32>
!stat_R = !cuda_tile.tile<Rxf32>
!stat_1xR = !cuda_tile.tile<1xRxf32>
!acc_Dx1 = !cuda_tile.tile<Dx1xf32>
!partial_1x1x1xD = !cuda_tile.tile<1x1x1xDxf32>
!lane_BS = !cuda_tile.tile<BSxi32>
!lane_BSx1 = !cuda_tile.tile<BSx1xi32>
!mask_BSx1 = !cuda_tile.tile<BSx1xi1>
!mask_BSxR = !cuda_tile.tile<BSxRxi1>
!mask_BSxD = !cuda_tile.tile<BSxDxi1>

// Attention of one new token per sequence over its cache, which its key and value are appended to; `merge_attention` puts
// together what the spans give.
//
// One block makes one head's query of one sequence over the SPAN positions of a span, in tiles of BS: grid (Z, H, B). It
// multiplies on the tensor cores, transposed: the keys are the rows of the tile, the query repeated R times its columns, as
// few as the cores take. The tile of the new position comes first: it alone is masked, and read before the block waits for
// the launches before this one, for only this kernel writes the caches. The block of the new position appends its key and
// value, and takes them from the arguments itself. The head size D is a constant of the entry.
kernel @decode_attention_walk op = decode_attention {
  %two = constant <i32: 2> : !int
  %stats_two_view = make_tensor_view %stats_ptr, shape = [%B, %H, %Z, %two], strides = [%stats_stride0, %stats_stride1, %stats_stride2, 1] : !int -> !spans
  %q_tiles = make_partition_view %q_view : !head_part_1x1xD
  %k_tiles = make_partition_view %k_view : !head_part_1x1xD
  %v_tiles = make_partition_view %v_view : !head_part_1x1xD
  %position_tiles = make_partition_view %positions_view : !index_part
  %kc_tiles = make_partition_view %k_cache_view : !cache_part_1xBSx1xD
  %vc_tiles = make_partition_view %v_cache_view : !cache_part_1xBSx1xD
  %kc_rows = make_partition_view %k_cache_view : !row_part_1x1x1xD
  %vc_rows = make_partition_view %v_cache_view : !row_part_1x1x1xD
  %part_tiles = make_partition_view %partial_view : !partial_part_1x1x1xD
  %stat_tiles = make_partition_view %stats_two_view : !stat_part_1x1x1x1

  %z, %h, %b = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BS = constant <i32: BS> : !int
  %SPAN = constant <i32: SPAN> : !int
  %position_tile, %t0 = load_view_tko weak %position_tiles[%b] optimization_hints = <default = {allow_tma = false}>
      : !index_part, !int -> !int_1, token
  %position = reshape %position_tile : !int_1 -> !int
  // The tile of the new position comes first, or the span's last one before it; past it, the span's first.
  %TILES = divi %SPAN, %BS signed : !int
  %first = muli %z, %TILES : !int
  %behind = addi %first, %TILES : !int
  %last_of_span = subi %behind, %one : !int
  %current = divi %position, %BS signed : !int
  %nearer = mini %current, %last_of_span signed : !int
  %last = maxi %nearer, %first signed : !int
  %k_tile, %k_read = load_view_tko weak %kc_tiles[%b, %last, %h, %zero] : !cache_part_1xBSx1xD, !int -> !cache_1xBSx1xD, token
  %v_tile, %v_read = load_view_tko weak %vc_tiles[%b, %last, %h, %zero] : !cache_part_1xBSx1xD, !int -> !cache_1xBSx1xD, token
  %k_flat = reshape %k_tile : !cache_1xBSx1xD -> !kv_BSxD
  %v_flat = reshape %v_tile : !cache_1xBSx1xD -> !kv_BSxD

  // The wait comes after these reads by the last one's token: else the compiler may put it first. With both tokens they
  // would be made one after the other.
  %ahead = join_tokens %t0, %v_read : token
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
  %scale_full = broadcast %scale_1x1 : !real_1x1 -> !score_BSxR
  %no_score = constant <f32: 0.0> : !score_BSxR
  %empty = constant <f32: 0.0> : !acc_DxR

  // The tile with the new position, or before it. What lies past it is not ours and may be anything, NaN too.
  %place_first = muli %last, %BS : !int
  %place_first_1 = reshape %place_first : !int -> !int_1
  %place_first_line = broadcast %place_first_1 : !int_1 -> !lane_BS
  %lane = iota : !lane_BS
  %place_line = addi %place_first_line, %lane : !lane_BS
  %place = reshape %place_line : !lane_BS -> !lane_BSx1
  %position_1x1 = reshape %position : !int -> !int_1x1
  %position_column = broadcast %position_1x1 : !int_1x1 -> !lane_BSx1
  %before = cmpi less_than %place, %position_column, signed : !lane_BSx1 -> !mask_BSx1
  %there = cmpi less_than_or_equal %place, %position_column, signed : !lane_BSx1 -> !mask_BSx1
  %before_full = broadcast %before : !mask_BSx1 -> !mask_BSxR
  %there_full = broadcast %there : !mask_BSx1 -> !mask_BSxR

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
  %new_full = broadcast %new : !real_1x1 -> !score_BSxR
  // Below every score; finite, so that the difference of two of them is 0 and not NaN.
  %least = constant <f32: -1.0e30> : !score_BSxR
  %new_or_least = select %there_full, %new_full, %least : !mask_BSxR, !score_BSxR
  %near_dots = mmaf %k_flat, %queries, %no_score : !kv_BSxD, !query_DxR, !score_BSxR
  %near_scaled = mulf %near_dots, %scale_full : !score_BSxR
  %near_score = select %before_full, %near_scaled, %new_or_least : !mask_BSxR, !score_BSxR
  %near_top = reduce %near_score dim=0 identities=[0xFF800000 : f32] : !score_BSxR -> !stat_R
  (%near_max_a: !real, %near_max_b: !real) {
    %near_larger = maxf %near_max_a, %near_max_b : !real
    yield %near_larger : !real
  }
  %near_max = reshape %near_top : !stat_R -> !stat_1xR
  %near_max_full = broadcast %near_max : !stat_1xR -> !score_BSxR
  %near_below = subf %near_score, %near_max_full : !score_BSxR
  %near_power = exp2 %near_below flush_to_zero : !score_BSxR
  // Of an empty span the maximum is the least, and every power 1.
  %near_p = select %there_full, %near_power, %no_score : !mask_BSxR, !score_BSxR
  %near_total = reduce %near_p dim=0 identities=[0.0 : f32] : !score_BSxR -> !stat_R
  (%near_sum_a: !real, %near_sum_b: !real) {
    %near_sum_ab = addf %near_sum_a, %near_sum_b : !real
    yield %near_sum_ab : !real
  }
  %near_sum = reshape %near_total : !stat_R -> !stat_1xR
  %near_weights = ftof %near_p : !score_BSxR -> !weight_BSxR
  %before_values = broadcast %before : !mask_BSx1 -> !mask_BSxD
  %there_values = broadcast %there : !mask_BSx1 -> !mask_BSxD
  %value_full = broadcast %value : !head_1xD -> !kv_BSxD
  %nothing = constant <T: 0.0> : !kv_BSxD
  %value_or_nothing = select %there_values, %value_full, %nothing : !mask_BSxD, !kv_BSxD
  %near_values = select %before_values, %v_flat, %value_or_nothing : !mask_BSxD, !kv_BSxD
  %near_turned = permute %near_values [1, 0] : !kv_BSxD -> !kv_DxBS
  %near_acc = mmaf %near_turned, %near_weights, %empty : !kv_DxBS, !weight_BSxR, !acc_DxR

  // The tiles before it, which nothing masks.
  %max, %sum, %acc = for %j in (%first to %last, step %one) : !int
      iter_values(%max_old = %near_max, %sum_old = %near_sum, %acc_old = %near_acc) -> (!stat_1xR, !stat_1xR, !acc_DxR) {
    %keys_tile, %t4 = load_view_tko weak %kc_tiles[%b, %j, %h, %zero] : !cache_part_1xBSx1xD, !int -> !cache_1xBSx1xD, token
    %values_tile, %t5 = load_view_tko weak %vc_tiles[%b, %j, %h, %zero] : !cache_part_1xBSx1xD, !int -> !cache_1xBSx1xD, token
    %keys = reshape %keys_tile : !cache_1xBSx1xD -> !kv_BSxD
    %values = reshape %values_tile : !cache_1xBSx1xD -> !kv_BSxD
    %dots = mmaf %keys, %queries, %no_score : !kv_BSxD, !query_DxR, !score_BSxR
    %score = mulf %dots, %scale_full : !score_BSxR
    %top = reduce %score dim=0 identities=[0xFF800000 : f32] : !score_BSxR -> !stat_R
    (%max_a: !real, %max_b: !real) {
      %larger = maxf %max_a, %max_b : !real
      yield %larger : !real
    }
    %top_line = reshape %top : !stat_R -> !stat_1xR
    %max_new = maxf %max_old, %top_line : !stat_1xR
    %fall = subf %max_old, %max_new : !stat_1xR
    %rescale = exp2 %fall flush_to_zero : !stat_1xR
    %max_full = broadcast %max_new : !stat_1xR -> !score_BSxR
    %below = subf %score, %max_full : !score_BSxR
    %p = exp2 %below flush_to_zero : !score_BSxR
    %total = reduce %p dim=0 identities=[0.0 : f32] : !score_BSxR -> !stat_R
    (%sum_a: !real, %sum_b: !real) {
      %sum_ab = addf %sum_a, %sum_b : !real
      yield %sum_ab : !real
    }
    %total_line = reshape %total : !stat_R -> !stat_1xR
    %sum_new = fma %sum_old, %rescale, %total_line : !stat_1xR
    %weights = ftof %p : !score_BSxR -> !weight_BSxR
    %values_turned = permute %values [1, 0] : !kv_BSxD -> !kv_DxBS
    %rescale_full = broadcast %rescale : !stat_1xR -> !acc_DxR
    %acc_scaled = mulf %acc_old, %rescale_full : !acc_DxR
    %acc_new = mmaf %values_turned, %weights, %acc_scaled : !kv_DxBS, !weight_BSxR, !acc_DxR
    continue %max_new, %sum_new, %acc_new : !stat_1xR, !stat_1xR, !acc_DxR
  }

  %span_first = muli %z, %SPAN : !int
  %span_behind = addi %span_first, %SPAN : !int
  %begun = cmpi less_than_or_equal %span_first, %position, signed : !int -> !bit
  %not_over = cmpi less_than %position, %span_behind, signed : !int -> !bit
  %ours = andi %begun, %not_over : !bit
  if %ours {
    // Only tokens order memory. These rows are of the tile read first; the other tiles do not have them, and no other block
    // reads them.
    %first_read = join_tokens %k_read, %ready : token
    %key_row = reshape %key : !head_1xD -> !row_1x1x1xD
    %value_row = reshape %value : !head_1xD -> !row_1x1x1xD
    %t6 = store_view_tko weak %key_row, %kc_rows[%b, %position, %h, %zero] token = %first_read optimization_hints = <default = {allow_tma = false}>
        : !row_1x1x1xD, !row_part_1x1x1xD, !int -> token
    %t7 = store_view_tko weak %value_row, %vc_rows[%b, %position, %h, %zero] token = %ready optimization_hints = <default = {allow_tma = false}>
        : !row_1x1x1xD, !row_part_1x1x1xD, !int -> token
  }
  %acc_column = extract %acc[%zero, %zero] : !acc_DxR -> !acc_Dx1
  %acc_tile = reshape %acc_column : !acc_Dx1 -> !partial_1x1x1xD
  %max_1x1 = extract %max[%zero, %zero] : !stat_1xR -> !real_1x1
  %sum_1x1 = extract %sum[%zero, %zero] : !stat_1xR -> !real_1x1
  %max_tile = reshape %max_1x1 : !real_1x1 -> !real_1x1x1x1
  %sum_tile = reshape %sum_1x1 : !real_1x1 -> !real_1x1x1x1
  %t8 = store_view_tko weak %acc_tile, %part_tiles[%b, %h, %z, %zero] optimization_hints = <default = {allow_tma = false}>
      : !partial_1x1x1xD, !partial_part_1x1x1xD, !int -> token
  %t9 = store_view_tko weak %max_tile, %stat_tiles[%b, %h, %z, %zero] optimization_hints = <default = {allow_tma = false}>
      : !real_1x1x1x1, !stat_part_1x1x1x1, !int -> token
  %t10 = store_view_tko weak %sum_tile, %stat_tiles[%b, %h, %z, %one] optimization_hints = <default = {allow_tma = false}>
      : !real_1x1x1x1, !stat_part_1x1x1x1, !int -> token
  return
}
