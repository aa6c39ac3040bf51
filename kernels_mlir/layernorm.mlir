sizes BC = 1024

!int = !cuda_tile.tile<i32>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!ptr = !cuda_tile.tile<ptr<T>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?xT, strides=[1]>
!x_part_1xBC = !cuda_tile.partition_view<tile=(1xBC), padding_value = zero, !matrix>
!out_part_1xBC = !cuda_tile.partition_view<tile=(1xBC), !matrix>
!vector_part_BC = !cuda_tile.partition_view<tile=(BC), padding_value = zero, !vector>
!row_1xBC = !cuda_tile.tile<1xBCxT>
!vector_BC = !cuda_tile.tile<BCxT>
!vector_f32_BC = !cuda_tile.tile<BCxf32>
!f32_1xBC = !cuda_tile.tile<1xBCxf32>
!lane_BC = !cuda_tile.tile<BCxi32>
!column_1xBC = !cuda_tile.tile<1xBCxi32>
!mask_1xBC = !cuda_tile.tile<1xBCxi1>

// out = (x - mean) / sqrt(variance + eps) * weight + bias, over rows of any width C
//
// One block makes one row, in tiles of BC columns, in three passes: the mean, then the variance of the deviations from
// it (a one-pass variance cancels when the mean is large), then the result. Everything is computed in f32.
kernel @layernorm op = layernorm {
  %x_tiles = make_partition_view %x_view : !x_part_1xBC
  %w_tiles = make_partition_view %weight_view : !vector_part_BC
  %b_tiles = make_partition_view %bias_view : !vector_part_BC
  %out_tiles = make_partition_view %out_view : !out_part_1xBC

  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BC = constant <i32: BC> : !int
  %steps = divi %C, %BC signed rounding<positive_inf> : !int
  %width = itof %C signed : !int -> !real
  %nothing = constant <f32: 0.0> : !f32_1xBC

  %sums = for %j in (%zero to %steps, step %one) : !int iter_values(%acc = %nothing) -> (!f32_1xBC) {
    %tile, %token = load_view_tko weak %x_tiles[%n, %j] : !x_part_1xBC, !int -> !row_1xBC, token
    %value = ftof %tile : !row_1xBC -> !f32_1xBC
    %next = addf %acc, %value : !f32_1xBC
    continue %next : !f32_1xBC
  }
  %sum = reduce %sums dim=1 identities=[0.0 : f32] : !f32_1xBC -> !real_1
  (%sum_a: !real, %sum_b: !real) {
    %total = addf %sum_a, %sum_b : !real
    yield %total : !real
  }
  %sum_scalar = reshape %sum : !real_1 -> !real
  %mean = divf %sum_scalar, %width : !real
  %mean_1x1 = reshape %mean : !real -> !real_1x1
  %mean_full = broadcast %mean_1x1 : !real_1x1 -> !f32_1xBC

  // Columns past C were padded with zeros, which deviate from the mean: they must not count.
  %lanes = iota : !lane_BC
  %lane_line = reshape %lanes : !lane_BC -> !column_1xBC
  %C_1x1 = reshape %C : !int -> !int_1x1
  %C_full = broadcast %C_1x1 : !int_1x1 -> !column_1xBC
  %squares = for %j in (%zero to %steps, step %one) : !int iter_values(%acc = %nothing) -> (!f32_1xBC) {
    %tile, %token = load_view_tko weak %x_tiles[%n, %j] : !x_part_1xBC, !int -> !row_1xBC, token
    %value = ftof %tile : !row_1xBC -> !f32_1xBC
    %first = muli %j, %BC : !int
    %first_1x1 = reshape %first : !int -> !int_1x1
    %first_full = broadcast %first_1x1 : !int_1x1 -> !column_1xBC
    %column = addi %first_full, %lane_line : !column_1xBC
    %inside = cmpi less_than %column, %C_full, signed : !column_1xBC -> !mask_1xBC
    %deviation = subf %value, %mean_full : !f32_1xBC
    %counted = select %inside, %deviation, %nothing : !mask_1xBC, !f32_1xBC
    %next = fma %counted, %counted, %acc : !f32_1xBC
    continue %next : !f32_1xBC
  }
  %square_sum = reduce %squares dim=1 identities=[0.0 : f32] : !f32_1xBC -> !real_1
  (%square_a: !real, %square_b: !real) {
    %total = addf %square_a, %square_b : !real
    yield %total : !real
  }
  %square_scalar = reshape %square_sum : !real_1 -> !real
  %variance = divf %square_scalar, %width : !real
  %shifted = addf %variance, %eps : !real
  %deviation_std = sqrt %shifted : !real
  %unit = constant <f32: 1.0> : !real
  %inverse = divf %unit, %deviation_std : !real
  %inverse_1x1 = reshape %inverse : !real -> !real_1x1
  %inverse_full = broadcast %inverse_1x1 : !real_1x1 -> !f32_1xBC

  for %j in (%zero to %steps, step %one) : !int {
    %tile, %token = load_view_tko weak %x_tiles[%n, %j] : !x_part_1xBC, !int -> !row_1xBC, token
    %w_tile, %w_token = load_view_tko weak %w_tiles[%j] : !vector_part_BC, !int -> !vector_BC, token
    %b_tile, %b_token = load_view_tko weak %b_tiles[%j] : !vector_part_BC, !int -> !vector_BC, token
    %value = ftof %tile : !row_1xBC -> !f32_1xBC
    %w_f32 = ftof %w_tile : !vector_BC -> !vector_f32_BC
    %b_f32 = ftof %b_tile : !vector_BC -> !vector_f32_BC
    %w_line = reshape %w_f32 : !vector_f32_BC -> !f32_1xBC
    %b_line = reshape %b_f32 : !vector_f32_BC -> !f32_1xBC
    %deviation = subf %value, %mean_full : !f32_1xBC
    %normal = mulf %deviation, %inverse_full : !f32_1xBC
    %scaled = fma %normal, %w_line, %b_line : !f32_1xBC
    %result = ftof %scaled : !f32_1xBC -> !row_1xBC
    %stored = store_view_tko weak %result, %out_tiles[%n, %j] : !row_1xBC, !out_part_1xBC, !int -> token
    continue
  }
  return
}
