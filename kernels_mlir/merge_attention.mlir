sizes D = 32, BZ = 8

!int = !cuda_tile.tile<i32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!ptr = !cuda_tile.tile<ptr<T>>
!real_ptr = !cuda_tile.tile<ptr<f32>>
!spans = !cuda_tile.tensor_view<?x?x?x?xf32, strides=[?,?,?,1]>
!heads = !cuda_tile.tensor_view<?x?x?xT, strides=[?,?,1]>
!part_part_1x1xBZxD = !cuda_tile.partition_view<tile=(1x1xBZxD), padding_value = zero, !spans>
!stat_part_1x1xBZx1 = !cuda_tile.partition_view<tile=(1x1xBZx1), padding_value = zero, !spans>
!out_part_1x1xD = !cuda_tile.partition_view<tile=(1x1xD), !heads>
!part_1x1xBZxD = !cuda_tile.tile<1x1xBZxDxf32>
!part_BZxD = !cuda_tile.tile<BZxDxf32>
!stat_1x1xBZx1 = !cuda_tile.tile<1x1xBZx1xf32>
!stat_BZx1 = !cuda_tile.tile<BZx1xf32>
!lane_BZ = !cuda_tile.tile<BZxi32>
!lane_BZx1 = !cuda_tile.tile<BZx1xi32>
!mask_BZx1 = !cuda_tile.tile<BZx1xi1>
!acc_D = !cuda_tile.tile<Dxf32>
!acc_1xD = !cuda_tile.tile<1xDxf32>
!out_1xD = !cuda_tile.tile<1xDxT>
!out_1x1xD = !cuda_tile.tile<1x1xDxT>

// out = sum over spans z of partial[z] 2^(max[z] - maximum), by the sum of sum[z] 2^(max[z] - maximum)
//
// Puts together what `decode_attention` made of its spans; stats[z] is (max[z], sum[z]). One block makes one head of one
// sequence, BZ spans at a time: grid (H, B). The head size D is a constant of the entry.
kernel @merge_attention op = merge_attention {
  // D as a size at run time: as a constant it makes the code longer, and slower.
  %part_D = assume bounded<0, ?>, %partial_d : !int
  %o_D = assume bounded<0, ?>, %out_d : !int
  %part_view = make_tensor_view %partial_ptr, shape = [%B, %H, %Z, %part_D], strides = [%partial_stride0, %partial_stride1, %partial_stride2, 1] : !int -> !spans
  %o_view = make_tensor_view %out_ptr, shape = [%B, %H, %o_D], strides = [%out_stride0, %out_stride1, 1] : !int -> !heads
  %part_tiles = make_partition_view %part_view : !part_part_1x1xBZxD
  %stat_tiles = make_partition_view %stats_view : !stat_part_1x1xBZx1
  %o_tiles = make_partition_view %o_view : !out_part_1x1xD

  %h, %b, %unused = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BZ = constant <i32: BZ> : !int
  %steps = divi %Z, %BZ signed rounding<positive_inf> : !int
  %lane = iota : !lane_BZ
  %lane_column = reshape %lane : !lane_BZ -> !lane_BZx1
  %Z_1x1 = reshape %Z : !int -> !int_1x1
  %Z_column = broadcast %Z_1x1 : !int_1x1 -> !lane_BZx1
  // Below every score; finite, so that the difference of two of them is 0 and not NaN.
  %least = constant <f32: -1.0e30> : !stat_BZx1
  %max_start = constant <f32: -1.0e30> : !real_1x1
  %sum_start = constant <f32: 0.0> : !real_1x1
  %acc_start = constant <f32: 0.0> : !acc_1xD

  %max, %sum, %acc = for %j in (%zero to %steps, step %one) : !int
      iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start) -> (!real_1x1, !real_1x1, !acc_1xD) {
    %first = muli %j, %BZ : !int
    %first_1x1 = reshape %first : !int -> !int_1x1
    %first_column = broadcast %first_1x1 : !int_1x1 -> !lane_BZx1
    %span = addi %first_column, %lane_column : !lane_BZx1
    %there = cmpi less_than %span, %Z_column, signed : !lane_BZx1 -> !mask_BZx1

    %max_tile, %t0 = load_view_tko weak %stat_tiles[%b, %h, %j, %zero] optimization_hints = <default = {allow_tma = false}>
        : !stat_part_1x1xBZx1, !int -> !stat_1x1xBZx1, token
    %sum_tile, %t1 = load_view_tko weak %stat_tiles[%b, %h, %j, %one] optimization_hints = <default = {allow_tma = false}>
        : !stat_part_1x1xBZx1, !int -> !stat_1x1xBZx1, token
    %part_tile, %t2 = load_view_tko weak %part_tiles[%b, %h, %j, %zero] optimization_hints = <default = {allow_tma = false}>
        : !part_part_1x1xBZxD, !int -> !part_1x1xBZxD, token
    %max_column = reshape %max_tile : !stat_1x1xBZx1 -> !stat_BZx1
    %sum_column = reshape %sum_tile : !stat_1x1xBZx1 -> !stat_BZx1
    %part_flat = reshape %part_tile : !part_1x1xBZxD -> !part_BZxD

    // Past the last span stand zeros, which are no maximum of theirs.
    %tops = select %there, %max_column, %least : !mask_BZx1, !stat_BZx1
    %tile_max = reduce %tops dim=0 identities=[0xFF800000 : f32] : !stat_BZx1 -> !real_1
    (%max_a: !real, %max_b: !real) {
      %larger = maxf %max_a, %max_b : !real
      yield %larger : !real
    }
    %tile_max_1x1 = reshape %tile_max : !real_1 -> !real_1x1
    %max_new = maxf %max_old, %tile_max_1x1 : !real_1x1
    %fall = subf %max_old, %max_new : !real_1x1
    %rescale = exp2 %fall : !real_1x1
    %max_full = broadcast %max_new : !real_1x1 -> !stat_BZx1
    %below = subf %tops, %max_full : !stat_BZx1
    %weights = exp2 %below : !stat_BZx1
    %sum_weighted = mulf %sum_column, %weights : !stat_BZx1
    %tile_sum = reduce %sum_weighted dim=0 identities=[0.0 : f32] : !stat_BZx1 -> !real_1
    (%sum_a: !real, %sum_b: !real) {
      %total = addf %sum_a, %sum_b : !real
      yield %total : !real
    }
    %tile_sum_1x1 = reshape %tile_sum : !real_1 -> !real_1x1
    %sum_new = fma %sum_old, %rescale, %tile_sum_1x1 : !real_1x1

    %weights_full = broadcast %weights : !stat_BZx1 -> !part_BZxD
    %part_weighted = mulf %part_flat, %weights_full : !part_BZxD
    %tile_acc = reduce %part_weighted dim=0 identities=[0.0 : f32] : !part_BZxD -> !acc_D
    (%acc_a: !real, %acc_b: !real) {
      %total = addf %acc_a, %acc_b : !real
      yield %total : !real
    }
    %tile_acc_line = reshape %tile_acc : !acc_D -> !acc_1xD
    %rescale_full = broadcast %rescale : !real_1x1 -> !acc_1xD
    %acc_new = fma %acc_old, %rescale_full, %tile_acc_line : !acc_1xD
    continue %max_new, %sum_new, %acc_new : !real_1x1, !real_1x1, !acc_1xD
  }

  %unit = constant <f32: 1.0> : !real_1x1
  %inverse = divf %unit, %sum : !real_1x1
  %inverse_full = broadcast %inverse : !real_1x1 -> !acc_1xD
  %mean = mulf %acc, %inverse_full : !acc_1xD
  %result = ftof %mean : !acc_1xD -> !out_1xD
  %result_tile = reshape %result : !out_1xD -> !out_1x1xD
  %stored = store_view_tko weak %result_tile, %o_tiles[%b, %h, %zero] optimization_hints = <default = {allow_tma = false}>
      : !out_1x1xD, !out_part_1x1xD, !int -> token
  return
}
