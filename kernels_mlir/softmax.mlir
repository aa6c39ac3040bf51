sizes BN = 1024

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

// out = softmax(x) over rows of any width N
//
// One block makes one row, in tiles of BN columns, in two passes: the largest value and the sum of the exponentials of the
// differences from it, both per lane and rescaled when a lane's largest rises; then the result. Columns past N are padded
// with -inf, whose exponential is 0.
kernel @softmax op = softmax {
  %x_tiles = make_partition_view %x_view : !x_part_1xBN
  %out_tiles = make_partition_view %out_view : !out_part_1xBN

  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BN = constant <i32: BN> : !int
  %steps = divi %N, %BN signed rounding<positive_inf> : !int
  // f32's least: not above any value, and the difference of two of them is 0, not NaN.
  %least = constant <f32: -3.4028234663852886e38> : !f32_1xBN
  %nothing = constant <f32: 0.0> : !f32_1xBN
  %log2e = constant <f32: 1.4426950408889634> : !f32_1xBN

  %maxima, %sums = for %j in (%zero to %steps, step %one) : !int
      iter_values(%max_old = %least, %sum_old = %nothing) -> (!f32_1xBN, !f32_1xBN) {
    %tile, %token = load_view_tko weak %x_tiles[%m, %j] optimization_hints = <default = {allow_tma = false}>
        : !x_part_1xBN, !int -> !row_1xBN, token
    %value = ftof %tile : !row_1xBN -> !f32_1xBN
    %max_new = maxf %max_old, %value : !f32_1xBN
    %fall = subf %max_old, %max_new : !f32_1xBN
    %fall_scaled = mulf %fall, %log2e : !f32_1xBN
    %rescale = exp2 %fall_scaled flush_to_zero : !f32_1xBN
    %below = subf %value, %max_new : !f32_1xBN
    %scaled = mulf %below, %log2e : !f32_1xBN
    %power = exp2 %scaled flush_to_zero : !f32_1xBN
    %sum_new = fma %sum_old, %rescale, %power : !f32_1xBN
    continue %max_new, %sum_new : !f32_1xBN, !f32_1xBN
  }
  %maximum = reduce %maxima dim=1 identities=[0xFF800000 : f32] : !f32_1xBN -> !real_1
  (%max_a: !real, %max_b: !real) {
    %larger = maxf %max_a, %max_b : !real
    yield %larger : !real
  }
  %maximum_1x1 = reshape %maximum : !real_1 -> !real_1x1
  %maximum_full = broadcast %maximum_1x1 : !real_1x1 -> !f32_1xBN
  %lane_fall = subf %maxima, %maximum_full : !f32_1xBN
  %lane_scaled = mulf %lane_fall, %log2e : !f32_1xBN
  %lane_rescale = exp2 %lane_scaled flush_to_zero : !f32_1xBN
  %lanes = mulf %sums, %lane_rescale : !f32_1xBN
  %sum = reduce %lanes dim=1 identities=[0.0 : f32] : !f32_1xBN -> !real_1
  (%sum_a: !real, %sum_b: !real) {
    %total = addf %sum_a, %sum_b : !real
    yield %total : !real
  }
  %sum_1x1 = reshape %sum : !real_1 -> !real_1x1
  %unit = constant <f32: 1.0> : !real_1x1
  %inverse = divf %unit, %sum_1x1 : !real_1x1
  %inverse_full = broadcast %inverse : !real_1x1 -> !f32_1xBN

  for %j in (%zero to %steps, step %one) : !int {
    %tile, %token = load_view_tko weak %x_tiles[%m, %j] optimization_hints = <default = {allow_tma = false}>
        : !x_part_1xBN, !int -> !row_1xBN, token
    %value = ftof %tile : !row_1xBN -> !f32_1xBN
    %below = subf %value, %maximum_full : !f32_1xBN
    %scaled = mulf %below, %log2e : !f32_1xBN
    %power = exp2 %scaled flush_to_zero : !f32_1xBN
    %share = mulf %power, %inverse_full : !f32_1xBN
    %result = ftof %share : !f32_1xBN -> !row_1xBN
    %stored = store_view_tko weak %result, %out_tiles[%m, %j] optimization_hints = <default = {allow_tma = false}>
        : !row_1xBN, !out_part_1xBN, !int -> token
    continue
  }
  return
}
