sizes D = 32, BS = 64, SPAN = 128, R = 16

!int = !cuda_tile.tile<i32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!index = !cuda_tile.tile<1xi32>
!bit = !cuda_tile.tile<i1>
!real = !cuda_tile.tile<f32>
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
!row_1x1x1xD = !cuda_tile.tile<1x1x1xDxT>
!cache_1xBSx1xD = !cuda_tile.tile<1xBSx1xDxT>
!kv_BSxD = !cuda_tile.tile<BSxDxT>
!k_DxBS = !cuda_tile.tile<DxBSxT>
!q_RxD = !cuda_tile.tile<RxDxT>
!p_RxBS = !cuda_tile.tile<RxBSxT>
!score_RxBS = !cuda_tile.tile<RxBSxf32>
!visible_RxBS = !cuda_tile.tile<RxBSxi1>
!stat_R = !cuda_tile.tile<Rxf32>
!stat_Rx1 = !cuda_tile.tile<Rx1xf32>
!acc_RxD = !cuda_tile.tile<RxDxf32>
!partial_1xD = !cuda_tile.tile<1xDxf32>
!partial_1x1x1xD = !cuda_tile.tile<1x1x1xDxf32>
!lane_BS = !cuda_tile.tile<BSxi32>
!lane_BSx1 = !cuda_tile.tile<BSx1xi32>
!mask_BSx1 = !cuda_tile.tile<BSx1xi1>
!mask_1xBS = !cuda_tile.tile<1xBSxi1>
!mask_BSxD = !cuda_tile.tile<BSxDxi1>

// Attention of one new token per sequence over its cache, which its key and value are appended to; `merge_attention` puts
// together what the spans give.
//
// One block makes one head's query of one sequence over SPAN positions of the cache, in tiles of BS: grid (Z, H, B). The
// block of the new position appends its key and value, and takes them from the arguments itself. The query is repeated R
// times, as many rows as the tensor cores want; the rows are equal, and the first is stored. The head size D is a
// constant of the entry.
kernel @decode_attention op = decode_attention {
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
      : !index_part, !int -> !index, token
  %position = reshape %position_tile : !index -> !int
  %first = muli %z, %SPAN : !int
  %behind = addi %first, %SPAN : !int

  %q_tile, %t1 = load_view_tko weak %q_tiles[%b, %h, %zero] optimization_hints = <default = {allow_tma = false}>
      : !head_part_1x1xD, !int -> !head_1x1xD, token
  %q_row = reshape %q_tile : !head_1x1xD -> !head_1xD
  %query = broadcast %q_row : !head_1xD -> !q_RxD
  // Scores are in units of log 2 once scaled, so that exp2 serves for exp; its results below 2^-126 are 0.
  %log2e = constant <f32: 1.4426950408889634> : !real
  %scale_log2 = mulf %scale, %log2e : !real
  %scale_1x1 = reshape %scale_log2 : !real -> !real_1x1
  %scale_column = broadcast %scale_1x1 : !real_1x1 -> !stat_Rx1
  %scale_full = broadcast %scale_1x1 : !real_1x1 -> !score_RxBS
  %no_score = constant <f32: 0.0> : !score_RxBS
  // Below every score; finite, so that the difference of two of them is 0 and not NaN.
  %max_start = constant <f32: -1.0e30> : !stat_Rx1
  %sum_start = constant <f32: 0.0> : !stat_Rx1
  %acc_start = constant <f32: 0.0> : !acc_RxD

  // The tiles of this span that were full before: all of them, those before the new position, or none.
  %before = mini %behind, %position signed : !int
  %full_from = divi %first, %BS signed : !int
  %full_to = divi %before, %BS signed : !int
  %unread = make_token : token
  %max_full, %sum_full, %acc_full, %read = for %j in (%full_from to %full_to, step %one) : !int
      iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start, %read_old = %unread) -> (!stat_Rx1, !stat_Rx1, !acc_RxD, token) {
    %k_tile, %t2 = load_view_tko weak %kc_tiles[%b, %j, %h, %zero] : !cache_part_1xBSx1xD, !int -> !cache_1xBSx1xD, token
    %k_flat = reshape %k_tile : !cache_1xBSx1xD -> !kv_BSxD
    %k_turned = permute %k_flat [1, 0] : !kv_BSxD -> !k_DxBS
    %score = mmaf %query, %k_turned, %no_score : !q_RxD, !k_DxBS, !score_RxBS

    %tile_max = reduce %score dim=1 identities=[0xFF800000 : f32] : !score_RxBS -> !stat_R
    (%max_a: !real, %max_b: !real) {
      %larger = maxf %max_a, %max_b : !real
      yield %larger : !real
    }
    %tile_max_column = reshape %tile_max : !stat_R -> !stat_Rx1
    %tile_max_scaled = mulf %tile_max_column, %scale_column : !stat_Rx1
    %max_new = maxf %max_old, %tile_max_scaled : !stat_Rx1
    %fall = subf %max_old, %max_new : !stat_Rx1
    %rescale = exp2 %fall flush_to_zero : !stat_Rx1
    %max_line = broadcast %max_new : !stat_Rx1 -> !score_RxBS
    %max_below = negf %max_line : !score_RxBS
    %below = fma %score, %scale_full, %max_below : !score_RxBS
    %p = exp2 %below flush_to_zero : !score_RxBS
    %tile_sum = reduce %p dim=1 identities=[0.0 : f32] : !score_RxBS -> !stat_R
    (%sum_a: !real, %sum_b: !real) {
      %total = addf %sum_a, %sum_b : !real
      yield %total : !real
    }
    %tile_sum_column = reshape %tile_sum : !stat_R -> !stat_Rx1
    %sum_new = fma %sum_old, %rescale, %tile_sum_column : !stat_Rx1

    %v_tile, %t3 = load_view_tko weak %vc_tiles[%b, %j, %h, %zero] : !cache_part_1xBSx1xD, !int -> !cache_1xBSx1xD, token
    %v_flat = reshape %v_tile : !cache_1xBSx1xD -> !kv_BSxD
    %p_elem = ftof %p : !score_RxBS -> !p_RxBS
    %rescale_full = broadcast %rescale : !stat_Rx1 -> !acc_RxD
    %acc_scaled = mulf %acc_old, %rescale_full : !acc_RxD
    %acc_new = mmaf %p_elem, %v_flat, %acc_scaled : !p_RxBS, !kv_BSxD, !acc_RxD
    %read_new = join_tokens %read_old, %t2, %t3 : token
    continue %max_new, %sum_new, %acc_new, %read_new : !stat_Rx1, !stat_Rx1, !acc_RxD, token
  }

  %begun = cmpi less_than_or_equal %first, %position, signed : !int -> !bit
  %not_over = cmpi less_than %position, %behind, signed : !int -> !bit
  %ours = andi %begun, %not_over : !bit
  %max, %sum, %acc = if %ours -> (!stat_Rx1, !stat_Rx1, !acc_RxD) {
    %key_tile, %t4 = load_view_tko weak %k_tiles[%b, %h, %zero] optimization_hints = <default = {allow_tma = false}>
        : !head_part_1x1xD, !int -> !head_1x1xD, token
    %value_tile, %t5 = load_view_tko weak %v_tiles[%b, %h, %zero] optimization_hints = <default = {allow_tma = false}>
        : !head_part_1x1xD, !int -> !head_1x1xD, token
    %key = reshape %key_tile : !head_1x1xD -> !head_1xD
    %value = reshape %value_tile : !head_1x1xD -> !head_1xD

    // The tile with the new position. What lies past it is not ours and may be anything, NaN too.
    %j = divi %position, %BS signed : !int
    %k_first = muli %j, %BS : !int
    %k_first_1x1 = reshape %k_first : !int -> !int_1x1
    %k_first_column = broadcast %k_first_1x1 : !int_1x1 -> !lane_BSx1
    %lane = iota : !lane_BS
    %lane_column = reshape %lane : !lane_BS -> !lane_BSx1
    %place = addi %k_first_column, %lane_column : !lane_BSx1
    %position_1x1 = reshape %position : !int -> !int_1x1
    %position_column = broadcast %position_1x1 : !int_1x1 -> !lane_BSx1
    %new = cmpi equal %place, %position_column, signed : !lane_BSx1 -> !mask_BSx1
    %filled = cmpi less_than_or_equal %place, %position_column, signed : !lane_BSx1 -> !mask_BSx1
    %new_full = broadcast %new : !mask_BSx1 -> !mask_BSxD
    %filled_full = broadcast %filled : !mask_BSx1 -> !mask_BSxD
    %filled_line = reshape %filled : !mask_BSx1 -> !mask_1xBS
    %visible = broadcast %filled_line : !mask_1xBS -> !visible_RxBS

    %k_tile, %k_read = load_view_tko weak %kc_tiles[%b, %j, %h, %zero] : !cache_part_1xBSx1xD, !int -> !cache_1xBSx1xD, token
    %k_flat = reshape %k_tile : !cache_1xBSx1xD -> !kv_BSxD
    %key_full = broadcast %key : !head_1xD -> !kv_BSxD
    %keys = select %new_full, %key_full, %k_flat : !mask_BSxD, !kv_BSxD
    %k_turned = permute %keys [1, 0] : !kv_BSxD -> !k_DxBS
    %product = mmaf %query, %k_turned, %no_score : !q_RxD, !k_DxBS, !score_RxBS
    %hidden = constant <f32: 0xFF800000> : !score_RxBS  // -inf
    %score = select %visible, %product, %hidden : !visible_RxBS, !score_RxBS

    %v_tile, %v_read = load_view_tko weak %vc_tiles[%b, %j, %h, %zero] : !cache_part_1xBSx1xD, !int -> !cache_1xBSx1xD, token
    %v_flat = reshape %v_tile : !cache_1xBSx1xD -> !kv_BSxD
    %value_full = broadcast %value : !head_1xD -> !kv_BSxD
    %v_new = select %new_full, %value_full, %v_flat : !mask_BSxD, !kv_BSxD
    %nothing = constant <T: 0.0> : !kv_BSxD
    %values = select %filled_full, %v_new, %nothing : !mask_BSxD, !kv_BSxD

    %tile_max = reduce %score dim=1 identities=[0xFF800000 : f32] : !score_RxBS -> !stat_R
    (%max_a: !real, %max_b: !real) {
      %larger = maxf %max_a, %max_b : !real
      yield %larger : !real
    }
    %tile_max_column = reshape %tile_max : !stat_R -> !stat_Rx1
    %tile_max_scaled = mulf %tile_max_column, %scale_column : !stat_Rx1
    %max_new = maxf %max_full, %tile_max_scaled : !stat_Rx1
    %fall = subf %max_full, %max_new : !stat_Rx1
    %rescale = exp2 %fall flush_to_zero : !stat_Rx1
    %max_line = broadcast %max_new : !stat_Rx1 -> !score_RxBS
    %max_below = negf %max_line : !score_RxBS
    %below = fma %score, %scale_full, %max_below : !score_RxBS
    %p = exp2 %below flush_to_zero : !score_RxBS
    %tile_sum = reduce %p dim=1 identities=[0.0 : f32] : !score_RxBS -> !stat_R
    (%sum_a: !real, %sum_b: !real) {
      %total = addf %sum_a, %sum_b : !real
      yield %total : !real
    }
    %tile_sum_column = reshape %tile_sum : !stat_R -> !stat_Rx1
    %sum_new = fma %sum_full, %rescale, %tile_sum_column : !stat_Rx1
    %p_elem = ftof %p : !score_RxBS -> !p_RxBS
    %rescale_full = broadcast %rescale : !stat_Rx1 -> !acc_RxD
    %acc_scaled = mulf %acc_full, %rescale_full : !acc_RxD
    %acc_new = mmaf %p_elem, %values, %acc_scaled : !p_RxBS, !kv_BSxD, !acc_RxD

    // Only tokens order memory. That of the last tile's loads would do: those of the other tiles do not meet these rows,
    // and no other block does. But waiting for all of them keeps the compiler from running ahead with more tiles than
    // the registers hold.
    %all_read = join_tokens %read, %k_read, %v_read : token
    %key_row = reshape %key : !head_1xD -> !row_1x1x1xD
    %value_row = reshape %value : !head_1xD -> !row_1x1x1xD
    %t6 = store_view_tko weak %key_row, %kc_rows[%b, %position, %h, %zero] token = %all_read optimization_hints = <default = {allow_tma = false}>
        : !row_1x1x1xD, !row_part_1x1x1xD, !int -> token
    %t7 = store_view_tko weak %value_row, %vc_rows[%b, %position, %h, %zero] token = %all_read optimization_hints = <default = {allow_tma = false}>
        : !row_1x1x1xD, !row_part_1x1x1xD, !int -> token
    yield %max_new, %sum_new, %acc_new : !stat_Rx1, !stat_Rx1, !acc_RxD
  } else {
    yield %max_full, %sum_full, %acc_full : !stat_Rx1, !stat_Rx1, !acc_RxD
  }

  %acc_row = extract %acc[%zero, %zero] : !acc_RxD -> !partial_1xD
  %max_row = extract %max[%zero, %zero] : !stat_Rx1 -> !real_1x1
  %sum_row = extract %sum[%zero, %zero] : !stat_Rx1 -> !real_1x1
  %acc_tile = reshape %acc_row : !partial_1xD -> !partial_1x1x1xD
  %max_tile = reshape %max_row : !real_1x1 -> !real_1x1x1x1
  %sum_tile = reshape %sum_row : !real_1x1 -> !real_1x1x1x1
  %t8 = store_view_tko weak %acc_tile, %part_tiles[%b, %h, %z, %zero] optimization_hints = <default = {allow_tma = false}>
      : !partial_1x1x1xD, !partial_part_1x1x1xD, !int -> token
  %t9 = store_view_tko weak %max_tile, %stat_tiles[%b, %h, %z, %zero] optimization_hints = <default = {allow_tma = false}>
      : !real_1x1x1x1, !stat_part_1x1x1x1, !int -> token
  %t10 = store_view_tko weak %sum_tile, %stat_tiles[%b, %h, %z, %one] optimization_hints = <default = {allow_tma = false}>
      : !real_1x1x1x1, !stat_part_1x1x1x1, !int -> token
  return
}
