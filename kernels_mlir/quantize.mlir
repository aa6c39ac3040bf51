// Rows of numbers in 8 bits with a scale for each: as floats (e4m3) or integers.

include "layernorm.mlir"

!right_f32 = !cuda_tile.tile<RxBRxf32>
!right_tile = !cuda_tile.tile<RxBRxT>

!rounded_part = !cuda_tile.partition_view<tile=(RxBC), !f8_rows>
!f8_rows = !cuda_tile.tensor_view<?x?xf8E4M3FN, strides=[?,1]>
!scales_part = !cuda_tile.partition_view<tile=(R), !scales>
!scales = !cuda_tile.tensor_view<?xf32, strides=[1]>
!rounded = !cuda_tile.tile<RxBCxf8E4M3FN>
!right_rounded = !cuda_tile.partition_view<tile=(RxBR), !f8_rows>
!whole_part = !cuda_tile.partition_view<tile=(RxBC), !i8_rows>
!right_whole = !cuda_tile.partition_view<tile=(RxBR), !i8_rows>
!i8_rows = !cuda_tile.tensor_view<?x?xi8, strides=[?,1]>
!whole = !cuda_tile.tile<RxBCxi8>

// The largest magnitude of each row
fragment @largest_in_rows(%value: !f32) -> !stat {
  %magnitude = absf %value : !f32
  %largest = reduce %magnitude dim=1 identities=[0.0 : f32] : !f32 -> !stat
  (%a: !real, %b: !real) {
    %larger = maxf %a, %b propagate_nan : !real
    yield %larger : !real
  }
  yield %largest : !stat
}

// The scale that makes this the largest number of a range; of a row of zeros the smallest normal f32
fragment @scale_within(%largest: !stat, %range: !stat) -> !stat {
  %least = constant <f32: 0x00800000> : !stat
  %quotient = divf %largest, %range : !stat
  %scale = maxf %quotient, %least propagate_nan : !stat
  yield %scale : !stat
}

fragment @scale_for(%largest: !stat) -> !stat {
  %range = constant <f32: 448.0> : !stat
  %scale = call @scale_within(%largest, %range)
  yield %scale : !stat
}

fragment @scale_for_i8(%largest: !stat) -> !stat {
  %range = constant <f32: 127.0> : !stat
  %scale = call @scale_within(%largest, %range)
  yield %scale : !stat
}

// 1 / scale: one division a row, as a division of each element is a call that takes longer than all the rest
fragment @inverse_of(%scale: !stat) -> !stat_1 {
  %one = constant <f32: 1.0> : !stat
  %inverse = divf %one, %scale : !stat
  %inverse_1 = reshape %inverse : !stat -> !stat_1
  yield %inverse_1 : !stat_1
}

// A tile of R rows divided by their scales, of which it takes the inverses
fragment @scaled_down(%value: !f32, %inverse: !stat_1) -> !f32 {
  %inverses = broadcast %inverse : !stat_1 -> !f32
  %scaled = mulf %value, %inverses : !f32
  yield %scaled : !f32
}

fragment @store_rounded(%value: !f32, %inverse: !stat_1, %tiles: !rounded_part, %m: !int, %n: !int) {
  %scaled = call @scaled_down(%value, %inverse)
  %rounded = ftof %scaled : !f32 -> !rounded
  %stored = store_view_tko weak %rounded, %tiles[%m, %n] optimization_hints = <default = {allow_tma = false}>
      : !rounded, !rounded_part, !int -> token
}

// The nearest integers, ties to even: beyond 1.5 * 2^23 an f32 has no fraction. NaN becomes the bound, as an integer has none.
fragment @store_whole(%value: !f32, %inverse: !stat_1, %tiles: !whole_part, %m: !int, %n: !int) {
  %scaled = call @scaled_down(%value, %inverse)
  %most = constant <f32: 127.0> : !f32
  %least = constant <f32: -127.0> : !f32
  %large = constant <f32: 12582912.0> : !f32
  %below = minf %scaled, %most : !f32
  %within = maxf %below, %least : !f32
  %far = addf %within, %large : !f32
  %near = subf %far, %large : !f32
  %integers = ftoi %near signed : !f32 -> !whole
  %stored = store_view_tko weak %integers, %tiles[%m, %n] optimization_hints = <default = {allow_tma = false}>
      : !whole, !whole_part, !int -> token
}

// Whole rows: their scales, and the rows divided by them
fragment @store_rows_rounded(%value: !f32, %tiles: !rounded_part, %scales_tiles: !scales_part, %m: !int) {
  %zero = constant <i32: 0> : !int
  %largest = call @largest_in_rows(%value)
  %scale = call @scale_for(%largest)
  %scale_stored = store_view_tko weak %scale, %scales_tiles[%m] : !stat, !scales_part, !int -> token
  %inverse = call @inverse_of(%scale)
  call @store_rounded(%value, %inverse, %tiles, %m, %zero)
}

fragment @store_rows_whole(%value: !f32, %tiles: !whole_part, %scales_tiles: !scales_part, %m: !int) {
  %zero = constant <i32: 0> : !int
  %largest = call @largest_in_rows(%value)
  %scale = call @scale_for_i8(%largest)
  %scale_stored = store_view_tko weak %scale, %scales_tiles[%m] : !stat, !scales_part, !int -> token
  %inverse = call @inverse_of(%scale)
  call @store_whole(%value, %inverse, %tiles, %m, %zero)
}

// scales = the largest magnitude / the range, at least the smallest normal f32; out = x * (1 / scales)
//
// Rows of any width: one block makes R rows, in steps of BC columns, first their largest magnitude, then the quotients. The
// holes: `setup` makes the view of out, `scale` a scale of the largest, `store` stores a tile.
skeleton @rounding_rows {
  hole @setup
  %x_tiles = make_partition_view %x_view : !in_part
  %scales_tiles = make_partition_view %scales_view : !scales_part
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BC = constant <i32: BC> : !int
  %steps = divi %C, %BC signed rounding<positive_inf> : !int
  %nothing = constant <f32: 0.0> : !stat
  %maxima = for %n in (%zero to %steps, step %one) : !int iter_values(%before = %nothing) -> (!stat) {
    %tile, %read = load_view_tko weak %x_tiles[%m, %n] : !in_part, !int -> !rows, token
    %value = ftof %tile : !rows -> !f32
    %largest = call @largest_in_rows(%value)
    %next = maxf %before, %largest propagate_nan : !stat
    continue %next : !stat
  }
  %scale = hole @scale(%maxima) -> !stat
  %scale_stored = store_view_tko weak %scale, %scales_tiles[%m] : !stat, !scales_part, !int -> token
  %inverse = call @inverse_of(%scale)
  for %n in (%zero to %steps, step %one) : !int {
    %tile, %read = load_view_tko weak %x_tiles[%m, %n] : !in_part, !int -> !rows, token
    %value = ftof %tile : !rows -> !f32
    hole @store(%value, %inverse, %m, %n)
    continue
  }
  return
}

kernel @quantize_rows op = quantize_rows, skeleton = @rounding_rows {
  @scale = @scale_for
  @setup { %out_tiles = make_partition_view %out_view : !rounded_part }
  @store(%value, %inverse, %m, %n) { call @store_rounded(%value, %inverse, %out_tiles, %m, %n) }
}

kernel @quantize_rows_i8 op = quantize_rows_i8, skeleton = @rounding_rows {
  @scale = @scale_for_i8
  @setup { %out_tiles = make_partition_view %out_view : !whole_part }
  @store(%value, %inverse, %m, %n) { call @store_whole(%value, %inverse, %out_tiles, %m, %n) }
}

// The same of R rows of at most BC columns, which stay in registers: x is read once. The hole: `store` stores the rows.
skeleton @rounding_resident_rows {
  hole @setup
  %x_tiles = make_partition_view %x_view : !in_part
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %tile = call @load_rows(%x_tiles, %m, %zero)
  %value = ftof %tile : !rows -> !f32
  hole @store(%value, %m)
  return
}

kernel @quantize_rows_resident op = quantize_rows, skeleton = @rounding_resident_rows {
  @setup {
    %out_tiles = make_partition_view %out_view : !rounded_part
    %scales_tiles = make_partition_view %scales_view : !scales_part
  }
  @store(%value, %m) { call @store_rows_rounded(%value, %out_tiles, %scales_tiles, %m) }
}

kernel @quantize_rows_i8_resident op = quantize_rows_i8, skeleton = @rounding_resident_rows {
  @setup {
    %out_tiles = make_partition_view %out_view : !whole_part
    %scales_tiles = make_partition_view %scales_view : !scales_part
  }
  @store(%value, %m) { call @store_rows_whole(%value, %out_tiles, %scales_tiles, %m) }
}

// layernorm of R rows of at most BC columns, which stay in registers, and the rounding of its result
skeleton @rounding_layernorm {
  hole @setup
  %x_tiles = make_partition_view %x_view : !in_part
  %w_tiles = make_partition_view %weight_view : !vector_part
  %b_tiles = make_partition_view %bias_view : !vector_part
  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %weight, %bias, %read = call @gain_and_bias(%w_tiles, %b_tiles, %zero)
  // The wait comes after these reads by their tokens: else the compiler may put it first.
  %ready = gdc_wait_tko token = %read -> token
  %tile = call @load_rows(%x_tiles, %n, %zero)
  %value = ftof %tile : !rows -> !f32
  %deviation, %inverse = call @two_pass(%value, %C, %eps)
  %result = call @normed(%deviation, %inverse, %weight, %bias)
  hole @store(%result, %n)
  return
}

kernel @layernorm_f8 op = layernorm_f8, skeleton = @rounding_layernorm {
  @setup {
    %out_tiles = make_partition_view %out_view : !rounded_part
    %scales_tiles = make_partition_view %scales_view : !scales_part
  }
  @store(%result, %n) { call @store_rows_rounded(%result, %out_tiles, %scales_tiles, %n) }
}

kernel @layernorm_i8 op = layernorm_i8, skeleton = @rounding_layernorm {
  @setup {
    %out_tiles = make_partition_view %out_view : !whole_part
    %scales_tiles = make_partition_view %scales_view : !scales_part
  }
  @store(%result, %n) { call @store_rows_whole(%result, %out_tiles, %scales_tiles, %n) }
}

// Rows of just BC + BR columns in two tiles, as layernorm_two_tiles
fragment @larger_of_both(%left: !f32, %right: !right_f32) -> !stat {
  %of_left = call @largest_in_rows(%left)
  %of_right = call @largest_in_rows<BC = BR>(%right)
  %largest = maxf %of_left, %of_right propagate_nan : !stat
  yield %largest : !stat
}

fragment @store_two_rounded(%left: !f32, %right: !right_f32, %tiles: !rounded_part, %right_tiles: !right_rounded,
    %scales_tiles: !scales_part, %m: !int, %place: !int) {
  %zero = constant <i32: 0> : !int
  %largest = call @larger_of_both(%left, %right)
  %scale = call @scale_for(%largest)
  %scale_stored = store_view_tko weak %scale, %scales_tiles[%m] : !stat, !scales_part, !int -> token
  %inverse = call @inverse_of(%scale)
  call @store_rounded(%left, %inverse, %tiles, %m, %zero)
  call @store_rounded<BC = BR>(%right, %inverse, %right_tiles, %m, %place)
}

fragment @store_two_whole(%left: !f32, %right: !right_f32, %tiles: !whole_part, %right_tiles: !right_whole,
    %scales_tiles: !scales_part, %m: !int, %place: !int) {
  %zero = constant <i32: 0> : !int
  %largest = call @larger_of_both(%left, %right)
  %scale = call @scale_for_i8(%largest)
  %scale_stored = store_view_tko weak %scale, %scales_tiles[%m] : !stat, !scales_part, !int -> token
  %inverse = call @inverse_of(%scale)
  call @store_whole(%left, %inverse, %tiles, %m, %zero)
  call @store_whole<BC = BR>(%right, %inverse, %right_tiles, %m, %place)
}

// The holes: `setup` makes views of out; `store` stores the rows.
skeleton @rounding_two_tiles {
  %x_left = make_partition_view %x_view : !in_part
  %x_right = make_partition_view %x_view : !right_in
  hole @setup
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %BC = constant <i32: BC> : !int
  %BR = constant <i32: BR> : !int
  %place = divi %BC, %BR signed : !int
  %left_tile = call @load_rows(%x_left, %m, %zero)
  %right_tile = call @load_rows<BC = BR>(%x_right, %m, %place)
  %left = ftof %left_tile : !rows -> !f32
  %right = ftof %right_tile : !right_tile -> !right_f32
  hole @store(%left, %right, %m, %place)
  return
}

kernel @quantize_rows_two_tiles op = quantize_rows, skeleton = @rounding_two_tiles {
  @setup {
    %out_left = make_partition_view %out_view : !rounded_part
    %out_right = make_partition_view %out_view : !right_rounded
    %scales_tiles = make_partition_view %scales_view : !scales_part
  }
  @store(%left, %right, %m, %place) {
    call @store_two_rounded(%left, %right, %out_left, %out_right, %scales_tiles, %m, %place)
  }
}

kernel @layernorm_f8_two_tiles op = layernorm_f8, skeleton = @norm_in_two_tiles {
  @setup {
    %out_left = make_partition_view %out_view : !rounded_part
    %out_right = make_partition_view %out_view : !right_rounded
    %scales_tiles = make_partition_view %scales_view : !scales_part
  }
  @norm(%left, %right, %mean, %inverse, %weight_left, %weight_right, %bias_left, %bias_right, %n, %zero, %place) {
    %normed_left = call @norm_of(%left, %mean, %inverse, %weight_left, %bias_left)
    %normed_right = call @norm_of<BC = BR>(%right, %mean, %inverse, %weight_right, %bias_right)
    call @store_two_rounded(%normed_left, %normed_right, %out_left, %out_right, %scales_tiles, %n, %place)
  }
}

kernel @quantize_rows_i8_two_tiles op = quantize_rows_i8, skeleton = @rounding_two_tiles {
  @setup {
    %out_left = make_partition_view %out_view : !whole_part
    %out_right = make_partition_view %out_view : !right_whole
    %scales_tiles = make_partition_view %scales_view : !scales_part
  }
  @store(%left, %right, %m, %place) {
    call @store_two_whole(%left, %right, %out_left, %out_right, %scales_tiles, %m, %place)
  }
}

kernel @layernorm_i8_two_tiles op = layernorm_i8, skeleton = @norm_in_two_tiles {
  @setup {
    %out_left = make_partition_view %out_view : !whole_part
    %out_right = make_partition_view %out_view : !right_whole
    %scales_tiles = make_partition_view %scales_view : !scales_part
  }
  @norm(%left, %right, %mean, %inverse, %weight_left, %weight_right, %bias_left, %bias_right, %n, %zero, %place) {
    %normed_left = call @norm_of(%left, %mean, %inverse, %weight_left, %bias_left)
    %normed_right = call @norm_of<BC = BR>(%right, %mean, %inverse, %weight_right, %bias_right)
    call @store_two_whole(%normed_left, %normed_right, %out_left, %out_right, %scales_tiles, %n, %place)
  }
}
