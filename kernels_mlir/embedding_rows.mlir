sizes R = 2, BC = 1024

!int = !cuda_tile.tile<i32>
!int_1 = !cuda_tile.tile<1xi32>
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

// out[n] = wte[tokens[n]] + wpe[positions[n]]
//
// One block makes BC columns of R tokens' rows, which it reads through pointers. The caller has checked that tokens and
// positions are in range; behind the last token it reads row 0, and stores nothing.
kernel @embedding_rows op = embedding {
  %token_tiles = make_partition_view %tokens_view : !index_part_R
  %position_tiles = make_partition_view %positions_view : !index_part_R
  %out_tiles = make_partition_view %out_view : !out_part_RxBC

  %n, %j, %unused = get_tile_block_id : !int
  %token, %t0 = load_view_tko weak %token_tiles[%n] : !index_part_R, !int -> !index_R, token
  %position, %t1 = load_view_tko weak %position_tiles[%n] : !index_part_R, !int -> !index_R, token

  // The columns, and which of them there are.
  %BC = constant <i32: BC> : !int
  %first = muli %j, %BC : !int
  %first_1 = reshape %first : !int -> !int_1
  %first_line = broadcast %first_1 : !int_1 -> !lane_BC
  %lane = iota : !lane_BC
  %column_line = addi %first_line, %lane : !lane_BC
  %column = reshape %column_line : !lane_BC -> !column_1xBC
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
  %result = ftof %sum : !f32_RxBC -> !rows_RxBC
  %stored = store_view_tko weak %result, %out_tiles[%n, %j] optimization_hints = <default = {allow_tma = false}>
      : !rows_RxBC, !out_part_RxBC, !int -> token
  return
}
