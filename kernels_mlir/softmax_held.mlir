sizes BN = 8192

!int = !cuda_tile.tile<i32>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!ptr = !cuda_tile.tile<ptr<T>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!x_part_1xBN = !cuda_tile.partition_view<tile=(1xBN), padding_value = neg_inf, !matrix>
!out_part_1xBN = !cuda_tile.partition_view<tile=(1xBN), !matrix>
!row_1xBN = !cuda_tile.tile<1xBNxT>
!f32_1xBN = !cuda_tile.tile<1xBNxf32>

// out = softmax(x) over rows of at most seven tiles of BN columns
//
// One block makes one row, which stays in registers in its storage type: x is read once, the exponentials are taken twice.
// Columns past N are padded with -inf, whose exponential is 0; results of exp2 below 2^-126 are 0 too.
kernel @softmax_held op = softmax {
  %x_tiles = make_partition_view %x_view : !x_part_1xBN
  %out_tiles = make_partition_view %out_view : !out_part_1xBN

  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %log2e = constant <f32: 1.4426950408889634> : !f32_1xBN
  %j0 = constant <i32: 0> : !int
  %j1 = constant <i32: 1> : !int
  %j2 = constant <i32: 2> : !int
  %j3 = constant <i32: 3> : !int
  %j4 = constant <i32: 4> : !int
  %j5 = constant <i32: 5> : !int
  %j6 = constant <i32: 6> : !int

  %tile0, %t0 = load_view_tko weak %x_tiles[%m, %j0] optimization_hints = <default = {allow_tma = false}>
      : !x_part_1xBN, !int -> !row_1xBN, token
  %tile1, %t1 = load_view_tko weak %x_tiles[%m, %j1] optimization_hints = <default = {allow_tma = false}>
      : !x_part_1xBN, !int -> !row_1xBN, token
  %tile2, %t2 = load_view_tko weak %x_tiles[%m, %j2] optimization_hints = <default = {allow_tma = false}>
      : !x_part_1xBN, !int -> !row_1xBN, token
  %tile3, %t3 = load_view_tko weak %x_tiles[%m, %j3] optimization_hints = <default = {allow_tma = false}>
      : !x_part_1xBN, !int -> !row_1xBN, token
  %tile4, %t4 = load_view_tko weak %x_tiles[%m, %j4] optimization_hints = <default = {allow_tma = false}>
      : !x_part_1xBN, !int -> !row_1xBN, token
  %tile5, %t5 = load_view_tko weak %x_tiles[%m, %j5] optimization_hints = <default = {allow_tma = false}>
      : !x_part_1xBN, !int -> !row_1xBN, token
  %tile6, %t6 = load_view_tko weak %x_tiles[%m, %j6] optimization_hints = <default = {allow_tma = false}>
      : !x_part_1xBN, !int -> !row_1xBN, token

  %max1 = maxf %tile0, %tile1 : !row_1xBN
  %max2 = maxf %max1, %tile2 : !row_1xBN
  %max3 = maxf %max2, %tile3 : !row_1xBN
  %max4 = maxf %max3, %tile4 : !row_1xBN
  %max5 = maxf %max4, %tile5 : !row_1xBN
  %max6 = maxf %max5, %tile6 : !row_1xBN
  %max_f32 = ftof %max6 : !row_1xBN -> !f32_1xBN
  %maximum = reduce %max_f32 dim=1 identities=[0xFF800000 : f32] : !f32_1xBN -> !real_1
  (%max_a: !real, %max_b: !real) {
    %larger = maxf %max_a, %max_b : !real
    yield %larger : !real
  }
  %maximum_1x1 = reshape %maximum : !real_1 -> !real_1x1
  %maximum_full = broadcast %maximum_1x1 : !real_1x1 -> !f32_1xBN

  %value0 = ftof %tile0 : !row_1xBN -> !f32_1xBN
  %below0 = subf %value0, %maximum_full : !f32_1xBN
  %scaled0 = mulf %below0, %log2e : !f32_1xBN
  %power0 = exp2 %scaled0 flush_to_zero : !f32_1xBN
  %value1 = ftof %tile1 : !row_1xBN -> !f32_1xBN
  %below1 = subf %value1, %maximum_full : !f32_1xBN
  %scaled1 = mulf %below1, %log2e : !f32_1xBN
  %power1 = exp2 %scaled1 flush_to_zero : !f32_1xBN
  %sum1 = addf %power0, %power1 : !f32_1xBN
  %value2 = ftof %tile2 : !row_1xBN -> !f32_1xBN
  %below2 = subf %value2, %maximum_full : !f32_1xBN
  %scaled2 = mulf %below2, %log2e : !f32_1xBN
  %power2 = exp2 %scaled2 flush_to_zero : !f32_1xBN
  %sum2 = addf %sum1, %power2 : !f32_1xBN
  %value3 = ftof %tile3 : !row_1xBN -> !f32_1xBN
  %below3 = subf %value3, %maximum_full : !f32_1xBN
  %scaled3 = mulf %below3, %log2e : !f32_1xBN
  %power3 = exp2 %scaled3 flush_to_zero : !f32_1xBN
  %sum3 = addf %sum2, %power3 : !f32_1xBN
  %value4 = ftof %tile4 : !row_1xBN -> !f32_1xBN
  %below4 = subf %value4, %maximum_full : !f32_1xBN
  %scaled4 = mulf %below4, %log2e : !f32_1xBN
  %power4 = exp2 %scaled4 flush_to_zero : !f32_1xBN
  %sum4 = addf %sum3, %power4 : !f32_1xBN
  %value5 = ftof %tile5 : !row_1xBN -> !f32_1xBN
  %below5 = subf %value5, %maximum_full : !f32_1xBN
  %scaled5 = mulf %below5, %log2e : !f32_1xBN
  %power5 = exp2 %scaled5 flush_to_zero : !f32_1xBN
  %sum5 = addf %sum4, %power5 : !f32_1xBN
  %value6 = ftof %tile6 : !row_1xBN -> !f32_1xBN
  %below6 = subf %value6, %maximum_full : !f32_1xBN
  %scaled6 = mulf %below6, %log2e : !f32_1xBN
  %power6 = exp2 %scaled6 flush_to_zero : !f32_1xBN
  %sum6 = addf %sum5, %power6 : !f32_1xBN
  %sum = reduce %sum6 dim=1 identities=[0.0 : f32] : !f32_1xBN -> !real_1
  (%sum_a: !real, %sum_b: !real) {
    %total = addf %sum_a, %sum_b : !real
    yield %total : !real
  }
  %sum_1x1 = reshape %sum : !real_1 -> !real_1x1
  %unit = constant <f32: 1.0> : !real_1x1
  %inverse = divf %unit, %sum_1x1 : !real_1x1
  %inverse_full = broadcast %inverse : !real_1x1 -> !f32_1xBN

  %again_value0 = ftof %tile0 : !row_1xBN -> !f32_1xBN
  %again_below0 = subf %again_value0, %maximum_full : !f32_1xBN
  %again_scaled0 = mulf %again_below0, %log2e : !f32_1xBN
  %again_power0 = exp2 %again_scaled0 flush_to_zero : !f32_1xBN
  %share0 = mulf %again_power0, %inverse_full : !f32_1xBN
  %result0 = ftof %share0 : !f32_1xBN -> !row_1xBN
  %s0 = store_view_tko weak %result0, %out_tiles[%m, %j0] optimization_hints = <default = {allow_tma = false}>
      : !row_1xBN, !out_part_1xBN, !int -> token
  %again_value1 = ftof %tile1 : !row_1xBN -> !f32_1xBN
  %again_below1 = subf %again_value1, %maximum_full : !f32_1xBN
  %again_scaled1 = mulf %again_below1, %log2e : !f32_1xBN
  %again_power1 = exp2 %again_scaled1 flush_to_zero : !f32_1xBN
  %share1 = mulf %again_power1, %inverse_full : !f32_1xBN
  %result1 = ftof %share1 : !f32_1xBN -> !row_1xBN
  %s1 = store_view_tko weak %result1, %out_tiles[%m, %j1] optimization_hints = <default = {allow_tma = false}>
      : !row_1xBN, !out_part_1xBN, !int -> token
  %again_value2 = ftof %tile2 : !row_1xBN -> !f32_1xBN
  %again_below2 = subf %again_value2, %maximum_full : !f32_1xBN
  %again_scaled2 = mulf %again_below2, %log2e : !f32_1xBN
  %again_power2 = exp2 %again_scaled2 flush_to_zero : !f32_1xBN
  %share2 = mulf %again_power2, %inverse_full : !f32_1xBN
  %result2 = ftof %share2 : !f32_1xBN -> !row_1xBN
  %s2 = store_view_tko weak %result2, %out_tiles[%m, %j2] optimization_hints = <default = {allow_tma = false}>
      : !row_1xBN, !out_part_1xBN, !int -> token
  %again_value3 = ftof %tile3 : !row_1xBN -> !f32_1xBN
  %again_below3 = subf %again_value3, %maximum_full : !f32_1xBN
  %again_scaled3 = mulf %again_below3, %log2e : !f32_1xBN
  %again_power3 = exp2 %again_scaled3 flush_to_zero : !f32_1xBN
  %share3 = mulf %again_power3, %inverse_full : !f32_1xBN
  %result3 = ftof %share3 : !f32_1xBN -> !row_1xBN
  %s3 = store_view_tko weak %result3, %out_tiles[%m, %j3] optimization_hints = <default = {allow_tma = false}>
      : !row_1xBN, !out_part_1xBN, !int -> token
  %again_value4 = ftof %tile4 : !row_1xBN -> !f32_1xBN
  %again_below4 = subf %again_value4, %maximum_full : !f32_1xBN
  %again_scaled4 = mulf %again_below4, %log2e : !f32_1xBN
  %again_power4 = exp2 %again_scaled4 flush_to_zero : !f32_1xBN
  %share4 = mulf %again_power4, %inverse_full : !f32_1xBN
  %result4 = ftof %share4 : !f32_1xBN -> !row_1xBN
  %s4 = store_view_tko weak %result4, %out_tiles[%m, %j4] optimization_hints = <default = {allow_tma = false}>
      : !row_1xBN, !out_part_1xBN, !int -> token
  %again_value5 = ftof %tile5 : !row_1xBN -> !f32_1xBN
  %again_below5 = subf %again_value5, %maximum_full : !f32_1xBN
  %again_scaled5 = mulf %again_below5, %log2e : !f32_1xBN
  %again_power5 = exp2 %again_scaled5 flush_to_zero : !f32_1xBN
  %share5 = mulf %again_power5, %inverse_full : !f32_1xBN
  %result5 = ftof %share5 : !f32_1xBN -> !row_1xBN
  %s5 = store_view_tko weak %result5, %out_tiles[%m, %j5] optimization_hints = <default = {allow_tma = false}>
      : !row_1xBN, !out_part_1xBN, !int -> token
  %again_value6 = ftof %tile6 : !row_1xBN -> !f32_1xBN
  %again_below6 = subf %again_value6, %maximum_full : !f32_1xBN
  %again_scaled6 = mulf %again_below6, %log2e : !f32_1xBN
  %again_power6 = exp2 %again_scaled6 flush_to_zero : !f32_1xBN
  %share6 = mulf %again_power6, %inverse_full : !f32_1xBN
  %result6 = ftof %share6 : !f32_1xBN -> !row_1xBN
  %s6 = store_view_tko weak %result6, %out_tiles[%m, %j6] optimization_hints = <default = {allow_tma = false}>
      : !row_1xBN, !out_part_1xBN, !int -> token
  return
}
