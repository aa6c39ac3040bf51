// out = sum over spans z of partial[z] 2^(max[z] - maximum), by the sum of sum[z] 2^(max[z] - maximum), of at most BZ spans
//
// Puts together what `decode_attention` made of its spans; stats[z] is (max[z], sum[z]). One block makes one head of one
// sequence, all spans at once: grid (H, B). The head size D is a constant of the entry.

!elem = bf16  // storage of the result

!int = !cuda_tile.tile<i32>
!int_1 = !cuda_tile.tile<1xi32>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!ptr = !cuda_tile.tile<ptr<!elem>>
!real_ptr = !cuda_tile.tile<ptr<f32>>
!spans = !cuda_tile.tensor_view<?x?x?x?xf32, strides=[?,?,?,1]>
!heads = !cuda_tile.tensor_view<?x?x?x!elem, strides=[?,?,1]>
!part_part_1x1xBZxD = !cuda_tile.partition_view<tile=(1x1x8x64), padding_value = zero, !spans>
!stat_part_1x1xBZx1 = !cuda_tile.partition_view<tile=(1x1x8x1), padding_value = zero, !spans>
!out_part_1x1xD = !cuda_tile.partition_view<tile=(1x1x64), !heads>
!part_1x1xBZxD = !cuda_tile.tile<1x1x8x64xf32>
!part_BZxD = !cuda_tile.tile<8x64xf32>
!stat_1x1xBZx1 = !cuda_tile.tile<1x1x8x1xf32>
!stat_BZx1 = !cuda_tile.tile<8x1xf32>
!lane_BZ = !cuda_tile.tile<8xi32>
!mask_BZ = !cuda_tile.tile<8xi1>
!mask_BZx1 = !cuda_tile.tile<8x1xi1>
!acc_D = !cuda_tile.tile<64xf32>
!acc_1xD = !cuda_tile.tile<1x64xf32>
!out_1xD = !cuda_tile.tile<1x64x!elem>
!out_1x1xD = !cuda_tile.tile<1x1x64x!elem>

cuda_tile.module @merge_attention_once {
  entry @merge_attention_once(
      %part: !real_ptr, %part_b: !int, %part_h: !int, %part_z: !int, %part_d: !int,
        %part_s0: !int, %part_s1: !int, %part_s2: !int, %part_unit: !int,
      %stats: !real_ptr, %stats_b: !int, %stats_h: !int, %stats_z: !int, %stats_two: !int,
        %stats_s0: !int, %stats_s1: !int, %stats_s2: !int, %stats_unit: !int,
      %o: !ptr, %o_b: !int, %o_h: !int, %o_d: !int, %o_s0: !int, %o_s1: !int, %o_unit: !int) {
    %B = assume bounded<0, ?>, %part_b : !int
    %H = assume bounded<0, ?>, %part_h : !int
    %Z = assume bounded<0, ?>, %part_z : !int
    %part0 = assume bounded<0, ?>, %part_s0 : !int
    %part1 = assume bounded<0, ?>, %part_s1 : !int
    %part2 = assume bounded<0, ?>, %part_s2 : !int
    %stats0 = assume bounded<0, ?>, %stats_s0 : !int
    %stats1 = assume bounded<0, ?>, %stats_s1 : !int
    %stats2 = assume bounded<0, ?>, %stats_s2 : !int
    %o0 = assume bounded<0, ?>, %o_s0 : !int
    %o1 = assume bounded<0, ?>, %o_s1 : !int
    // D as a size at run time: as a constant it makes the code longer, and slower.
    %part_D = assume bounded<0, ?>, %part_d : !int
    %o_D = assume bounded<0, ?>, %o_d : !int
    %two = assume bounded<0, ?>, %stats_two : !int
    %part_view = make_tensor_view %part, shape = [%B, %H, %Z, %part_D], strides = [%part0, %part1, %part2, 1] : !int -> !spans
    %stats_view = make_tensor_view %stats, shape = [%B, %H, %Z, %two], strides = [%stats0, %stats1, %stats2, 1] : !int -> !spans
    %o_view = make_tensor_view %o, shape = [%B, %H, %o_D], strides = [%o0, %o1, 1] : !int -> !heads
    %part_tiles = make_partition_view %part_view : !part_part_1x1xBZxD
    %stat_tiles = make_partition_view %stats_view : !stat_part_1x1xBZx1
    %o_tiles = make_partition_view %o_view : !out_part_1x1xD

    %h, %b, %unused = get_tile_block_id : !int
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %max_tile, %t0 = load_view_tko weak %stat_tiles[%b, %h, %zero, %zero] optimization_hints = <default = {allow_tma = false}>
        : !stat_part_1x1xBZx1, !int -> !stat_1x1xBZx1, token
    %sum_tile, %t1 = load_view_tko weak %stat_tiles[%b, %h, %zero, %one] optimization_hints = <default = {allow_tma = false}>
        : !stat_part_1x1xBZx1, !int -> !stat_1x1xBZx1, token
    %part_tile, %t2 = load_view_tko weak %part_tiles[%b, %h, %zero, %zero] optimization_hints = <default = {allow_tma = false}>
        : !part_part_1x1xBZxD, !int -> !part_1x1xBZxD, token
    %max_column = reshape %max_tile : !stat_1x1xBZx1 -> !stat_BZx1
    %sum_column = reshape %sum_tile : !stat_1x1xBZx1 -> !stat_BZx1
    %part_flat = reshape %part_tile : !part_1x1xBZxD -> !part_BZxD

    // Past the last span stand zeros, which are no maximum of theirs. What takes their place is below every score, and
    // finite, so that the difference of two of them is 0 and not NaN.
    %lane = iota : !lane_BZ
    %Z_1 = reshape %Z : !int -> !int_1
    %Z_full = broadcast %Z_1 : !int_1 -> !lane_BZ
    %within = cmpi less_than %lane, %Z_full, signed : !lane_BZ -> !mask_BZ
    %there = reshape %within : !mask_BZ -> !mask_BZx1
    %least = constant <f32: -1.0e30> : !stat_BZx1
    %tops = select %there, %max_column, %least : !mask_BZx1, !stat_BZx1
    %top = reduce %tops dim=0 identities=[0xFF800000 : f32] : !stat_BZx1 -> !real_1
    (%max_a: !real, %max_b: !real) {
      %larger = maxf %max_a, %max_b : !real
      yield %larger : !real
    }
    %max = reshape %top : !real_1 -> !real_1x1
    %max_full = broadcast %max : !real_1x1 -> !stat_BZx1
    %below = subf %tops, %max_full : !stat_BZx1
    %weights = exp2 %below : !stat_BZx1
    %sum_weighted = mulf %sum_column, %weights : !stat_BZx1
    %sum_all = reduce %sum_weighted dim=0 identities=[0.0 : f32] : !stat_BZx1 -> !real_1
    (%sum_a: !real, %sum_b: !real) {
      %sum_ab = addf %sum_a, %sum_b : !real
      yield %sum_ab : !real
    }
    %sum = reshape %sum_all : !real_1 -> !real_1x1
    %weights_full = broadcast %weights : !stat_BZx1 -> !part_BZxD
    %part_weighted = mulf %part_flat, %weights_full : !part_BZxD
    %acc_all = reduce %part_weighted dim=0 identities=[0.0 : f32] : !part_BZxD -> !acc_D
    (%acc_a: !real, %acc_b: !real) {
      %acc_ab = addf %acc_a, %acc_b : !real
      yield %acc_ab : !real
    }
    %acc = reshape %acc_all : !acc_D -> !acc_1xD

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
}
