sizes R = 2, BN = 1024

!int = !cuda_tile.tile<i32>
!real = !cuda_tile.tile<f32>
!ptr = !cuda_tile.tile<ptr<T>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!x_part_RxBN = !cuda_tile.partition_view<tile=(RxBN), padding_value = neg_inf, !matrix>
!out_part_RxBN = !cuda_tile.partition_view<tile=(RxBN), !matrix>
!rows_RxBN = !cuda_tile.tile<RxBNxT>
!f32_RxBN = !cuda_tile.tile<RxBNxf32>
!stat_R = !cuda_tile.tile<Rxf32>
!stat_Rx1 = !cuda_tile.tile<Rx1xf32>

// out = softmax(x) over rows of at most BN columns
//
// One block makes R rows, which stay in registers: x is read once. Columns past N are padded with -inf, whose
// exponential is 0; results of exp2 below 2^-126 are 0 too.
kernel @softmax_row op = softmax {
  %x_tiles = make_partition_view %x_view : !x_part_RxBN
  %out_tiles = make_partition_view %out_view : !out_part_RxBN

  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %tile, %token = load_view_tko weak %x_tiles[%m, %zero] optimization_hints = <default = {allow_tma = false}>
      : !x_part_RxBN, !int -> !rows_RxBN, token
  %value = ftof %tile : !rows_RxBN -> !f32_RxBN
  %maximum = reduce %value dim=1 identities=[0xFF800000 : f32] : !f32_RxBN -> !stat_R
  (%max_a: !real, %max_b: !real) {
    %larger = maxf %max_a, %max_b : !real
    yield %larger : !real
  }
  %maximum_column = reshape %maximum : !stat_R -> !stat_Rx1
  %maximum_full = broadcast %maximum_column : !stat_Rx1 -> !f32_RxBN
  %log2e = constant <f32: 1.4426950408889634> : !f32_RxBN
  %below = subf %value, %maximum_full : !f32_RxBN
  %scaled = mulf %below, %log2e : !f32_RxBN
  %power = exp2 %scaled flush_to_zero : !f32_RxBN
  %sum = reduce %power dim=1 identities=[0.0 : f32] : !f32_RxBN -> !stat_R
  (%sum_a: !real, %sum_b: !real) {
    %total = addf %sum_a, %sum_b : !real
    yield %total : !real
  }
  %sum_column = reshape %sum : !stat_R -> !stat_Rx1
  %unit = constant <f32: 1.0> : !stat_Rx1
  %inverse = divf %unit, %sum_column : !stat_Rx1
  %inverse_full = broadcast %inverse : !stat_Rx1 -> !f32_RxBN
  %share = mulf %power, %inverse_full : !f32_RxBN
  %result = ftof %share : !f32_RxBN -> !rows_RxBN
  %stored = store_view_tko weak %result, %out_tiles[%m, %zero] optimization_hints = <default = {allow_tma = false}>
      : !rows_RxBN, !out_part_RxBN, !int -> token
  return
}
