sizes R = 2, BC = 1024

!int = !cuda_tile.tile<i32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!long = !cuda_tile.tile<i64>
!long_1x1 = !cuda_tile.tile<1x1xi64>
!ptr = !cuda_tile.tile<ptr<T>>
!ptr_1x1 = !cuda_tile.tile<1x1xptr<T>>
!int_ptr = !cuda_tile.tile<ptr<i32>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!indices = !cuda_tile.tensor_view<?xi32, strides=[1]>
!index_part_R = !cuda_tile.partition_view<tile=(R), padding_value = zero, !indices>
!out_part_RxBC = !cuda_tile.partition_view<tile=(RxBC), !matrix>
!index_R = !cuda_tile.tile<Rxi32>
!index_Rx1 = !cuda_tile.tile<Rx1xi32>
!start_Rx1 = !cuda_tile.tile<Rx1xi64>
!lane_BC = !cuda_tile.tile<BCxi32>
!column_1xBC = !cuda_tile.tile<1xBCxi32>
!inside_1xBC = !cuda_tile.tile<1xBCxi1>
!column_wide_1xBC = !cuda_tile.tile<1xBCxi64>
!offset_RxBC = !cuda_tile.tile<RxBCxi64>
!mask_RxBC = !cuda_tile.tile<RxBCxi1>
!place_RxBC = !cuda_tile.tile<RxBCxptr<T>>
!rows_RxBC = !cuda_tile.tile<RxBCxT>
!f32_RxBC = !cuda_tile.tile<RxBCxf32>
!square_ptr = !cuda_tile.tile<ptr<f32>>
!squares = !cuda_tile.tensor_view<?x?xf32, strides=[?,1]>
!square_part_1xR = !cuda_tile.partition_view<tile=(1xR), !squares>
!square_1xR = !cuda_tile.tile<1xRxf32>
!real = !cuda_tile.tile<f32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!stat_R = !cuda_tile.tile<Rxf32>
!stat_Rx1 = !cuda_tile.tile<Rx1xf32>

// out[n] = wte[tokens[n]] + wpe[positions[n]], less the mean of the row, and the row's sum of squares
//
// One block makes R tokens' rows of at most BC columns, which stay in registers: see `embedding_rows`.
kernel @embedding_centred_rows op = embedding_centred {
  %square_tiles = make_partition_view %squares_view : !square_part_1xR
  %token_tiles = make_partition_view %tokens_view : !index_part_R
  %position_tiles = make_partition_view %positions_view : !index_part_R
  %out_tiles = make_partition_view %out_view : !out_part_RxBC

  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %token, %t0 = load_view_tko weak %token_tiles[%n] : !index_part_R, !int -> !index_R, token
  %position, %t1 = load_view_tko weak %position_tiles[%n] : !index_part_R, !int -> !index_R, token

  // The columns, and which of them there are.
  %lane = iota : !lane_BC
  %column = reshape %lane : !lane_BC -> !column_1xBC
  %C_1x1 = reshape %C : !int -> !int_1x1
  %C_line = broadcast %C_1x1 : !int_1x1 -> !column_1xBC
  %inside = cmpi less_than %column, %C_line, signed : !column_1xBC -> !inside_1xBC
  %mask = broadcast %inside : !inside_1xBC -> !mask_RxBC
  %column_wide = exti %column signed : !column_1xBC -> !column_wide_1xBC
  %column_offset = broadcast %column_wide : !column_wide_1xBC -> !offset_RxBC
  %nothing = constant <T: 0.0> : !rows_RxBC

  // Where the tokens' rows begin: a vocabulary's table can have more than 2^31 elements.
  %token_column = reshape %token : !index_R -> !index_Rx1
  %token_wide = exti %token_column signed : !index_Rx1 -> !start_Rx1
  %wte_step = exti %wte_row signed : !int -> !long
  %wte_step_1x1 = reshape %wte_step : !long -> !long_1x1
  %wte_steps = broadcast %wte_step_1x1 : !long_1x1 -> !start_Rx1
  %word_start = muli %token_wide, %wte_steps : !start_Rx1
  %word_starts = broadcast %word_start : !start_Rx1 -> !offset_RxBC
  %word_offset = addi %word_starts, %column_offset : !offset_RxBC
  %wte_1x1 = reshape %wte_ptr : !ptr -> !ptr_1x1
  %wte_all = broadcast %wte_1x1 : !ptr_1x1 -> !place_RxBC
  %word_place = offset %wte_all, %word_offset : !place_RxBC, !offset_RxBC -> !place_RxBC
  %word, %t2 = load_ptr_tko weak %word_place, %mask, %nothing : !place_RxBC, !mask_RxBC, !rows_RxBC -> !rows_RxBC, token

  %position_column = reshape %position : !index_R -> !index_Rx1
  %position_wide = exti %position_column signed : !index_Rx1 -> !start_Rx1
  %wpe_step = exti %wpe_row signed : !int -> !long
  %wpe_step_1x1 = reshape %wpe_step : !long -> !long_1x1
  %wpe_steps = broadcast %wpe_step_1x1 : !long_1x1 -> !start_Rx1
  %place_start = muli %position_wide, %wpe_steps : !start_Rx1
  %place_starts = broadcast %place_start : !start_Rx1 -> !offset_RxBC
  %place_offset = addi %place_starts, %column_offset : !offset_RxBC
  %wpe_1x1 = reshape %wpe_ptr : !ptr -> !ptr_1x1
  %wpe_all = broadcast %wpe_1x1 : !ptr_1x1 -> !place_RxBC
  %place_place = offset %wpe_all, %place_offset : !place_RxBC, !offset_RxBC -> !place_RxBC
  %place, %t3 = load_ptr_tko weak %place_place, %mask, %nothing : !place_RxBC, !mask_RxBC, !rows_RxBC -> !rows_RxBC, token

  %word_f32 = ftof %word : !rows_RxBC -> !f32_RxBC
  %place_f32 = ftof %place : !rows_RxBC -> !f32_RxBC
  %sum = addf %word_f32, %place_f32 : !f32_RxBC
  %row_sum = reduce %sum dim=1 identities=[0.0 : f32] : !f32_RxBC -> !stat_R
  (%sum_a: !real, %sum_b: !real) {
    %sum_ab = addf %sum_a, %sum_b : !real
    yield %sum_ab : !real
  }
  %row_column = reshape %row_sum : !stat_R -> !stat_Rx1
  %width = itof %C signed : !int -> !real
  %width_1x1 = reshape %width : !real -> !real_1x1
  %width_column = broadcast %width_1x1 : !real_1x1 -> !stat_Rx1
  %mean = divf %row_column, %width_column : !stat_Rx1
  %mean_full = broadcast %mean : !stat_Rx1 -> !f32_RxBC
  %deviation = subf %sum, %mean_full : !f32_RxBC
  %zeros = constant <f32: 0.0> : !f32_RxBC
  %centred = select %mask, %deviation, %zeros : !mask_RxBC, !f32_RxBC
  %square = mulf %centred, %centred : !f32_RxBC
  %square_sum = reduce %square dim=1 identities=[0.0 : f32] : !f32_RxBC -> !stat_R
  (%square_a: !real, %square_b: !real) {
    %square_ab = addf %square_a, %square_b : !real
    yield %square_ab : !real
  }
  %result = ftof %centred : !f32_RxBC -> !rows_RxBC
  %stored = store_view_tko weak %result, %out_tiles[%n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !rows_RxBC, !out_part_RxBC, !int -> token

  // All of a row's squares are its first part.
  %square_line = reshape %square_sum : !stat_R -> !square_1xR
  %first_stored = store_view_tko weak %square_line, %square_tiles[%zero, %n] optimization_hints = <default = {allow_tma = false}>
      : !square_1xR, !square_part_1xR, !int -> token
  %one = constant <i32: 1> : !int
  %none = constant <f32: 0.0> : !square_1xR
  for %z in (%one to %Z, step %one) : !int {
    %rest_stored = store_view_tko weak %none, %square_tiles[%z, %n] optimization_hints = <default = {allow_tma = false}>
        : !square_1xR, !square_part_1xR, !int -> token
    continue
  }
  return
}
