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
!square_ptr = !cuda_tile.tile<ptr<f32>>
!squares = !cuda_tile.tensor_view<?x?xf32, strides=[?,1]>
!square_part_1x1 = !cuda_tile.partition_view<tile=(1x1), !squares>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!lane_BC = !cuda_tile.tile<BCxi32>
!column_1xBC = !cuda_tile.tile<1xBCxi32>
!mask_1xBC = !cuda_tile.tile<1xBCxi1>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!f32_1xBC = !cuda_tile.tile<1xBCxf32>

// out[n] = wte[tokens[n]] + wpe[positions[n]], less the mean of the row, and the row's sum of squares
//
// One block makes one token's row in tiles of BC columns, in two passes. The caller has checked that tokens and positions are in
// range.
kernel @embedding_centred op = embedding_centred {
  %square_tiles = make_partition_view %squares_view : !square_part_1x1
  %token_tiles = make_partition_view %tokens_view : !index_part
  %position_tiles = make_partition_view %positions_view : !index_part
  %wte_tiles = make_partition_view %wte_view : !in_part_1xBC
  %wpe_tiles = make_partition_view %wpe_view : !in_part_1xBC
  %out_tiles = make_partition_view %out_view : !out_part_1xBC

  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %token_tile, %t0 = load_view_tko weak %token_tiles[%n] : !index_part, !int -> !index, token
  %position_tile, %t1 = load_view_tko weak %position_tiles[%n] : !index_part, !int -> !index, token
  %token = reshape %token_tile : !index -> !int
  %position = reshape %position_tile : !index -> !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BC = constant <i32: BC> : !int
  %steps = divi %C, %BC signed rounding<positive_inf> : !int
  %nothing = constant <f32: 0.0> : !f32_1xBC
  %sums = for %j in (%zero to %steps, step %one) : !int iter_values(%acc = %nothing) -> (!f32_1xBC) {
    %word, %t2 = load_view_tko weak %wte_tiles[%token, %j] : !in_part_1xBC, !int -> !row_1xBC, token
    %place, %t3 = load_view_tko weak %wpe_tiles[%position, %j] : !in_part_1xBC, !int -> !row_1xBC, token
    %word_f32 = ftof %word : !row_1xBC -> !f32_1xBC
    %place_f32 = ftof %place : !row_1xBC -> !f32_1xBC
    %both = addf %word_f32, %place_f32 : !f32_1xBC
    %next = addf %acc, %both : !f32_1xBC
    continue %next : !f32_1xBC
  }
  %sum = reduce %sums dim=1 identities=[0.0 : f32] : !f32_1xBC -> !real_1
  (%sum_a: !real, %sum_b: !real) {
    %sum_ab = addf %sum_a, %sum_b : !real
    yield %sum_ab : !real
  }
  %sum_scalar = reshape %sum : !real_1 -> !real
  %width = itof %C signed : !int -> !real
  %mean = divf %sum_scalar, %width : !real
  %mean_1x1 = reshape %mean : !real -> !real_1x1
  %mean_full = broadcast %mean_1x1 : !real_1x1 -> !f32_1xBC

  // Columns past C were padded with zeros, which are off the mean: they must not count.
  %lane = iota : !lane_BC
  %lane_line = reshape %lane : !lane_BC -> !column_1xBC
  %C_1x1 = reshape %C : !int -> !int_1x1
  %C_full = broadcast %C_1x1 : !int_1x1 -> !column_1xBC
  %squares_end = for %j in (%zero to %steps, step %one) : !int iter_values(%squares_acc = %nothing) -> (!f32_1xBC) {
    %word, %t4 = load_view_tko weak %wte_tiles[%token, %j] : !in_part_1xBC, !int -> !row_1xBC, token
    %place, %t5 = load_view_tko weak %wpe_tiles[%position, %j] : !in_part_1xBC, !int -> !row_1xBC, token
    %word_f32 = ftof %word : !row_1xBC -> !f32_1xBC
    %place_f32 = ftof %place : !row_1xBC -> !f32_1xBC
    %both = addf %word_f32, %place_f32 : !f32_1xBC
    %first = muli %j, %BC : !int
    %first_1x1 = reshape %first : !int -> !int_1x1
    %first_full = broadcast %first_1x1 : !int_1x1 -> !column_1xBC
    %column = addi %first_full, %lane_line : !column_1xBC
    %inside = cmpi less_than %column, %C_full, signed : !column_1xBC -> !mask_1xBC
    %deviation = subf %both, %mean_full : !f32_1xBC
    %centred = select %inside, %deviation, %nothing : !mask_1xBC, !f32_1xBC
    %squares_next = fma %centred, %centred, %squares_acc : !f32_1xBC
    %result = ftof %centred : !f32_1xBC -> !row_1xBC
    %stored = store_view_tko weak %result, %out_tiles[%n, %j] : !row_1xBC, !out_part_1xBC, !int -> token
    continue %squares_next : !f32_1xBC
  }
  %square_sum = reduce %squares_end dim=1 identities=[0.0 : f32] : !f32_1xBC -> !real_1
  (%square_a: !real, %square_b: !real) {
    %square_ab = addf %square_a, %square_b : !real
    yield %square_ab : !real
  }

  // All of a row's squares are its first part.
  %square_1x1 = reshape %square_sum : !real_1 -> !real_1x1
  %first_stored = store_view_tko weak %square_1x1, %square_tiles[%zero, %n] : !real_1x1, !square_part_1x1, !int -> token
  %none = constant <f32: 0.0> : !real_1x1
  for %z in (%one to %Z, step %one) : !int {
    %rest_stored = store_view_tko weak %none, %square_tiles[%z, %n] : !real_1x1, !square_part_1x1, !int -> token
    continue
  }
  return
}
