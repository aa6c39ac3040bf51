// Split-N products: persistent, with two accumulators, of BN and of BR columns. A tile's sizes are powers of two; tiles of
// 192, 288 or 384 columns come out even where those of 128 and 256 leave multiprocessors idle in the last round, and the wider
// a tile, the less is read from shared memory per product. Columns are counted in steps of BR. The grid has one row.

include "products.mlir"

!halves = !cuda_tile.tile<BMx2x64xf32>
!half_sums = !cuda_tile.tile<BMx2xf32>
!w_left = !cuda_tile.strided_view<tile=(BKxBN), traversal_strides=[BK,BR], padding_value = zero, !matrix>
!w_right = !cuda_tile.partition_view<tile=(BKxBR), padding_value = zero, !matrix>
!bias_left = !cuda_tile.strided_view<tile=(BN), traversal_strides=[BR], padding_value = zero, !vector>
!bias_right = !cuda_tile.partition_view<tile=(BR), padding_value = zero, !vector>
!residual_left = !cuda_tile.strided_view<tile=(BMxBN), traversal_strides=[BM,BR], padding_value = zero, !matrix>
!residual_right = !cuda_tile.partition_view<tile=(BMxBR), padding_value = zero, !matrix>
!out_left = !cuda_tile.strided_view<tile=(BMxBN), traversal_strides=[BM,BR], !matrix>
!out_right = !cuda_tile.partition_view<tile=(BMxBR), !matrix>
!rest_w = !cuda_tile.tile<BKxBRxT>
!rest_bias = !cuda_tile.tile<BRxT>
!rest_out = !cuda_tile.tile<BMxBRxT>
!rest_acc = !cuda_tile.tile<BMxBRxf32>

// Accumulators that start with a zero that the compiler does not know: the number of the block's row. It would take the
// first step out of a loop that starts with known zeros and then, with two accumulators, has each product wait for the one
// before it.
fragment @unknown_zero(%row_zero: !int) -> !acc {
  %zero = itof %row_zero signed : !int -> !real
  %zero_1x1 = reshape %zero : !real -> !real_1x1
  %acc = broadcast %zero_1x1 : !real_1x1 -> !acc
  yield %acc : !acc
}

// How many tiles there are in a row of the result
fragment @split_tiles(%N: !int) -> !int {
  %BN = constant <i32: BN> : !int
  %BR = constant <i32: BR> : !int
  %width = addi %BN, %BR : !int
  %n_tiles = divi %N, %width signed rounding<positive_inf> : !int
  yield %n_tiles : !int
}

// Where the two parts of the n-th tile begin, in steps of BR columns
fragment @split_columns(%n: !int) -> (!int, !int) {
  %one = constant <i32: 1> : !int
  %BN = constant <i32: BN> : !int
  %BR = constant <i32: BR> : !int
  %before_right = divi %BN, %BR signed : !int
  %per_tile = addi %before_right, %one : !int
  %left = muli %n, %per_tile : !int
  %right = addi %left, %before_right : !int
  yield %left, %right : !int, !int
}

// One step of K for both accumulators
fragment @split_step(%x: !x_part, %w_left: !w_left, %w_right: !w_right, %m: !int, %k: !int, %left: !int, %right: !int,
    %acc: !acc, %rest: !rest_acc) -> (!acc, !rest_acc) {
  %x_tile, %x_token = load_view_tko weak %x[%m, %k] : !x_part, !int -> !x, token
  %w_tile, %w_token = load_view_tko weak %w_left[%k, %left] : !w_left, !int -> !w, token
  %rest_w_tile, %rest_w_token = load_view_tko weak %w_right[%k, %right] : !w_right, !int -> !rest_w, token
  %next = mmaf %x_tile, %w_tile, %acc : !x, !w, !acc
  %rest_next = mmaf %x_tile, %rest_w_tile, %rest : !x, !rest_w, !rest_acc
  yield %next, %rest_next : !acc, !rest_acc
}

fragment @load_split_bias(%bias_left: !bias_left, %bias_right: !bias_right, %left: !int, %right: !int) -> (!bias, !rest_bias) {
  %bias, %token = load_view_tko weak %bias_left[%left] : !bias_left, !int -> !bias, token
  %rest_bias, %rest_token = load_view_tko weak %bias_right[%right] : !bias_right, !int -> !rest_bias, token
  yield %bias, %rest_bias : !bias, !rest_bias
}

// Stores both parts, the right one after the left one
fragment @store_split(%value: !acc, %rest_value: !rest_acc, %out_left: !out_left, %out_right: !out_right, %m: !int,
    %left: !int, %right: !int, %before: token) -> token {
  %result = call @rounded(%value)
  %stored = store_view_tko weak %result, %out_left[%m, %left] token = %before : !out, !out_left, !int -> token
  %rest_result = call @rounded<BN = BR>(%rest_value)
  %rest_stored = store_view_tko weak %rest_result, %out_right[%m, %right] token = %stored : !rest_out, !out_right, !int -> token
  yield %rest_stored : token
}

// In any order, also from tile to tile
fragment @store_split_unordered(%value: !acc, %rest_value: !rest_acc, %out_left: !out_left, %out_right: !out_right,
    %m: !int, %left: !int, %right: !int) {
  %result = call @rounded(%value)
  %stored = store_view_tko weak %result, %out_left[%m, %left] : !out, !out_left, !int -> token
  %rest_result = call @rounded<BN = BR>(%rest_value)
  %rest_stored = store_view_tko weak %rest_result, %out_right[%m, %right] : !rest_out, !out_right, !int -> token
}

// The sum of squares of each row over both parts. The left part is added up by halves: by whole rows the compiler has the
// products before it wait for one another.
fragment @split_row_squares(%value: !acc, %rest_value: !rest_acc) -> !column {
  %square = mulf %value, %value : !acc
  %halves = reshape %square : !acc -> !halves
  %half_sums = reduce %halves dim=2 identities=[0.0 : f32] : !halves -> !half_sums
  (%half_a: !real, %half_b: !real) {
    %half_ab = addf %half_a, %half_b : !real
    yield %half_ab : !real
  }
  %left_sum = call @row_sums<R = BM, BC = 2>(%half_sums)
  %right_sum = call @row_squares_alone<BN = BR>(%rest_value)
  %sum = addf %left_sum, %right_sum : !column
  yield %sum : !column
}

fragment @store_split_squares(%value: !acc, %rest: !rest_acc, %squares: !squares_out_part, %m: !int, %n: !int) {
  %sum = call @split_row_squares(%value, %rest)
  %row = reshape %sum : !column -> !square_1
  %stored = store_view_tko weak %row, %squares[%n, %m] optimization_hints = <default = {allow_tma = false}>
      : !square_1, !squares_out_part, !int -> token
}

// @tiles_of of split tiles
fragment @split_tiles_of(%M: !int, %N: !int, %K: !int) -> (!int, !int, !int, !int) {
  %BM = constant <i32: BM> : !int
  %BK = constant <i32: BK> : !int
  %m_tiles = divi %M, %BM signed rounding<positive_inf> : !int
  %n_tiles = call @split_tiles(%N)
  %tiles = muli %m_tiles, %n_tiles : !int
  %steps = divi %K, %BK signed rounding<positive_inf> : !int
  yield %m_tiles, %n_tiles, %tiles, %steps : !int, !int, !int, !int
}

// The holes are those of persistent.mlir.
skeleton @split_n {
  %x_tiles = make_partition_view %x_view : !x_part
  hole @rows
  %w_left = make_strided_view %weight_view : !w_left
  %w_right = make_partition_view %weight_view : !w_right
  hole @setup
  %out_left = make_strided_view %out_view : !out_left
  %out_right = make_partition_view %out_view : !out_right
  %block, %row_zero, %unused_z = get_tile_block_id : !int
  %blocks, %one_y, %one_z = get_num_tile_blocks : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %m_tiles, %n_tiles, %tiles, %steps = call @split_tiles_of(%M, %N, %K)
  %empty = call @unknown_zero(%row_zero)
  %rest_empty = call @unknown_zero<BN = BR>(%row_zero)
  %start = make_token : token
  %end = for %tile in (%block to %tiles, step %blocks) : !int iter_values(%before = %start) -> (token) {
    %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
    %left, %right = call @split_columns(%n)
    hole @prologue(%left, %right)
    %product, %rest_product = for %k in (%zero to %steps, step %one) : !int
        iter_values(%acc = %empty, %rest = %rest_empty) -> (!acc, !rest_acc) {
      %next, %rest_next = call @split_step(%x_tiles, %w_left, %w_right, %m, %k, %left, %right, %acc, %rest)
      continue %next, %rest_next : !acc, !rest_acc
    }
    %after = hole @epilogue(%product, %rest_product, %out_left, %out_right, %m, %n, %left, %right, %before) -> token
    continue %after : token
  }
  return
}

// With a bias, read before the K loop. The holes: `bias` makes its rows and `value` the result, each for both parts; `store`.
skeleton @split_n_bias, skeleton = @split_n {
  @setup {
    %bias_left = make_strided_view %bias_view : !bias_left
    %bias_right = make_partition_view %bias_view : !bias_right
  }
  @prologue(%left, %right) {
    %bias, %rest_bias = call @load_split_bias(%bias_left, %bias_right, %left, %right)
    %bias_rows = hole @bias(%bias) -> !acc
    %rest_bias_rows = hole @bias<BN = BR>(%rest_bias) -> !rest_acc
  }
  @epilogue(%product, %rest_product, %out_left, %out_right, %m, %n, %left, %right, %before) {
    %value = hole @value(%product, %bias_rows) -> !acc
    %rest = hole @value<BN = BR>(%rest_product, %rest_bias_rows) -> !rest_acc
    %stored = hole @store(%value, %rest, %out_left, %out_right, %m, %left, %right, %before) -> token
    yield %stored : token
  }
}

// With a bias and a residual, which may be the output itself: the stores come after the loads of both parts by the token.
// The holes: `setup_after`, and `after`, which gets the results once they are stored.
skeleton @split_n_residual, skeleton = @split_n {
  @setup {
    %bias_left = make_strided_view %bias_view : !bias_left
    %bias_right = make_partition_view %bias_view : !bias_right
    %residual_left = make_strided_view %residual_view : !residual_left
    %residual_right = make_partition_view %residual_view : !residual_right
    hole @setup_after
  }
  @prologue(%left, %right) {
    %bias, %rest_bias = call @load_split_bias(%bias_left, %bias_right, %left, %right)
    %bias_rows = call @bias_rows(%bias)
    %rest_bias_rows = call @bias_rows<BN = BR>(%rest_bias)
  }
  @epilogue(%product, %rest_product, %out_left, %out_right, %m, %n, %left, %right, %before) {
    %biased = addf %product, %bias_rows : !acc
    %rest_biased = addf %rest_product, %rest_bias_rows : !rest_acc
    %residual, %read = load_view_tko weak %residual_left[%m, %left] token = %before : !residual_left, !int -> !out, token
    %value = call @add_residual(%biased, %residual)
    %rest_residual, %rest_read = load_view_tko weak %residual_right[%m, %right] token = %before
        : !residual_right, !int -> !rest_out, token
    %rest = call @add_residual<BN = BR>(%rest_biased, %rest_residual)
    %both_read = join_tokens %read, %rest_read : token
    %stored = call @store_split(%value, %rest, %out_left, %out_right, %m, %left, %right, %both_read)
    hole @after(%value, %rest, %m, %n)
    yield %stored : token
  }
}

// With rows scaled by 1 / rms. The holes are those of @persistent_rms.
skeleton @split_n_rms, skeleton = @split_n {
  @rows {
    %squares_tiles = make_partition_view %squares_view : !squares_in_part
    %four_parts, %units, %epsilons = call @rms_constants(%Z, %K, %eps)
  }
  @setup {
    %bias_left = make_strided_view %bias_view : !bias_left
    %bias_right = make_partition_view %bias_view : !bias_right
  }
  @epilogue(%product, %rest_product, %out_left, %out_right, %m, %n, %left, %right, %before) {
    %bias, %rest_bias = call @load_split_bias(%bias_left, %bias_right, %left, %right)
    %bias_rows = hole @bias(%bias) -> !acc
    %rest_bias_rows = hole @bias<BN = BR>(%rest_bias) -> !rest_acc
    %sum = call @sum_of_parts(%squares_tiles, %m, %four_parts)
    %inverse = call @inverse_rms(%sum, %units, %epsilons)
    %scale = hole @scale(%inverse) -> !column
    %scaled = call @scale_rows(%product, %scale, %bias_rows)
    %rest_scaled = call @scale_rows<BN = BR>(%rest_product, %scale, %rest_bias_rows)
    %value = hole @activation(%scaled) -> !acc
    %rest = hole @activation<BN = BR>(%rest_scaled) -> !rest_acc
    call @store_split_unordered(%value, %rest, %out_left, %out_right, %m, %left, %right)
    yield %before : token
  }
}

kernel @linear_split_n op = linear, skeleton = @split_n_bias {
  @bias = @bias_rows  @value = @add_bias  @store = @store_split
}

kernel @linear_gelu_split_n op = linear_gelu, skeleton = @split_n_bias {
  @bias = @half_bias_rows  @value = @gelu
  @store(%value, %rest, %out_left, %out_right, %m, %left, %right, %before) {
    call @store_split_unordered(%value, %rest, %out_left, %out_right, %m, %left, %right)
    yield %before : token
  }
}

kernel @linear_residual_split_n op = linear_residual, skeleton = @split_n_residual {}

kernel @linear_residual_squares_split_n op = linear_residual_squares, skeleton = @split_n_residual {
  @setup_after { %squares_tiles = make_partition_view %squares_view : !squares_out_part }
  @after(%value, %rest, %m, %n) { call @store_split_squares(%value, %rest, %squares_tiles, %m, %n) }
}

kernel @rms_linear_split_n op = rms_linear, skeleton = @split_n_rms {
  @bias = @bias_rows  @scale = @unscaled  @activation = @identity
}

kernel @rms_linear_gelu_split_n op = rms_linear_gelu, skeleton = @split_n_rms {
  @bias = @half_bias_rows  @scale = @halved  @activation = @gelu_of_half
}
