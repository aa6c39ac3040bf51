// out = (x - mean) / sqrt(variance + eps) * weight + bias over rows of C columns. Everything is computed in f32. The weight
// and the bias are read before the wait for the launches before this one: they arrive while those still run.

include "rows.mlir"

sizes BR = 256, BZ = 4

!partial_part = !cuda_tile.partition_view<tile=(BZx1xBC), padding_value = zero, !parts>
!partial_one_part = !cuda_tile.partition_view<tile=(1x1xBC), padding_value = zero, !parts>
!partial = !cuda_tile.tile<BZx1xBCxf32>
!partial_flat = !cuda_tile.tile<BZxBCxf32>
!partial_one = !cuda_tile.tile<1x1xBCxf32>
!right_in = !cuda_tile.partition_view<tile=(RxBR), padding_value = zero, !matrix>
!right_out = !cuda_tile.partition_view<tile=(RxBR), !matrix>
!right_vector = !cuda_tile.partition_view<tile=(BR), padding_value = zero, !vector>

// 1 / sqrt(variance + eps)
fragment @inverse_deviation(%variance: !stat_1, %eps: !real) -> !stat_1 {
  %epsilons = call @for_rows(%eps)
  %shifted = addf %variance, %epsilons : !stat_1
  %inverse = rsqrt %shifted : !stat_1
  yield %inverse : !stat_1
}

// deviation * inverse * weight + bias
fragment @normed(%deviation: !f32, %inverse: !stat_1, %weight: !f32, %bias: !f32) -> !f32 {
  %inverses = broadcast %inverse : !stat_1 -> !f32
  %normal = mulf %deviation, %inverses : !f32
  %scaled = fma %normal, %weight, %bias : !f32
  yield %scaled : !f32
}

// Of whole rows in two passes: the deviations from the mean, 0 past C where the padding would deviate too, and the inverse
// of the standard deviation. A one-pass variance would cancel when the mean is large.
fragment @two_pass(%value: !f32, %C: !int, %eps: !real) -> (!f32, !stat_1) {
  %sum = call @sum_in_rows(%value)
  %width = call @width_of(%C)
  %mean = divf %sum, %width : !stat_1
  %means = broadcast %mean : !stat_1 -> !f32
  %columns = call @first_columns()
  %inside = call @inside(%columns, %C)
  %nothing = constant <f32: 0.0> : !f32
  %difference = subf %value, %means : !f32
  %deviation = select %inside, %difference, %nothing : !inside, !f32
  %square = mulf %deviation, %deviation : !f32
  %square_sum = call @sum_in_rows(%square)
  %variance = divf %square_sum, %width : !stat_1
  %inverse = call @inverse_deviation(%variance, %eps)
  yield %deviation, %inverse : !f32, !stat_1
}

// Mean and inverse of the standard deviation from such sums. The mean is at most sqrt(C) standard deviations from the first
// element, so that what cancels in the variance costs it at most a relative C * 2^-24: enough for 16 bits, not for f32.
fragment @one_pass(%sum: !stat, %square_sum: !stat, %C: !int, %eps: !real) -> (!stat_1, !stat_1) {
  %sum_1 = reshape %sum : !stat -> !stat_1
  %square_1 = reshape %square_sum : !stat -> !stat_1
  %width = call @width_of(%C)
  %mean = divf %sum_1, %width : !stat_1
  %mean_square = divf %square_1, %width : !stat_1
  %square_mean = mulf %mean, %mean : !stat_1
  %spread = subf %mean_square, %square_mean : !stat_1
  %least = constant <f32: 0.0> : !stat_1
  %variance = maxf %spread, %least : !stat_1
  %inverse = call @inverse_deviation(%variance, %eps)
  yield %mean, %inverse : !stat_1, !stat_1
}

// Rows of any width: one block makes one row, in tiles of BC columns, in three passes.
kernel @layernorm op = layernorm {
  %x_tiles = make_partition_view %x_view : !row_in
  %w_tiles = make_partition_view %weight_view : !vector_part
  %b_tiles = make_partition_view %bias_view : !vector_part
  %out_tiles = make_partition_view %out_view : !row_out
  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BC = constant <i32: BC> : !int
  %steps = divi %C, %BC signed rounding<positive_inf> : !int
  %width = itof %C signed : !int -> !real
  %nothing = constant <f32: 0.0> : !row_f32
  %sums = for %j in (%zero to %steps, step %one) : !int iter_values(%acc = %nothing) -> (!row_f32) {
    %tile, %token = load_view_tko weak %x_tiles[%n, %j] : !row_in, !int -> !row, token
    %value = ftof %tile : !row -> !row_f32
    %next = addf %acc, %value : !row_f32
    continue %next : !row_f32
  }
  %sum_1x1 = call @sum_in_rows<R = 1>(%sums)
  %sum = reshape %sum_1x1 : !real_1x1 -> !real
  %mean = divf %sum, %width : !real
  %means = call @for_elements<R = 1>(%mean)
  %squares = for %j in (%zero to %steps, step %one) : !int iter_values(%acc = %nothing) -> (!row_f32) {
    %tile, %token = load_view_tko weak %x_tiles[%n, %j] : !row_in, !int -> !row, token
    %value = ftof %tile : !row -> !row_f32
    %first = muli %j, %BC : !int
    %columns = call @columns_from(%first)
    %inside = call @inside<R = 1>(%columns, %C)
    %deviation = subf %value, %means : !row_f32
    %counted = select %inside, %deviation, %nothing : !inside_1, !row_f32
    %next = fma %counted, %counted, %acc : !row_f32
    continue %next : !row_f32
  }
  %square_1x1 = call @sum_in_rows<R = 1>(%squares)
  %square_sum = reshape %square_1x1 : !real_1x1 -> !real
  %variance = divf %square_sum, %width : !real
  %shifted = addf %variance, %eps : !real
  %standard = sqrt %shifted : !real
  %unit = constant <f32: 1.0> : !real
  %inverse = divf %unit, %standard : !real
  %inverse_1x1 = reshape %inverse : !real -> !real_1x1
  for %j in (%zero to %steps, step %one) : !int {
    %tile, %token = load_view_tko weak %x_tiles[%n, %j] : !row_in, !int -> !row, token
    %w, %w_token = load_view_tko weak %w_tiles[%j] : !vector_part, !int -> !line, token
    %b, %b_token = load_view_tko weak %b_tiles[%j] : !vector_part, !int -> !line, token
    %value = ftof %tile : !row -> !row_f32
    %weight = call @for_each_row<R = 1>(%w)
    %bias = call @for_each_row<R = 1>(%b)
    %deviation = subf %value, %means : !row_f32
    %scaled = call @normed<R = 1>(%deviation, %inverse_1x1, %weight, %bias)
    %result = ftof %scaled : !row_f32 -> !row
    %stored = store_view_tko weak %result, %out_tiles[%n, %j] : !row, !row_out, !int -> token
    continue
  }
  return
}

// The differences of a tile's elements from the first of each row
fragment @from_first(%tiles: !in_part, %n: !int, %j: !int, %first: !stat_1) -> !f32 {
  %tile = call @load_rows(%tiles, %n, %j)
  %value = ftof %tile : !rows -> !f32
  %firsts = broadcast %first : !stat_1 -> !f32
  %difference = subf %value, %firsts : !f32
  yield %difference : !f32
}

fragment @norm_of(%difference: !f32, %mean: !stat_1, %inverse: !stat_1, %weight: !f32, %bias: !f32) -> !f32 {
  %means = broadcast %mean : !stat_1 -> !f32
  %deviation = subf %difference, %means : !f32
  %scaled = call @normed(%deviation, %inverse, %weight, %bias)
  yield %scaled : !f32
}

fragment @norm_part(%difference: !f32, %mean: !stat_1, %inverse: !stat_1, %weight: !f32, %bias: !f32, %tiles: !out_part,
    %n: !int, %j: !int) {
  %scaled = call @norm_of(%difference, %mean, %inverse, %weight, %bias)
  call @store_rows(%scaled, %tiles, %n, %j)
}

// Weight and bias of a norm, for each row, and the token of both reads
fragment @gain_and_bias(%w_tiles: !vector_part, %b_tiles: !vector_part, %zero: !int) -> (!f32, !f32, token) {
  %w, %t0 = call @load_line(%w_tiles, %zero)
  %b, %t1 = call @load_line(%b_tiles, %zero)
  %weight = call @for_each_row(%w)
  %bias = call @for_each_row(%b)
  %read = join_tokens %t0, %t1 : token
  yield %weight, %bias, %read : !f32, !f32, token
}

// Register-resident: one block makes R rows of at most BC columns, reading x once. `norm` makes and stores the result.
skeleton @resident_norm {
  %x_tiles = make_partition_view %x_view : !in_part
  hole @setup
  %w_tiles = make_partition_view %weight_view : !vector_part
  %b_tiles = make_partition_view %bias_view : !vector_part
  %out_tiles = make_partition_view %out_view : !out_part
  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %weight, %bias, %read = call @gain_and_bias(%w_tiles, %b_tiles, %zero)
  // The wait comes after these reads by their tokens: else the compiler may put it first.
  %ready = gdc_wait_tko token = %read -> token
  %tile = call @load_rows(%x_tiles, %n, %zero)
  hole @norm(%tile, %weight, %bias, %out_tiles, %n, %zero)
  return
}

kernel @layernorm_two_pass op = layernorm, skeleton = @resident_norm {
  @norm(%tile, %weight, %bias, %out_tiles, %n, %zero) {
    %value = ftof %tile : !rows -> !f32
    %deviation, %inverse = call @two_pass(%value, %C, %eps)
    %scaled = call @normed(%deviation, %inverse, %weight, %bias)
    call @store_rows(%scaled, %out_tiles, %n, %zero)
  }
}

// With mean and variance in one pass over the differences from each row's first element
kernel @layernorm_single_pass op = layernorm, skeleton = @resident_norm {
  @setup { %x_firsts = make_partition_view %x_view : !first_part }
  @norm(%tile, %weight, %bias, %out_tiles, %n, %zero) {
    %first = call @load_rows<BC = 1>(%x_firsts, %n, %zero)
    %value = ftof %tile : !rows -> !f32
    %first_f32 = ftof %first : !first -> !stat_1
    %firsts = broadcast %first_f32 : !stat_1 -> !f32
    // Columns past C were padded with zeros, which differ from the first element: they must not count.
    %columns = call @first_columns()
    %inside = call @inside(%columns, %C)
    %nothing = constant <f32: 0.0> : !f32
    %from_first = subf %value, %firsts : !f32
    %difference = select %inside, %from_first, %nothing : !inside, !f32
    %sum, %square_sum = call @sums_and_squares(%difference)
    %mean, %inverse = call @one_pass(%sum, %square_sum, %C, %eps)
    call @norm_part(%difference, %mean, %inverse, %weight, %bias, %out_tiles, %n, %zero)
  }
}

// For rows of just BC + BR columns in two tiles: GPT-2's 768 columns are no power of two. BC is a multiple of BR. Without
// columns that are not there two rows fit one warp, in which no sum waits for another warp's. Mean and variance in one pass. The
// holes: `setup` makes views of out; `norm` makes and stores the results of the differences from each row's first element.
skeleton @norm_in_two_tiles {
  %x_left = make_partition_view %x_view : !in_part
  %x_right = make_partition_view %x_view : !right_in
  %x_firsts = make_partition_view %x_view : !first_part
  %w_left = make_partition_view %weight_view : !vector_part
  %w_right = make_partition_view %weight_view : !right_vector
  %b_left = make_partition_view %bias_view : !vector_part
  %b_right = make_partition_view %bias_view : !right_vector
  hole @setup
  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %BC = constant <i32: BC> : !int
  %BR = constant <i32: BR> : !int
  %right = divi %BC, %BR signed : !int
  %w0, %t0 = call @load_line(%w_left, %zero)
  %weight_left = call @for_each_row(%w0)
  %w1, %t1 = call @load_line<BC = BR>(%w_right, %right)
  %weight_right = call @for_each_row<BC = BR>(%w1)
  %b0, %t2 = call @load_line(%b_left, %zero)
  %bias_left = call @for_each_row(%b0)
  %b1, %t3 = call @load_line<BC = BR>(%b_right, %right)
  %bias_right = call @for_each_row<BC = BR>(%b1)
  // The wait comes after these reads by their tokens: else the compiler may put it first.
  %read = join_tokens %t0, %t1, %t2, %t3 : token
  %ready = gdc_wait_tko token = %read -> token
  %first_tile = call @load_rows<BC = 1>(%x_firsts, %n, %zero)
  %first = ftof %first_tile : !first -> !stat_1
  %difference_left = call @from_first(%x_left, %n, %zero, %first)
  %difference_right = call @from_first<BC = BR>(%x_right, %n, %right, %first)
  %sum_left, %square_left = call @sums_and_squares(%difference_left)
  %sum_right, %square_right = call @sums_and_squares<BC = BR>(%difference_right)
  %sum = addf %sum_left, %sum_right : !stat
  %square_sum = addf %square_left, %square_right : !stat
  %mean, %inverse = call @one_pass(%sum, %square_sum, %C, %eps)
  hole @norm(%difference_left, %difference_right, %mean, %inverse, %weight_left, %weight_right, %bias_left, %bias_right, %n,
      %zero, %right)
  return
}

kernel @layernorm_two_tiles op = layernorm, skeleton = @norm_in_two_tiles {
  @setup {
    %out_left = make_partition_view %out_view : !out_part
    %out_right = make_partition_view %out_view : !right_out
  }
  @norm(%left, %right, %mean, %inverse, %weight_left, %weight_right, %bias_left, %bias_right, %n, %zero, %place) {
    call @norm_part(%left, %mean, %inverse, %weight_left, %bias_left, %out_left, %n, %zero)
    call @norm_part<BC = BR>(%right, %mean, %inverse, %weight_right, %bias_right, %out_right, %n, %place)
  }
}

// x = x + bias + sum of partial over its parts, out = layernorm(x). One block makes one row of at most BC columns, which stays
// in registers. The sum is rounded as it is stored, and the norm is of what was stored. `sum` adds the parts up.
skeleton @residual_norm {
  hole @parts
  %bias_tiles = make_partition_view %bias_view : !vector_part
  %w_tiles = make_partition_view %norm_weight_view : !vector_part
  %b_tiles = make_partition_view %norm_bias_view : !vector_part
  %x_tiles = make_partition_view %x_view : !row_in
  %x_stores = make_partition_view %x_view : !row_out
  %out_tiles = make_partition_view %out_view : !row_out
  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %bias_line, %t0 = call @load_line(%bias_tiles, %zero)
  %w, %t1 = call @load_line(%w_tiles, %zero)
  %b, %t2 = call @load_line(%b_tiles, %zero)
  %bias = call @for_each_row<R = 1>(%bias_line)
  %norm_weight = call @for_each_row<R = 1>(%w)
  %norm_bias = call @for_each_row<R = 1>(%b)
  // The wait comes after these reads by their tokens: else the compiler may put it first.
  %read = join_tokens %t0, %t1, %t2 : token
  %ready = gdc_wait_tko token = %read -> token
  %x_tile, %x_read = load_view_tko weak %x_tiles[%n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !row_in, !int -> !row, token
  %x_f32 = ftof %x_tile : !row -> !row_f32
  %biased = addf %x_f32, %bias : !row_f32
  %sum = hole @sum(%biased, %n) -> !row_f32
  %rounded = ftof %sum : !row_f32 -> !row
  %x_stored = store_view_tko weak %rounded, %x_stores[%n, %zero] token = %x_read
      optimization_hints = <default = {allow_tma = false}> : !row, !row_out, !int -> token
  %value = ftof %rounded : !row -> !row_f32
  %deviation, %inverse = call @two_pass<R = 1>(%value, %C, %eps)
  %scaled = call @normed<R = 1>(%deviation, %inverse, %norm_weight, %norm_bias)
  call @store_rows<R = 1>(%scaled, %out_tiles, %n, %zero)
  return
}

// Any number of parts, BZ at a time
kernel @residual_layernorm op = residual_layernorm, skeleton = @residual_norm {
  @parts { %partial_tiles = make_partition_view %partial_view : !partial_part }
  @sum(%biased, %n) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BZ = constant <i32: BZ> : !int
    %steps = divi %Z, %BZ signed rounding<positive_inf> : !int
    %sum = for %z in (%zero to %steps, step %one) : !int iter_values(%so_far = %biased) -> (!row_f32) {
      %tile, %token = load_view_tko weak %partial_tiles[%z, %n, %zero] optimization_hints = <default = {allow_tma = false}>
          : !partial_part, !int -> !partial, token
      %flat = reshape %tile : !partial -> !partial_flat
      %line = call @sum_in_columns<R = BZ>(%flat)
      %next = addf %so_far, %line : !row_f32
      continue %next : !row_f32
    }
    yield %sum : !row_f32
  }
}

fragment @load_partial(%tiles: !partial_one_part, %z: !int, %n: !int) -> !partial_one {
  %zero = constant <i32: 0> : !int
  %tile, %token = load_view_tko weak %tiles[%z, %n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !partial_one_part, !int -> !partial_one, token
  yield %tile : !partial_one
}

fragment @add_partial(%sum: !row_f32, %tile: !partial_one) -> !row_f32 {
  %line = reshape %tile : !partial_one -> !row_f32
  %next = addf %sum, %line : !row_f32
  yield %next : !row_f32
}

// Four parts, read at once
kernel @residual_layernorm_four op = residual_layernorm, skeleton = @residual_norm {
  @parts { %partial_tiles = make_partition_view %partial_view : !partial_one_part }
  @sum(%biased, %n) {
    repeat Z = 0 to 3 {
      %z.Z = constant <i32: Z> : !int
    }
    repeat Z = 0 to 3 {
      %part.Z = call @load_partial(%partial_tiles, %z.Z, %n)
    }
    %sum.0 = call @add_partial(%biased, %part.0)
    repeat Z = 1 to 3 {
      %sum.Z = call @add_partial(%sum.Z-1, %part.Z)
    }
    yield %sum.3 : !row_f32
  }
}
