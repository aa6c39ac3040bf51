sizes BV = 2048

!int = !cuda_tile.tile<i32>
!int_1 = !cuda_tile.tile<1xi32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!ptr = !cuda_tile.tile<ptr<T>>
!int_ptr = !cuda_tile.tile<ptr<i32>>
!real_ptr = !cuda_tile.tile<ptr<f32>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!reals = !cuda_tile.tensor_view<?x?xf32, strides=[?,1]>
!ints = !cuda_tile.tensor_view<?x?xi32, strides=[?,1]>
!x_part_1xBV = !cuda_tile.partition_view<tile=(1xBV), padding_value = neg_inf, !matrix>
!value_part = !cuda_tile.partition_view<tile=(1x1), !reals>
!place_part = !cuda_tile.partition_view<tile=(1x1), !ints>
!row_1xBV = !cuda_tile.tile<1xBVxT>
!f32_1xBV = !cuda_tile.tile<1xBVxf32>
!lane_BV = !cuda_tile.tile<BVxi32>
!column_1xBV = !cuda_tile.tile<1xBVxi32>
!mask_1xBV = !cuda_tile.tile<1xBVxi1>

// values[m, z] = the largest of x[m, z BV : (z + 1) BV], places[m, z] = the first index in x[m, :] that has it
//
// One block makes one part of one row: grid (Z, M). Columns past V are padded with -inf and never win. `next_token` takes
// the best of the parts.
kernel @argmax_parts op = argmax_parts {
  %x_tiles = make_partition_view %x_view : !x_part_1xBV
  %value_tiles = make_partition_view %values_view : !value_part
  %place_tiles = make_partition_view %places_view : !place_part

  %z, %m, %unused = get_tile_block_id : !int
  %BV = constant <i32: BV> : !int
  %tile, %t0 = load_view_tko weak %x_tiles[%m, %z] optimization_hints = <default = {allow_tma = false}>
      : !x_part_1xBV, !int -> !row_1xBV, token
  %value = ftof %tile : !row_1xBV -> !f32_1xBV
  %first = muli %z, %BV : !int
  %first_1x1 = reshape %first : !int -> !int_1x1
  %first_full = broadcast %first_1x1 : !int_1x1 -> !column_1xBV
  %lane = iota : !lane_BV
  %lane_line = reshape %lane : !lane_BV -> !column_1xBV
  %column = addi %first_full, %lane_line : !column_1xBV

  // The largest value, then the least place that has it: two plain reductions are faster than one of pairs.
  %largest = reduce %value dim=1 identities=[0xFF800000 : f32] : !f32_1xBV -> !real_1
  (%max_a: !real, %max_b: !real) {
    %larger = maxf %max_a, %max_b : !real
    yield %larger : !real
  }
  %largest_1x1 = reshape %largest : !real_1 -> !real_1x1
  %largest_full = broadcast %largest_1x1 : !real_1x1 -> !f32_1xBV
  %has_it = cmpf equal ordered %value, %largest_full : !f32_1xBV -> !mask_1xBV
  %nowhere = constant <i32: 2147483647> : !column_1xBV
  %candidate = select %has_it, %column, %nowhere : !mask_1xBV, !column_1xBV
  %place = reduce %candidate dim=1 identities=[2147483647 : i32] : !column_1xBV -> !int_1
  (%place_a: !int, %place_b: !int) {
    %earlier = mini %place_a, %place_b signed : !int
    yield %earlier : !int
  }
  %place_1x1 = reshape %place : !int_1 -> !int_1x1
  %t1 = store_view_tko weak %largest_1x1, %value_tiles[%m, %z] optimization_hints = <default = {allow_tma = false}>
      : !real_1x1, !value_part, !int -> token
  %t2 = store_view_tko weak %place_1x1, %place_tiles[%m, %z] optimization_hints = <default = {allow_tma = false}>
      : !int_1x1, !place_part, !int -> token
  return
}
