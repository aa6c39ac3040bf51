// out = x / sqrt(mean of x^2 + eps) * weight, over rows of any width

include "rows.mlir"

// 1 / sqrt(sum of squares / C + eps), for each row
fragment @inverse_root(%square_sum: !stat_1, %C: !int, %eps: !real) -> !stat_1 {
  %width = call @width_of(%C)
  %mean = divf %square_sum, %width : !stat_1
  %epsilons = call @for_rows(%eps)
  %shifted = addf %mean, %epsilons : !stat_1
  %inverse = rsqrt %shifted : !stat_1
  yield %inverse : !stat_1
}

// value * inverse * weight
fragment @scaled(%value: !f32, %inverse: !stat_1, %weight: !f32) -> !f32 {
  %inverses = broadcast %inverse : !stat_1 -> !f32
  %normal = mulf %value, %inverses : !f32
  %scaled = mulf %normal, %weight : !f32
  yield %scaled : !f32
}

// One block makes one row, in tiles of BC columns, in two passes.
kernel @rmsnorm op = rmsnorm {
  %x_tiles = make_partition_view %x_view : !row_in
  %w_tiles = make_partition_view %weight_view : !vector_part
  %out_tiles = make_partition_view %out_view : !row_out
  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BC = constant <i32: BC> : !int
  %steps = divi %C, %BC signed rounding<positive_inf> : !int
  %nothing = constant <f32: 0.0> : !row_f32
  %squares = for %j in (%zero to %steps, step %one) : !int iter_values(%acc = %nothing) -> (!row_f32) {
    %tile, %token = load_view_tko weak %x_tiles[%n, %j] : !row_in, !int -> !row, token
    %value = ftof %tile : !row -> !row_f32
    %next = fma %value, %value, %acc : !row_f32
    continue %next : !row_f32
  }
  %square_sum = call @sum_in_rows<R = 1>(%squares)
  %inverse = call @inverse_root<R = 1>(%square_sum, %C, %eps)
  for %j in (%zero to %steps, step %one) : !int {
    %tile, %token = load_view_tko weak %x_tiles[%n, %j] : !row_in, !int -> !row, token
    %w, %w_token = load_view_tko weak %w_tiles[%j] : !vector_part, !int -> !line, token
    %value = ftof %tile : !row -> !row_f32
    %weight = call @for_each_row<R = 1>(%w)
    %result = call @scaled<R = 1>(%value, %inverse, %weight)
    %rounded = ftof %result : !row_f32 -> !row
    %stored = store_view_tko weak %rounded, %out_tiles[%n, %j] : !row, !row_out, !int -> token
    continue
  }
  return
}

// One block makes R rows of at most BC columns, which stay in registers: x is read once.
kernel @rmsnorm_resident op = rmsnorm {
  %x_tiles = make_partition_view %x_view : !in_part
  %w_tiles = make_partition_view %weight_view : !vector_part
  %out_tiles = make_partition_view %out_view : !out_part
  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %w, %read = call @load_line(%w_tiles, %zero)
  %weight = call @for_each_row(%w)
  // The wait comes after this read by its token: else the compiler may put it first.
  %ready = gdc_wait_tko token = %read -> token
  %tile = call @load_rows(%x_tiles, %n, %zero)
  %value = ftof %tile : !rows -> !f32
  %square = mulf %value, %value : !f32
  %square_sum = call @sum_in_rows(%square)
  %inverse = call @inverse_root(%square_sum, %C, %eps)
  %result = call @scaled(%value, %inverse, %weight)
  call @store_rows(%result, %out_tiles, %n, %zero)
  return
}
