sizes D = 64, BT = 64, BS = 128, GROUP = 8

!int = !cuda_tile.tile<i32>
!flag = !cuda_tile.tile<i1>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!real = !cuda_tile.tile<f32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!ptr = !cuda_tile.tile<ptr<T>>
!heads = !cuda_tile.tensor_view<?x?x?x?xT, strides=[?,?,?,1]>
!q_part_1xBTx1xD = !cuda_tile.partition_view<tile=(1xBTx1xD), padding_value = zero, !heads>
!kv_part_1xBSx1xD = !cuda_tile.partition_view<tile=(1xBSx1xD), padding_value = zero, !heads>
!out_part_1xBTx1xD = !cuda_tile.partition_view<tile=(1xBTx1xD), !heads>
!q_1xBTx1xD = !cuda_tile.tile<1xBTx1xDxT>
!kv_1xBSx1xD = !cuda_tile.tile<1xBSx1xDxT>
!q_BTxD = !cuda_tile.tile<BTxDxT>
!kv_BSxD = !cuda_tile.tile<BSxDxT>
!k_DxBS = !cuda_tile.tile<DxBSxT>
!p_BTxBS = !cuda_tile.tile<BTxBSxT>
!score_BTxBS = !cuda_tile.tile<BTxBSxf32>
!mask_BTxBS = !cuda_tile.tile<BTxBSxi1>
!place_BTxBS = !cuda_tile.tile<BTxBSxi32>
!lane_BT = !cuda_tile.tile<BTxi32>
!lane_BTx1 = !cuda_tile.tile<BTx1xi32>
!lane_BS = !cuda_tile.tile<BSxi32>
!lane_1xBS = !cuda_tile.tile<1xBSxi32>
!stat_BT = !cuda_tile.tile<BTxf32>
!stat_BTx1 = !cuda_tile.tile<BTx1xf32>
!acc_BTxD = !cuda_tile.tile<BTxDxf32>

// out = softmax(scale q @ k.T + causal mask) @ v, for each batch and head
//
// attention.mlir with the softmax relative to an anchor, not to a running maximum. The key tiles that the causal mask cuts
// come first, with the online softmax. Their maximum is each query's anchor: the scores of all other tiles are taken
// relative to it, so that these need no maximum and rescale nothing, and no step waits for another's. Any anchor gives the
// same quotient unless something overflows; the block then begins anew and takes all of its tiles with the online softmax.
// That second walk loads without the copy engine: whether it is taken is known to the threads that multiply alone. Of f16
// the weights would overflow early.
kernel @attention_anchored op = attention {
  %q_tiles = make_partition_view %q_view : !q_part_1xBTx1xD
  %k_tiles = make_partition_view %k_view : !kv_part_1xBSx1xD
  %v_tiles = make_partition_view %v_view : !kv_part_1xBSx1xD
  %o_tiles = make_partition_view %out_view : !out_part_1xBTx1xD

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
  // overlaps the loop's steps in another way, and registers spill.
  %ready = gdc_wait_tko -> token

  // Positions of this block's queries and of a key tile's lanes.
  %past = subi %S, %T : !int
  %first = muli %i, %BT : !int
  %first_place = addi %past, %first : !int
  %q_lane = iota : !lane_BT
  %q_lane_column = reshape %q_lane : !lane_BT -> !lane_BTx1
  %first_place_1x1 = reshape %first_place : !int -> !int_1x1
  %first_place_full = broadcast %first_place_1x1 : !int_1x1 -> !lane_BTx1
  %q_place_column = addi %first_place_full, %q_lane_column : !lane_BTx1
  %q_place = broadcast %q_place_column : !lane_BTx1 -> !place_BTxBS
  %k_lane = iota : !lane_BS
  %k_lane_row = reshape %k_lane : !lane_BS -> !lane_1xBS

  // The tile of the first query's own key is the first that the mask may cut: each query has a key in it. The last query
  // sees the keys before first_place + BT, and there are S of them.
  %whole_there = divi %first_place, %BS signed : !int
  %behind = addi %first_place, %BT : !int
  %seen = mini %behind, %S signed : !int
  %steps_there = divi %seen, %BS signed rounding<positive_inf> : !int
  %there = cmpi less_than %b, %B, signed : !int -> !flag
  %whole = select %there, %whole_there, %zero : !flag, !int
  %steps = select %there, %steps_there, %zero : !flag, !int

  %q_tile, %q_token = load_view_tko weak %q_tiles[%b, %i, %h, %zero] : !q_part_1xBTx1xD, !int -> !q_1xBTx1xD, token
  %q_flat = reshape %q_tile : !q_1xBTx1xD -> !q_BTxD
  %log2e = constant <f32: 1.4426950408889634> : !real
  %scale_log2 = mulf %scale, %log2e : !real
  %scale_1x1 = reshape %scale_log2 : !real -> !real_1x1
  %scale_column = broadcast %scale_1x1 : !real_1x1 -> !stat_BTx1
  %scale_full = broadcast %scale_1x1 : !real_1x1 -> !score_BTxBS
  %no_score = constant <f32: 0.0> : !score_BTxBS
  %hidden = constant <f32: 0xFF800000> : !score_BTxBS  // -inf
  %max_start = constant <f32: 0xFF800000> : !stat_BTx1  // -inf
  %sum_start = constant <f32: 0.0> : !stat_BTx1
  %acc_start = constant <f32: 0.0> : !acc_BTxD

  // The tiles under the mask.
  %anchor, %sum_masked, %acc_masked = for %j in (%whole to %steps, step %one) : !int
      iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start) -> (!stat_BTx1, !stat_BTx1, !acc_BTxD) {
    %k_tile, %k_token = load_view_tko weak %k_tiles[%b, %j, %h, %zero] : !kv_part_1xBSx1xD, !int -> !kv_1xBSx1xD, token
    %k_flat = reshape %k_tile : !kv_1xBSx1xD -> !kv_BSxD
    %k_turned = permute %k_flat [1, 0] : !kv_BSxD -> !k_DxBS
    %product = mmaf %q_flat, %k_turned, %no_score : !q_BTxD, !k_DxBS, !score_BTxBS

    %k_first = muli %j, %BS : !int
    %k_first_1x1 = reshape %k_first : !int -> !int_1x1
    %k_first_full = broadcast %k_first_1x1 : !int_1x1 -> !lane_1xBS
    %k_place_row = addi %k_first_full, %k_lane_row : !lane_1xBS
    %k_place = broadcast %k_place_row : !lane_1xBS -> !place_BTxBS
    %visible = cmpi less_than_or_equal %k_place, %q_place, signed : !place_BTxBS -> !mask_BTxBS
    // Each query has a key in the first tile, so the maximum is finite from there on.
    %score = select %visible, %product, %hidden : !mask_BTxBS, !score_BTxBS

    %tile_max = reduce %score dim=1 identities=[0xFF800000 : f32] : !score_BTxBS -> !stat_BT
    (%max_a: !real, %max_b: !real) {
      %larger = maxf %max_a, %max_b : !real
      yield %larger : !real
    }
    %tile_max_column = reshape %tile_max : !stat_BT -> !stat_BTx1
    %tile_max_scaled = mulf %tile_max_column, %scale_column : !stat_BTx1
    %max_new = maxf %max_old, %tile_max_scaled : !stat_BTx1
    %fall = subf %max_old, %max_new : !stat_BTx1
    %rescale = exp2 %fall flush_to_zero : !stat_BTx1
    %max_full = broadcast %max_new : !stat_BTx1 -> !score_BTxBS
    %max_below = negf %max_full : !score_BTxBS
    %below = fma %score, %scale_full, %max_below : !score_BTxBS
    %p = exp2 %below flush_to_zero : !score_BTxBS
    %tile_sum = reduce %p dim=1 identities=[0.0 : f32] : !score_BTxBS -> !stat_BT
    (%sum_a: !real, %sum_b: !real) {
      %total = addf %sum_a, %sum_b : !real
      yield %total : !real
    }
    %tile_sum_column = reshape %tile_sum : !stat_BT -> !stat_BTx1
    %sum_new = fma %sum_old, %rescale, %tile_sum_column : !stat_BTx1

    %v_tile, %v_token = load_view_tko weak %v_tiles[%b, %j, %h, %zero] : !kv_part_1xBSx1xD, !int -> !kv_1xBSx1xD, token
    %v_flat = reshape %v_tile : !kv_1xBSx1xD -> !kv_BSxD
    %p_elem = ftof %p : !score_BTxBS -> !p_BTxBS
    %rescale_full = broadcast %rescale : !stat_BTx1 -> !acc_BTxD
    %acc_scaled = mulf %acc_old, %rescale_full : !acc_BTxD
    %acc_new = mmaf %p_elem, %v_flat, %acc_scaled : !p_BTxBS, !kv_BSxD, !acc_BTxD
    continue %max_new, %sum_new, %acc_new : !stat_BTx1, !stat_BTx1, !acc_BTxD
  }

  // All others, relative to the anchor.
  %anchor_full = broadcast %anchor : !stat_BTx1 -> !score_BTxBS
  %anchor_below = negf %anchor_full : !score_BTxBS
  %sum_fast, %acc_fast = for %j in (%zero to %whole, step %one) : !int
      iter_values(%sum_old = %sum_masked, %acc_old = %acc_masked) -> (!stat_BTx1, !acc_BTxD) {
    %k_tile, %k_token = load_view_tko weak %k_tiles[%b, %j, %h, %zero] : !kv_part_1xBSx1xD, !int -> !kv_1xBSx1xD, token
    %k_flat = reshape %k_tile : !kv_1xBSx1xD -> !kv_BSxD
    %k_turned = permute %k_flat [1, 0] : !kv_BSxD -> !k_DxBS
    %score = mmaf %q_flat, %k_turned, %no_score : !q_BTxD, !k_DxBS, !score_BTxBS

    %below = fma %score, %scale_full, %anchor_below : !score_BTxBS
    %p = exp2 %below flush_to_zero : !score_BTxBS
    %tile_sum = reduce %p dim=1 identities=[0.0 : f32] : !score_BTxBS -> !stat_BT
    (%sum_a: !real, %sum_b: !real) {
      %total = addf %sum_a, %sum_b : !real
      yield %total : !real
    }
    %tile_sum_column = reshape %tile_sum : !stat_BT -> !stat_BTx1
    %sum_new = addf %sum_old, %tile_sum_column : !stat_BTx1

    %v_tile, %v_token = load_view_tko weak %v_tiles[%b, %j, %h, %zero] : !kv_part_1xBSx1xD, !int -> !kv_1xBSx1xD, token
    %v_flat = reshape %v_tile : !kv_1xBSx1xD -> !kv_BSxD
    %p_elem = ftof %p : !score_BTxBS -> !p_BTxBS
    %acc_new = mmaf %p_elem, %v_flat, %acc_old : !p_BTxBS, !kv_BSxD, !acc_BTxD
    continue %sum_new, %acc_new : !stat_BTx1, !acc_BTxD
  }

  // What is not finite in the result makes the level NaN. The limit is 2^120: below where bf16 and f32 end, and 83 in the
  // scores above the anchor.
  %acc_sum = reduce %acc_fast dim=1 identities=[0.0 : f32] : !acc_BTxD -> !stat_BT
  (%sum_a: !real, %sum_b: !real) {
    %total = addf %sum_a, %sum_b : !real
    yield %total : !real
  }
  %acc_sum_column = reshape %acc_sum : !stat_BT -> !stat_BTx1
  %levels_column = fma %acc_sum_column, %sum_start, %sum_fast : !stat_BTx1
  %levels = reshape %levels_column : !stat_BTx1 -> !stat_BT
  %level = reduce %levels dim=0 identities=[0.0 : f32] : !stat_BT -> !real
  (%sum_a: !real, %sum_b: !real) {
    %total = addf %sum_a, %sum_b : !real
    yield %total : !real
  }
  %most = constant <f32: 1.329227995784916e36> : !real
  %fits = cmpf less_than ordered %level, %most : !real -> !flag
  %sum, %acc = if %fits -> (!stat_BTx1, !acc_BTxD) {
    yield %sum_fast, %acc_fast : !stat_BTx1, !acc_BTxD
  } else {
    %max, %sum_anew, %acc_anew = for %j in (%zero to %steps, step %one) : !int
        iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start) -> (!stat_BTx1, !stat_BTx1, !acc_BTxD) {
      %k_tile, %k_token = load_view_tko weak %k_tiles[%b, %j, %h, %zero] optimization_hints = <default = {allow_tma = false}> : !kv_part_1xBSx1xD, !int -> !kv_1xBSx1xD, token
      %k_flat = reshape %k_tile : !kv_1xBSx1xD -> !kv_BSxD
      %k_turned = permute %k_flat [1, 0] : !kv_BSxD -> !k_DxBS
      %product = mmaf %q_flat, %k_turned, %no_score : !q_BTxD, !k_DxBS, !score_BTxBS

      %k_first = muli %j, %BS : !int
      %k_first_1x1 = reshape %k_first : !int -> !int_1x1
      %k_first_full = broadcast %k_first_1x1 : !int_1x1 -> !lane_1xBS
      %k_place_row = addi %k_first_full, %k_lane_row : !lane_1xBS
      %k_place = broadcast %k_place_row : !lane_1xBS -> !place_BTxBS
      %visible = cmpi less_than_or_equal %k_place, %q_place, signed : !place_BTxBS -> !mask_BTxBS
      // Key 0 is visible to every query, so the maximum is finite from the first tile on.
      %score = select %visible, %product, %hidden : !mask_BTxBS, !score_BTxBS

      %tile_max = reduce %score dim=1 identities=[0xFF800000 : f32] : !score_BTxBS -> !stat_BT
      (%max_a: !real, %max_b: !real) {
        %larger = maxf %max_a, %max_b : !real
        yield %larger : !real
      }
      %tile_max_column = reshape %tile_max : !stat_BT -> !stat_BTx1
      %tile_max_scaled = mulf %tile_max_column, %scale_column : !stat_BTx1
      %max_new = maxf %max_old, %tile_max_scaled : !stat_BTx1
      %fall = subf %max_old, %max_new : !stat_BTx1
      %rescale = exp2 %fall flush_to_zero : !stat_BTx1
      %max_full = broadcast %max_new : !stat_BTx1 -> !score_BTxBS
      %max_below = negf %max_full : !score_BTxBS
      %below = fma %score, %scale_full, %max_below : !score_BTxBS
      %p = exp2 %below flush_to_zero : !score_BTxBS
      %tile_sum = reduce %p dim=1 identities=[0.0 : f32] : !score_BTxBS -> !stat_BT
      (%sum_a: !real, %sum_b: !real) {
        %total = addf %sum_a, %sum_b : !real
        yield %total : !real
      }
      %tile_sum_column = reshape %tile_sum : !stat_BT -> !stat_BTx1
      %sum_new = fma %sum_old, %rescale, %tile_sum_column : !stat_BTx1

      %v_tile, %v_token = load_view_tko weak %v_tiles[%b, %j, %h, %zero] optimization_hints = <default = {allow_tma = false}> : !kv_part_1xBSx1xD, !int -> !kv_1xBSx1xD, token
      %v_flat = reshape %v_tile : !kv_1xBSx1xD -> !kv_BSxD
      %p_elem = ftof %p : !score_BTxBS -> !p_BTxBS
      %rescale_full = broadcast %rescale : !stat_BTx1 -> !acc_BTxD
      %acc_scaled = mulf %acc_old, %rescale_full : !acc_BTxD
      %acc_new = mmaf %p_elem, %v_flat, %acc_scaled : !p_BTxBS, !kv_BSxD, !acc_BTxD
      continue %max_new, %sum_new, %acc_new : !stat_BTx1, !stat_BTx1, !acc_BTxD
    }
    yield %sum_anew, %acc_anew : !stat_BTx1, !acc_BTxD
  }

  %unit = constant <f32: 1.0> : !stat_BTx1
  %inverse = divf %unit, %sum : !stat_BTx1
  %inverse_full = broadcast %inverse : !stat_BTx1 -> !acc_BTxD
  %mean = mulf %acc, %inverse_full : !acc_BTxD
  %result = ftof %mean : !acc_BTxD -> !q_BTxD
  %result_tile = reshape %result : !q_BTxD -> !q_1xBTx1xD
  %stored = store_view_tko weak %result_tile, %o_tiles[%b, %i, %h, %zero] : !q_1xBTx1xD, !out_part_1xBTx1xD, !int -> token
  return
}
