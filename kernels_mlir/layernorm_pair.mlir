sizes R = 2, BC = 512, BR = 256

!int = !cuda_tile.tile<i32>
!real = !cuda_tile.tile<f32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!ptr = !cuda_tile.tile<ptr<T>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?xT, strides=[1]>
!x_part_RxBC = !cuda_tile.partition_view<tile=(RxBC), padding_value = zero, !matrix>
!x_part_RxBR = !cuda_tile.partition_view<tile=(RxBR), padding_value = zero, !matrix>
!first_part_Rx1 = !cuda_tile.partition_view<tile=(Rx1), padding_value = zero, !matrix>
!out_part_RxBC = !cuda_tile.partition_view<tile=(RxBC), !matrix>
!out_part_RxBR = !cuda_tile.partition_view<tile=(RxBR), !matrix>
!vector_part_BC = !cuda_tile.partition_view<tile=(BC), !vector>
!vector_part_BR = !cuda_tile.partition_view<tile=(BR), !vector>
!rows_RxBC = !cuda_tile.tile<RxBCxT>
!rows_RxBR = !cuda_tile.tile<RxBRxT>
!first_Rx1 = !cuda_tile.tile<Rx1xT>
!vector_BC = !cuda_tile.tile<BCxT>
!vector_BR = !cuda_tile.tile<BRxT>
!vector_f32_BC = !cuda_tile.tile<BCxf32>
!vector_f32_BR = !cuda_tile.tile<BRxf32>
!vector_f32_1xBC = !cuda_tile.tile<1xBCxf32>
!vector_f32_1xBR = !cuda_tile.tile<1xBRxf32>
!f32_RxBC = !cuda_tile.tile<RxBCxf32>
!f32_RxBR = !cuda_tile.tile<RxBRxf32>
!stat_R = !cuda_tile.tile<Rxf32>
!stat_Rx1 = !cuda_tile.tile<Rx1xf32>

// out = (x - mean) / sqrt(variance + eps) * weight + bias, over rows of BC + BR columns
//
// As `layernorm_once`, in these two parts: GPT-2's 768 columns are no power of two. BC is a multiple of BR. Without columns that are
// not there, two rows fit one warp, in which no sum waits for another warp's.
kernel @layernorm_pair op = layernorm {
  %x_left = make_partition_view %x_view : !x_part_RxBC
  %x_right = make_partition_view %x_view : !x_part_RxBR
  %x_firsts = make_partition_view %x_view : !first_part_Rx1
  %w_left = make_partition_view %weight_view : !vector_part_BC
  %w_right = make_partition_view %weight_view : !vector_part_BR
  %b_left = make_partition_view %bias_view : !vector_part_BC
  %b_right = make_partition_view %bias_view : !vector_part_BR
  %out_left = make_partition_view %out_view : !out_part_RxBC
  %out_right = make_partition_view %out_view : !out_part_RxBR

  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %BC = constant <i32: BC> : !int
  %BR = constant <i32: BR> : !int
  %right = divi %BC, %BR signed : !int
  %w_tile_left, %t0 = load_view_tko weak %w_left[%zero] optimization_hints = <default = {allow_tma = false}>
      : !vector_part_BC, !int -> !vector_BC, token
  %w_f32_left = ftof %w_tile_left : !vector_BC -> !vector_f32_BC
  %w_line_left = reshape %w_f32_left : !vector_f32_BC -> !vector_f32_1xBC
  %w_full_left = broadcast %w_line_left : !vector_f32_1xBC -> !f32_RxBC
  %w_tile_right, %t1 = load_view_tko weak %w_right[%right] optimization_hints = <default = {allow_tma = false}>
      : !vector_part_BR, !int -> !vector_BR, token
  %w_f32_right = ftof %w_tile_right : !vector_BR -> !vector_f32_BR
  %w_line_right = reshape %w_f32_right : !vector_f32_BR -> !vector_f32_1xBR
  %w_full_right = broadcast %w_line_right : !vector_f32_1xBR -> !f32_RxBR
  %b_tile_left, %t2 = load_view_tko weak %b_left[%zero] optimization_hints = <default = {allow_tma = false}>
      : !vector_part_BC, !int -> !vector_BC, token
  %b_f32_left = ftof %b_tile_left : !vector_BC -> !vector_f32_BC
  %b_line_left = reshape %b_f32_left : !vector_f32_BC -> !vector_f32_1xBC
  %b_full_left = broadcast %b_line_left : !vector_f32_1xBC -> !f32_RxBC
  %b_tile_right, %t3 = load_view_tko weak %b_right[%right] optimization_hints = <default = {allow_tma = false}>
      : !vector_part_BR, !int -> !vector_BR, token
  %b_f32_right = ftof %b_tile_right : !vector_BR -> !vector_f32_BR
  %b_line_right = reshape %b_f32_right : !vector_f32_BR -> !vector_f32_1xBR
  %b_full_right = broadcast %b_line_right : !vector_f32_1xBR -> !f32_RxBR

  // The wait comes after these reads by their tokens: else the compiler may put it first.
  %ahead = join_tokens %t0, %t1, %t2, %t3 : token
  %ready = gdc_wait_tko token = %ahead -> token
  %first_tile, %t4 = load_view_tko weak %x_firsts[%n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !first_part_Rx1, !int -> !first_Rx1, token
  %first = ftof %first_tile : !first_Rx1 -> !stat_Rx1
  %tile_left, %t5 = load_view_tko weak %x_left[%n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !x_part_RxBC, !int -> !rows_RxBC, token
  %value_left = ftof %tile_left : !rows_RxBC -> !f32_RxBC
  %first_left = broadcast %first : !stat_Rx1 -> !f32_RxBC
  %difference_left = subf %value_left, %first_left : !f32_RxBC
  %tile_right, %t6 = load_view_tko weak %x_right[%n, %right] optimization_hints = <default = {allow_tma = false}>
      : !x_part_RxBR, !int -> !rows_RxBR, token
  %value_right = ftof %tile_right : !rows_RxBR -> !f32_RxBR
  %first_right = broadcast %first : !stat_Rx1 -> !f32_RxBR
  %difference_right = subf %value_right, %first_right : !f32_RxBR
  %square_left = mulf %difference_left, %difference_left : !f32_RxBC
  %sum_left, %square_sum_left = reduce %difference_left, %square_left dim=1 identities=[0.0 : f32, 0.0 : f32]
      : !f32_RxBC, !f32_RxBC -> !stat_R, !stat_R
  (%left_a: !real, %left_b: !real, %left_square_a: !real, %left_square_b: !real) {
    %left_ab = addf %left_a, %left_b : !real
    %left_square_ab = addf %left_square_a, %left_square_b : !real
    yield %left_ab, %left_square_ab : !real, !real
  }
  %square_right = mulf %difference_right, %difference_right : !f32_RxBR
  %sum_right, %square_sum_right = reduce %difference_right, %square_right dim=1 identities=[0.0 : f32, 0.0 : f32]
      : !f32_RxBR, !f32_RxBR -> !stat_R, !stat_R
  (%right_a: !real, %right_b: !real, %right_square_a: !real, %right_square_b: !real) {
    %right_ab = addf %right_a, %right_b : !real
    %right_square_ab = addf %right_square_a, %right_square_b : !real
    yield %right_ab, %right_square_ab : !real, !real
  }
  %sum = addf %sum_left, %sum_right : !stat_R
  %square_sum = addf %square_sum_left, %square_sum_right : !stat_R
  %sum_column = reshape %sum : !stat_R -> !stat_Rx1
  %square_column = reshape %square_sum : !stat_R -> !stat_Rx1
  %width = itof %C signed : !int -> !real
  %width_1x1 = reshape %width : !real -> !real_1x1
  %width_column = broadcast %width_1x1 : !real_1x1 -> !stat_Rx1
  %mean = divf %sum_column, %width_column : !stat_Rx1
  %mean_square = divf %square_column, %width_column : !stat_Rx1
  %square_mean = mulf %mean, %mean : !stat_Rx1
  %spread = subf %mean_square, %square_mean : !stat_Rx1
  %least = constant <f32: 0.0> : !stat_Rx1
  %variance = maxf %spread, %least : !stat_Rx1
  %eps_1x1 = reshape %eps : !real -> !real_1x1
  %eps_column = broadcast %eps_1x1 : !real_1x1 -> !stat_Rx1
  %shifted = addf %variance, %eps_column : !stat_Rx1
  %inverse = rsqrt %shifted : !stat_Rx1

  %mean_left = broadcast %mean : !stat_Rx1 -> !f32_RxBC
  %deviation_left = subf %difference_left, %mean_left : !f32_RxBC
  %inverse_left = broadcast %inverse : !stat_Rx1 -> !f32_RxBC
  %normal_left = mulf %deviation_left, %inverse_left : !f32_RxBC
  %scaled_left = fma %normal_left, %w_full_left, %b_full_left : !f32_RxBC
  %result_left = ftof %scaled_left : !f32_RxBC -> !rows_RxBC
  %stored_left = store_view_tko weak %result_left, %out_left[%n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !rows_RxBC, !out_part_RxBC, !int -> token
  %mean_right = broadcast %mean : !stat_Rx1 -> !f32_RxBR
  %deviation_right = subf %difference_right, %mean_right : !f32_RxBR
  %inverse_right = broadcast %inverse : !stat_Rx1 -> !f32_RxBR
  %normal_right = mulf %deviation_right, %inverse_right : !f32_RxBR
  %scaled_right = fma %normal_right, %w_full_right, %b_full_right : !f32_RxBR
  %result_right = ftof %scaled_right : !f32_RxBR -> !rows_RxBR
  %stored_right = store_view_tko weak %result_right, %out_right[%n, %right] optimization_hints = <default = {allow_tma = false}>
      : !rows_RxBR, !out_part_RxBR, !int -> token
  return
}
