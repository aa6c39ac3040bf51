sizes BC = 1024

!int = !cuda_tile.tile<i32>
!index = !cuda_tile.tile<1xi32>
!ptr = !cuda_tile.tile<ptr<T>>
!int_ptr = !cuda_tile.tile<ptr<i32>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!indices = !cuda_tile.tensor_view<?xi32, strides=[1]>
!index_part = !cuda_tile.partition_view<tile=(1), !indices>
!in_part_1xBC = !cuda_tile.partition_view<tile=(1xBC), padding_value = zero, !matrix>
!out_part_1xBC = !cuda_tile.partition_view<tile=(1xBC), !matrix>
!row_1xBC = !cuda_tile.tile<1xBCxT>
!f32_1xBC = !cuda_tile.tile<1xBCxf32>

// out[n] = wte[tokens[n]] + wpe[positions[n]]
//
// One block makes BC columns of one token's row. The caller has checked that tokens and positions are in range.
kernel @embedding op = embedding {
  %token_tiles = make_partition_view %tokens_view : !index_part
  %position_tiles = make_partition_view %positions_view : !index_part
  %wte_tiles = make_partition_view %wte_view : !in_part_1xBC
  %wpe_tiles = make_partition_view %wpe_view : !in_part_1xBC
  %out_tiles = make_partition_view %out_view : !out_part_1xBC

  %n, %j, %unused = get_tile_block_id : !int
  %token_tile, %t0 = load_view_tko weak %token_tiles[%n] : !index_part, !int -> !index, token
  %position_tile, %t1 = load_view_tko weak %position_tiles[%n] : !index_part, !int -> !index, token
  %token = reshape %token_tile : !index -> !int
  %position = reshape %position_tile : !index -> !int
  %word, %t2 = load_view_tko weak %wte_tiles[%token, %j] : !in_part_1xBC, !int -> !row_1xBC, token
  %place, %t3 = load_view_tko weak %wpe_tiles[%position, %j] : !in_part_1xBC, !int -> !row_1xBC, token
  %word_f32 = ftof %word : !row_1xBC -> !f32_1xBC
  %place_f32 = ftof %place : !row_1xBC -> !f32_1xBC
  %sum = addf %word_f32, %place_f32 : !f32_1xBC
  %result = ftof %sum : !f32_1xBC -> !row_1xBC
  %stored = store_view_tko weak %result, %out_tiles[%n, %j] : !row_1xBC, !out_part_1xBC, !int -> token
  return
}
