// The likeliest token of each row of logits, in two steps: of each part of a row, and of the parts.

include "common.mlir"

sizes BV = 2048, BZ = 64

!bit_1x1 = !cuda_tile.tile<1x1xi1>
!ints = !cuda_tile.tensor_view<?x?xi32, strides=[?,1]>
!x_part = !cuda_tile.partition_view<tile=(1xBV), padding_value = neg_inf, !matrix>
!value_part = !cuda_tile.partition_view<tile=(1x1), !reals>
!place_part = !cuda_tile.partition_view<tile=(1x1), !ints>
!values_part = !cuda_tile.partition_view<tile=(1xBZ), padding_value = neg_inf, !reals>
!indices_part = !cuda_tile.partition_view<tile=(1xBZ), padding_value = zero, !ints>
!row = !cuda_tile.tile<1xBVxT>
!lane = !cuda_tile.tile<BVxi32>
!values = !cuda_tile.tile<1xBVxf32>
!indices = !cuda_tile.tile<1xBVxi32>
!mask = !cuda_tile.tile<1xBVxi1>
!part_values = !cuda_tile.tile<1xBZxf32>
!part_indices = !cuda_tile.tile<1xBZxi32>

// The largest value of a row; NaN if one of them is.
fragment @max_or_nan_in_rows(%value: !values) -> !real_1x1 {
  %maxima = reduce %value dim=1 identities=[0xFF800000 : f32] : !values -> !real_1
  (%a: !real, %b: !real) {
    %larger = maxf %a, %b propagate_nan : !real
    yield %larger : !real
  }
  %column = reshape %maxima : !real_1 -> !real_1x1
  yield %column : !real_1x1
}

// The least place whose value is the largest: with it, two plain reductions are faster than one of pairs.
fragment @first_of(%largest: !real_1x1, %value: !values, %place: !indices) -> !int_1x1 {
  %largest_full = broadcast %largest : !real_1x1 -> !values
  %has_it = cmpf equal ordered %value, %largest_full : !values -> !mask
  %nowhere = constant <i32: 2147483647> : !indices
  %candidate = select %has_it, %place, %nowhere : !mask, !indices
  %first = reduce %candidate dim=1 identities=[2147483647 : i32] : !indices -> !int_1
  (%a: !int, %b: !int) {
    %earlier = mini %a, %b signed : !int
    yield %earlier : !int
  }
  %first_1x1 = reshape %first : !int_1 -> !int_1x1
  yield %first_1x1 : !int_1x1
}

// Whether a value is larger than the best one so far, or as large and at a lesser place.
fragment @comes_first(%value: !real_1x1, %place: !int_1x1, %best: !real_1x1, %token: !int_1x1) -> !bit_1x1 {
  %larger = cmpf greater_than ordered %value, %best : !real_1x1 -> !bit_1x1
  %as_large = cmpf equal ordered %value, %best : !real_1x1 -> !bit_1x1
  %before = cmpi less_than %place, %token, signed : !int_1x1 -> !bit_1x1
  %first_of_equals = andi %as_large, %before : !bit_1x1
  %better = ori %larger, %first_of_equals : !bit_1x1
  yield %better : !bit_1x1
}

// values[m, z] = the largest of x[m, z BV : (z + 1) BV], indices[m, z] = the first index in x[m, :] that has it
//
// One block makes one part of one row: grid (Z, M). Columns past V are padded with -inf and never win. `next_token` takes
// the best of the parts. A NaN in a part makes its value NaN: whoever takes the token sees there that it means nothing.
kernel @argmax_parts op = argmax_parts {
  %x_tiles = make_partition_view %x_view : !x_part
  %value_tiles = make_partition_view %values_view : !value_part
  %place_tiles = make_partition_view %indices_view : !place_part

  %z, %m, %unused = get_tile_block_id : !int
  %BV = constant <i32: BV> : !int
  %tile, %t0 = load_view_tko weak %x_tiles[%m, %z] optimization_hints = <default = {allow_tma = false}>
      : !x_part, !int -> !row, token
  %value = ftof %tile : !row -> !values
  %first = muli %z, %BV : !int
  %first_1x1 = reshape %first : !int -> !int_1x1
  %first_full = broadcast %first_1x1 : !int_1x1 -> !indices
  %lane = iota : !lane
  %lane_line = reshape %lane : !lane -> !indices
  %column = addi %first_full, %lane_line : !indices
  %largest = call @max_or_nan_in_rows(%value)
  %place = call @first_of(%largest, %value, %column)
  %t1 = store_view_tko weak %largest, %value_tiles[%m, %z] optimization_hints = <default = {allow_tma = false}>
      : !real_1x1, !value_part, !int -> token
  %t2 = store_view_tko weak %place, %place_tiles[%m, %z] optimization_hints = <default = {allow_tma = false}>
      : !int_1x1, !place_part, !int -> token
  return
}

// tokens[m] = the index of the largest value of row m, the first one if several are equal; positions[m] += 1
//
// One block makes one row: the best of the parts, BZ at a time. Those that `argmax_parts` made stand in order; those of a
// decoding step in one launch do not. Values past Z are padded with -inf and never win, nor does NaN.
kernel @next_token op = next_token {
  %value_tiles = make_partition_view %values_view : !values_part
  %place_tiles = make_partition_view %indices_view : !indices_part
  %token_tiles = make_partition_view %tokens_view : !index_part
  %position_tiles = make_partition_view %positions_view : !index_part

  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BZ = constant <i32: BZ> : !int
  %steps = divi %Z, %BZ signed rounding<positive_inf> : !int
  %lowest = constant <f32: 0xFF800000> : !real_1x1  // -inf
  %no_token = constant <i32: 0> : !int_1x1

  %best, %token = for %j in (%zero to %steps, step %one) : !int iter_values(%best_old = %lowest, %token_old = %no_token)
      -> (!real_1x1, !int_1x1) {
    %value, %t0 = load_view_tko weak %value_tiles[%m, %j] optimization_hints = <default = {allow_tma = false}>
        : !values_part, !int -> !part_values, token
    %place, %t1 = load_view_tko weak %place_tiles[%m, %j] optimization_hints = <default = {allow_tma = false}>
        : !indices_part, !int -> !part_indices, token
    %largest = call @max_in_rows<R = 1, BC = BZ>(%value)
    %first = call @first_of<BV = BZ>(%largest, %value, %place)
    %better = call @comes_first(%largest, %first, %best_old, %token_old)
    %token_new = select %better, %first, %token_old : !bit_1x1, !int_1x1
    %best_new = select %better, %largest, %best_old : !bit_1x1, !real_1x1
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
