// out = softmax(scale q @ k_cache[:length].T) @ v_cache[:length], one query per sequence and head
//
// One block makes one head of one sequence: grid (H, B). It walks the cache in tiles of BS positions as far as that
// sequence's length. With a single query a matrix product would waste the tensor cores, so products are element by
// element in f32. The head size D is a constant of the entry.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!index = !cuda_tile.tile<1xi32>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!ptr = !cuda_tile.tile<ptr<!elem>>
!int_ptr = !cuda_tile.tile<ptr<i32>>
!queries = !cuda_tile.tensor_view<?x?x?x!elem, strides=[?,?,1]>
!cache = !cuda_tile.tensor_view<?x?x?x?x!elem, strides=[?,?,?,1]>
!indices = !cuda_tile.tensor_view<?xi32, strides=[1]>
!index_part = !cuda_tile.partition_view<tile=(1), !indices>
!q_part_1x1xD = !cuda_tile.partition_view<tile=(1x1x64), !queries>
!kv_part_1xBSx1xD = !cuda_tile.partition_view<tile=(1x64x1x64), padding_value = zero, !cache>
!q_1x1xD = !cuda_tile.tile<1x1x64x!elem>
!q_1xD = !cuda_tile.tile<1x64x!elem>
!kv_1xBSx1xD = !cuda_tile.tile<1x64x1x64x!elem>
!kv_BSxD = !cuda_tile.tile<64x64x!elem>
!f32_BSxD = !cuda_tile.tile<64x64xf32>
!f32_1xD = !cuda_tile.tile<1x64xf32>
!f32_D = !cuda_tile.tile<64xf32>
!stat_BS = !cuda_tile.tile<64xf32>
!stat_BSx1 = !cuda_tile.tile<64x1xf32>
!lane_BS = !cuda_tile.tile<64xi32>
!lane_BSx1 = !cuda_tile.tile<64x1xi32>
!mask_BSx1 = !cuda_tile.tile<64x1xi1>
!mask_BSxD = !cuda_tile.tile<64x64xi1>

cuda_tile.module @decode_attention {
  entry @decode_attention(
      %q: !ptr, %q_b: !int, %q_h: !int, %q_d: !int, %q_s0: !int, %q_s1: !int, %q_unit: !int,
      %k: !ptr, %k_b: !int, %k_p: !int, %k_h: !int, %k_d: !int, %k_s0: !int, %k_s1: !int, %k_s2: !int, %k_unit: !int,
      %v: !ptr, %v_b: !int, %v_p: !int, %v_h: !int, %v_d: !int, %v_s0: !int, %v_s1: !int, %v_s2: !int, %v_unit: !int,
      %lengths: !int_ptr, %lengths_b: !int, %lengths_unit: !int,
      %o: !ptr, %o_b: !int, %o_h: !int, %o_d: !int, %o_s0: !int, %o_s1: !int, %o_unit: !int,
      %scale: !real) {
    %B = assume bounded<0, ?>, %q_b : !int
    %H = assume bounded<0, ?>, %q_h : !int
    %P = assume bounded<0, ?>, %k_p : !int
    %q0 = assume bounded<0, ?>, %q_s0 : !int
    %q1 = assume bounded<0, ?>, %q_s1 : !int
    %k0 = assume bounded<0, ?>, %k_s0 : !int
    %k1 = assume bounded<0, ?>, %k_s1 : !int
    %k2 = assume bounded<0, ?>, %k_s2 : !int
    %v0 = assume bounded<0, ?>, %v_s0 : !int
    %v1 = assume bounded<0, ?>, %v_s1 : !int
    %v2 = assume bounded<0, ?>, %v_s2 : !int
    %o0 = assume bounded<0, ?>, %o_s0 : !int
    %o1 = assume bounded<0, ?>, %o_s1 : !int
    %D = constant <i32: 64> : !int
    %q_view = make_tensor_view %q, shape = [%B, %H, %D], strides = [%q0, %q1, 1] : !int -> !queries
    %k_view = make_tensor_view %k, shape = [%B, %P, %H, %D], strides = [%k0, %k1, %k2, 1] : !int -> !cache
    %v_view = make_tensor_view %v, shape = [%B, %P, %H, %D], strides = [%v0, %v1, %v2, 1] : !int -> !cache
    %o_view = make_tensor_view %o, shape = [%B, %H, %D], strides = [%o0, %o1, 1] : !int -> !queries
    %lengths_view = make_tensor_view %lengths, shape = [%B], strides = [1] : !int -> !indices
    %q_tiles = make_partition_view %q_view : !q_part_1x1xD
    %k_tiles = make_partition_view %k_view : !kv_part_1xBSx1xD
    %v_tiles = make_partition_view %v_view : !kv_part_1xBSx1xD
    %o_tiles = make_partition_view %o_view : !q_part_1x1xD
    %length_tiles = make_partition_view %lengths_view : !index_part

    %h, %b, %unused = get_tile_block_id : !int
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BS = constant <i32: 64> : !int
    %length_tile, %t0 = load_view_tko weak %length_tiles[%b] : !index_part, !int -> !index, token
    %length = reshape %length_tile : !index -> !int
    %steps = divi %length, %BS signed rounding<positive_inf> : !int
    %length_1x1 = reshape %length : !int -> !int_1x1
    %length_full = broadcast %length_1x1 : !int_1x1 -> !lane_BSx1
    %lane = iota : !lane_BS
    %lane_column = reshape %lane : !lane_BS -> !lane_BSx1

    %q_tile, %t1 = load_view_tko weak %q_tiles[%b, %h, %zero] : !q_part_1x1xD, !int -> !q_1x1xD, token
    %q_flat = reshape %q_tile : !q_1x1xD -> !q_1xD
    %q_f32 = ftof %q_flat : !q_1xD -> !f32_1xD
    // Scores are kept in units of log 2, so that exp2 serves for exp.
    %log2e = constant <f32: 1.4426950408889634> : !real
    %scale_log2 = mulf %scale, %log2e : !real
    %scale_1x1 = reshape %scale_log2 : !real -> !real_1x1
    %scale_line = broadcast %scale_1x1 : !real_1x1 -> !f32_1xD
    %q_scaled = mulf %q_f32, %scale_line : !f32_1xD
    %q_full = broadcast %q_scaled : !f32_1xD -> !f32_BSxD
    %hidden = constant <f32: 0xFF800000> : !stat_BSx1  // -inf
    %max_start = constant <f32: 0xFF800000> : !real_1x1  // -inf
    %sum_start = constant <f32: 0.0> : !real_1x1
    %acc_start = constant <f32: 0.0> : !f32_1xD

    %max, %sum, %acc = for %j in (%zero to %steps, step %one) : !int
        iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start) -> (!real_1x1, !real_1x1, !f32_1xD) {
      %k_tile, %t2 = load_view_tko weak %k_tiles[%b, %j, %h, %zero] : !kv_part_1xBSx1xD, !int -> !kv_1xBSx1xD, token
      %k_flat = reshape %k_tile : !kv_1xBSx1xD -> !kv_BSxD
      %k_f32 = ftof %k_flat : !kv_BSxD -> !f32_BSxD
      %products = mulf %k_f32, %q_full : !f32_BSxD
      %dots = reduce %products dim=1 identities=[0.0 : f32] : !f32_BSxD -> !stat_BS
      (%dot_a: !real, %dot_b: !real) {
        %total = addf %dot_a, %dot_b : !real
        yield %total : !real
      }
      %dot_column = reshape %dots : !stat_BS -> !stat_BSx1
      %first = muli %j, %BS : !int
      %first_1x1 = reshape %first : !int -> !int_1x1
      %first_full = broadcast %first_1x1 : !int_1x1 -> !lane_BSx1
      %place = addi %first_full, %lane_column : !lane_BSx1
      %filled = cmpi less_than %place, %length_full, signed : !lane_BSx1 -> !mask_BSx1
      %score = select %filled, %dot_column, %hidden : !mask_BSx1, !stat_BSx1

      %tile_max = reduce %score dim=0 identities=[0xFF800000 : f32] : !stat_BSx1 -> !real_1
      (%max_a: !real, %max_b: !real) {
        %larger = maxf %max_a, %max_b : !real
        yield %larger : !real
      }
      %tile_max_1x1 = reshape %tile_max : !real_1 -> !real_1x1
      %max_new = maxf %max_old, %tile_max_1x1 : !real_1x1
      %fall = subf %max_old, %max_new : !real_1x1
      %rescale = exp2 %fall : !real_1x1
      %max_full = broadcast %max_new : !real_1x1 -> !stat_BSx1
      %below = subf %score, %max_full : !stat_BSx1
      %p = exp2 %below : !stat_BSx1
      %tile_sum = reduce %p dim=0 identities=[0.0 : f32] : !stat_BSx1 -> !real_1
      (%sum_a: !real, %sum_b: !real) {
        %total = addf %sum_a, %sum_b : !real
        yield %total : !real
      }
      %tile_sum_1x1 = reshape %tile_sum : !real_1 -> !real_1x1
      %sum_new = fma %sum_old, %rescale, %tile_sum_1x1 : !real_1x1

      // What lies past the length in the cache is not ours and may be anything, NaN too: it must not be multiplied by 0.
      %v_tile, %t3 = load_view_tko weak %v_tiles[%b, %j, %h, %zero] : !kv_part_1xBSx1xD, !int -> !kv_1xBSx1xD, token
      %v_flat = reshape %v_tile : !kv_1xBSx1xD -> !kv_BSxD
      %v_f32 = ftof %v_flat : !kv_BSxD -> !f32_BSxD
      %filled_full = broadcast %filled : !mask_BSx1 -> !mask_BSxD
      %nothing = constant <f32: 0.0> : !f32_BSxD
      %v_filled = select %filled_full, %v_f32, %nothing : !mask_BSxD, !f32_BSxD
      %p_full = broadcast %p : !stat_BSx1 -> !f32_BSxD
      %weighted = mulf %p_full, %v_filled : !f32_BSxD
      %tile_acc = reduce %weighted dim=0 identities=[0.0 : f32] : !f32_BSxD -> !f32_D
      (%acc_a: !real, %acc_b: !real) {
        %total = addf %acc_a, %acc_b : !real
        yield %total : !real
      }
      %tile_acc_line = reshape %tile_acc : !f32_D -> !f32_1xD
      %rescale_full = broadcast %rescale : !real_1x1 -> !f32_1xD
      %acc_new = fma %acc_old, %rescale_full, %tile_acc_line : !f32_1xD
      continue %max_new, %sum_new, %acc_new : !real_1x1, !real_1x1, !f32_1xD
    }

    %sum_full = broadcast %sum : !real_1x1 -> !f32_1xD
    %mean = divf %acc, %sum_full : !f32_1xD
    %result = ftof %mean : !f32_1xD -> !q_1xD
    %result_tile = reshape %result : !q_1xD -> !q_1x1xD
    %stored = store_view_tko weak %result_tile, %o_tiles[%b, %h, %zero] : !q_1x1xD, !q_part_1x1xD, !int -> token
    return
  }
}
