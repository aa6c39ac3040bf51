sizes BZ = 64

!int = !cuda_tile.tile<i32>
!int_1 = !cuda_tile.tile<1xi32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!bit_1x1 = !cuda_tile.tile<1x1xi1>
!int_ptr = !cuda_tile.tile<ptr<i32>>
!real_ptr = !cuda_tile.tile<ptr<f32>>
!reals = !cuda_tile.tensor_view<?x?xf32, strides=[?,1]>
!ints = !cuda_tile.tensor_view<?x?xi32, strides=[?,1]>
!indices = !cuda_tile.tensor_view<?xi32, strides=[1]>
!value_part_1xBZ = !cuda_tile.partition_view<tile=(1xBZ), padding_value = neg_inf, !reals>
!place_part_1xBZ = !cuda_tile.partition_view<tile=(1xBZ), padding_value = zero, !ints>
!index_part = !cuda_tile.partition_view<tile=(1), !indices>
!value_1xBZ = !cuda_tile.tile<1xBZxf32>
!place_1xBZ = !cuda_tile.tile<1xBZxi32>
!mask_1xBZ = !cuda_tile.tile<1xBZxi1>

// tokens[m] = the place of the largest value of row m, of equals the first; positions[m] is counted up by one
//
// One block makes one row: the best of the parts that `argmax_parts` made, BZ at a time. The parts stand in order, so
// that a later one wins only if it is larger. Values past Z are padded with -inf and never win.
kernel @next_token op = next_token {
  %value_tiles = make_partition_view %values_view : !value_part_1xBZ
  %place_tiles = make_partition_view %places_view : !place_part_1xBZ
  %token_tiles = make_partition_view %tokens_view : !index_part
  %position_tiles = make_partition_view %positions_view : !index_part

  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BZ = constant <i32: BZ> : !int
  %steps = divi %Z, %BZ signed rounding<positive_inf> : !int
  %lowest = constant <f32: 0xFF800000> : !real_1x1  // -inf
  %no_token = constant <i32: 0> : !int_1x1
  %nowhere = constant <i32: 2147483647> : !place_1xBZ

  %best, %token = for %j in (%zero to %steps, step %one) : !int iter_values(%best_old = %lowest, %token_old = %no_token) -> (!real_1x1, !int_1x1) {
    %value, %t0 = load_view_tko weak %value_tiles[%m, %j] optimization_hints = <default = {allow_tma = false}>
        : !value_part_1xBZ, !int -> !value_1xBZ, token
    %place, %t1 = load_view_tko weak %place_tiles[%m, %j] optimization_hints = <default = {allow_tma = false}>
        : !place_part_1xBZ, !int -> !place_1xBZ, token
    %largest = reduce %value dim=1 identities=[0xFF800000 : f32] : !value_1xBZ -> !real_1
    (%max_a: !real, %max_b: !real) {
      %max = maxf %max_a, %max_b : !real
      yield %max : !real
    }
    %largest_1x1 = reshape %largest : !real_1 -> !real_1x1
    %largest_full = broadcast %largest_1x1 : !real_1x1 -> !value_1xBZ
    %has_it = cmpf equal ordered %value, %largest_full : !value_1xBZ -> !mask_1xBZ
    %candidate = select %has_it, %place, %nowhere : !mask_1xBZ, !place_1xBZ
    %first = reduce %candidate dim=1 identities=[2147483647 : i32] : !place_1xBZ -> !int_1
    (%place_a: !int, %place_b: !int) {
      %earlier = mini %place_a, %place_b signed : !int
      yield %earlier : !int
    }
    %first_1x1 = reshape %first : !int_1 -> !int_1x1
    %larger = cmpf greater_than ordered %largest_1x1, %best_old : !real_1x1 -> !bit_1x1
    %token_new = select %larger, %first_1x1, %token_old : !bit_1x1, !int_1x1
    %best_new = select %larger, %largest_1x1, %best_old : !bit_1x1, !real_1x1
    continue %best_new, %token_new : !real_1x1, !int_1x1
  }
  %token_tile = reshape %token : !int_1x1 -> !int_1
  %t2 = store_view_tko weak %token_tile, %token_tiles[%m] optimization_hints = <default = {allow_tma = false}>
      : !int_1, !index_part, !int -> token

  // The store is ordered after the load by its token.
  %position, %read = load_view_tko weak %position_tiles[%m] optimization_hints = <default = {allow_tma = false}>
      : !index_part, !int -> !int_1, token
  %unit = constant <i32: 1> : !int_1
  %position_next = addi %position, %unit : !int_1
  %t3 = store_view_tko weak %position_next, %position_tiles[%m] token = %read optimization_hints = <default = {allow_tma = false}>
      : !int_1, !index_part, !int -> token
  return
}
