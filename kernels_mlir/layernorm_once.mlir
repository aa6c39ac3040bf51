sizes R = 1, BC = 1024

!int = !cuda_tile.tile<i32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!real = !cuda_tile.tile<f32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!ptr = !cuda_tile.tile<ptr<T>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?xT, strides=[1]>
!x_part_RxBC = !cuda_tile.partition_view<tile=(RxBC), padding_value = zero, !matrix>
!first_part_Rx1 = !cuda_tile.partition_view<tile=(Rx1), padding_value = zero, !matrix>
!out_part_RxBC = !cuda_tile.partition_view<tile=(RxBC), !matrix>
!vector_part_BC = !cuda_tile.partition_view<tile=(BC), padding_value = zero, !vector>
!rows_RxBC = !cuda_tile.tile<RxBCxT>
!first_Rx1 = !cuda_tile.tile<Rx1xT>
!vector_BC = !cuda_tile.tile<BCxT>
!vector_f32_BC = !cuda_tile.tile<BCxf32>
!vector_f32_1xBC = !cuda_tile.tile<1xBCxf32>
!f32_RxBC = !cuda_tile.tile<RxBCxf32>
!stat_R = !cuda_tile.tile<Rxf32>
!stat_Rx1 = !cuda_tile.tile<Rx1xf32>
!lane_BC = !cuda_tile.tile<BCxi32>
!column_1xBC = !cuda_tile.tile<1xBCxi32>
!mask_1xBC = !cuda_tile.tile<1xBCxi1>
!mask_RxBC = !cuda_tile.tile<RxBCxi1>

// out = (x - mean) / sqrt(variance + eps) * weight + bias, over rows of at most BC columns
//
// One block makes R rows, which stay in registers: x is read once. Mean and variance are taken in one pass over the
// differences from each row's first element. They are at most sqrt(C) standard deviations from the mean, so that what
// cancels in the variance costs it at most a relative C * 2^-24: good enough for results of 16 bits, not for f32. The weight
// and the bias are read before the wait for the launches before this one: they arrive while those still run.
kernel @layernorm_once op = layernorm {
  %x_tiles = make_partition_view %x_view : !x_part_RxBC
  %x_firsts = make_partition_view %x_view : !first_part_Rx1
  %w_tiles = make_partition_view %weight_view : !vector_part_BC
  %b_tiles = make_partition_view %bias_view : !vector_part_BC
  %out_tiles = make_partition_view %out_view : !out_part_RxBC

  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %w_tile, %t0 = load_view_tko weak %w_tiles[%zero] optimization_hints = <default = {allow_tma = false}>
      : !vector_part_BC, !int -> !vector_BC, token
  %b_tile, %t1 = load_view_tko weak %b_tiles[%zero] optimization_hints = <default = {allow_tma = false}>
      : !vector_part_BC, !int -> !vector_BC, token
  %w_f32 = ftof %w_tile : !vector_BC -> !vector_f32_BC
  %b_f32 = ftof %b_tile : !vector_BC -> !vector_f32_BC
  %w_line = reshape %w_f32 : !vector_f32_BC -> !vector_f32_1xBC
  %b_line = reshape %b_f32 : !vector_f32_BC -> !vector_f32_1xBC
  %w_full = broadcast %w_line : !vector_f32_1xBC -> !f32_RxBC
  %b_full = broadcast %b_line : !vector_f32_1xBC -> !f32_RxBC

  // The wait comes after these reads by their tokens: else the compiler may put it first.
  %ahead = join_tokens %t0, %t1 : token
  %ready = gdc_wait_tko token = %ahead -> token
  %tile, %t2 = load_view_tko weak %x_tiles[%n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !x_part_RxBC, !int -> !rows_RxBC, token
  %first_tile, %t3 = load_view_tko weak %x_firsts[%n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !first_part_Rx1, !int -> !first_Rx1, token
  %value = ftof %tile : !rows_RxBC -> !f32_RxBC
  %first = ftof %first_tile : !first_Rx1 -> !stat_Rx1
  %first_full = broadcast %first : !stat_Rx1 -> !f32_RxBC

  // Columns past C were padded with zeros, which differ from the first element: they must not count.
  %lane = iota : !lane_BC
  %column = reshape %lane : !lane_BC -> !column_1xBC
  %C_1x1 = reshape %C : !int -> !int_1x1
  %C_line = broadcast %C_1x1 : !int_1x1 -> !column_1xBC
  %inside = cmpi less_than %column, %C_line, signed : !column_1xBC -> !mask_1xBC
  %inside_full = broadcast %inside : !mask_1xBC -> !mask_RxBC
  %nothing = constant <f32: 0.0> : !f32_RxBC
  %from_first = subf %value, %first_full : !f32_RxBC
  %difference = select %inside_full, %from_first, %nothing : !mask_RxBC, !f32_RxBC
  %square = mulf %difference, %difference : !f32_RxBC
  %sum, %square_sum = reduce %difference, %square dim=1 identities=[0.0 : f32, 0.0 : f32]
      : !f32_RxBC, !f32_RxBC -> !stat_R, !stat_R
  (%sum_a: !real, %sum_b: !real, %square_a: !real, %square_b: !real) {
    %sum_ab = addf %sum_a, %sum_b : !real
    %square_ab = addf %square_a, %square_b : !real
    yield %sum_ab, %square_ab : !real, !real
  }
  %sum_column = reshape %sum : !stat_R -> !stat_Rx1
  %square_column = reshape %square_sum : !stat_R -> !stat_Rx1
  %width = itof %C signed : !int -> !real
  %width_1x1 = reshape %width : !real -> !real_1x1
  %width_column = broadcast %width_1x1 : !real_1x1 -> !stat_Rx1
  %mean = divf %sum_column, %width_column : !stat_Rx1
  %mean_full = broadcast %mean : !stat_Rx1 -> !f32_RxBC
  %mean_square = divf %square_column, %width_column : !stat_Rx1
  %square_mean = mulf %mean, %mean : !stat_Rx1
  %spread = subf %mean_square, %square_mean : !stat_Rx1
  %least = constant <f32: 0.0> : !stat_Rx1
  %variance = maxf %spread, %least : !stat_Rx1
  %deviation = subf %difference, %mean_full : !f32_RxBC
  %eps_1x1 = reshape %eps : !real -> !real_1x1
  %eps_column = broadcast %eps_1x1 : !real_1x1 -> !stat_Rx1
  %shifted = addf %variance, %eps_column : !stat_Rx1
  %inverse = rsqrt %shifted : !stat_Rx1
  %inverse_full = broadcast %inverse : !stat_Rx1 -> !f32_RxBC

  %normal = mulf %deviation, %inverse_full : !f32_RxBC
  %scaled = fma %normal, %w_full, %b_full : !f32_RxBC
  %result = ftof %scaled : !f32_RxBC -> !rows_RxBC
  %stored = store_view_tko weak %result, %out_tiles[%n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !rows_RxBC, !out_part_RxBC, !int -> token
  return
}
