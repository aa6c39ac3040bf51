// Products of few rows and at most 3 BK columns. Reading the weight is most of the work, so a block reads all that it needs
// of it, three tiles of BK rows, before it waits for the launches before this one: they arrive while those still run (a PDL
// prologue). Past the end of K x and the weight are zeros, so that a shorter K costs no branch. One block makes one tile.

include "products.mlir"

sizes BM = 1, PARTS = 16  // one row, since some kernels take no more

!x_swapped = !cuda_tile.tile<BKxBMxT>
!w_swapped = !cuda_tile.tile<BNxBKxT>
!acc_swapped = !cuda_tile.tile<BNxBMxf32>
!x_f32 = !cuda_tile.tile<BMxBKxf32>
!x_column = !cuda_tile.tile<BKx1xf32>
!w_f32 = !cuda_tile.tile<BKxBNxf32>
!squares_at_once = !cuda_tile.partition_view<tile=(PARTSxBM), padding_value = zero, !reals>
!squares_parts = !cuda_tile.tile<PARTSxBMxf32>

// Three tiles of the weight, and the tokens of their loads
fragment @load_weight(%w_tiles: !w_part, %k0: !int, %k1: !int, %k2: !int, %n: !int) -> (!w, !w, !w, token, token, token) {
  %w0, %t0 = load_view_tko weak %w_tiles[%k0, %n] : !w_part, !int -> !w, token
  %w1, %t1 = load_view_tko weak %w_tiles[%k1, %n] : !w_part, !int -> !w, token
  %w2, %t2 = load_view_tko weak %w_tiles[%k2, %n] : !w_part, !int -> !w, token
  yield %w0, %w1, %w2, %t0, %t1, %t2 : !w, !w, !w, token, token, token
}

// The same without the copy engine: each thread gets what it multiplies.
fragment @load_weight_directly(%w_tiles: !w_part, %k0: !int, %k1: !int, %k2: !int, %n: !int)
    -> (!w, !w, !w, token, token, token) {
  %w0, %t0 = load_view_tko weak %w_tiles[%k0, %n] optimization_hints = <default = {allow_tma = false}>
      : !w_part, !int -> !w, token
  %w1, %t1 = load_view_tko weak %w_tiles[%k1, %n] optimization_hints = <default = {allow_tma = false}>
      : !w_part, !int -> !w, token
  %w2, %t2 = load_view_tko weak %w_tiles[%k2, %n] optimization_hints = <default = {allow_tma = false}>
      : !w_part, !int -> !w, token
  yield %w0, %w1, %w2, %t0, %t1, %t2 : !w, !w, !w, token, token, token
}

fragment @multiply(%x_tiles: !x_part, %m: !int, %k0: !int, %k1: !int, %k2: !int, %w0: !w, %w1: !w, %w2: !w) -> !acc {
  %empty = constant <f32: 0.0> : !acc
  %x0, %t0 = load_view_tko weak %x_tiles[%m, %k0] : !x_part, !int -> !x, token
  %acc0 = mmaf %x0, %w0, %empty : !x, !w, !acc
  %x1, %t1 = load_view_tko weak %x_tiles[%m, %k1] : !x_part, !int -> !x, token
  %acc1 = mmaf %x1, %w1, %acc0 : !x, !w, !acc
  %x2, %t2 = load_view_tko weak %x_tiles[%m, %k2] : !x_part, !int -> !x, token
  %product = mmaf %x2, %w2, %acc1 : !x, !w, !acc
  yield %product : !acc
}

// Swap-AB: the tensor cores of Hopper make 64 rows at a time. The weight has that many columns where x has fewer rows, so
// the product is made transposed.
fragment @multiply_swapped(%x_tiles: !x_part, %m: !int, %k0: !int, %k1: !int, %k2: !int, %w0: !w, %w1: !w, %w2: !w) -> !acc {
  %empty = constant <f32: 0.0> : !acc_swapped
  %acc0 = call @swapped_step(%x_tiles, %m, %k0, %w0, %empty)
  %acc1 = call @swapped_step(%x_tiles, %m, %k1, %w1, %acc0)
  %columns = call @swapped_step(%x_tiles, %m, %k2, %w2, %acc1)
  %product = permute %columns [1, 0] : !acc_swapped -> !acc
  yield %product : !acc
}

fragment @swapped_step(%x_tiles: !x_part, %m: !int, %k: !int, %w: !w, %acc: !acc_swapped) -> !acc_swapped {
  %x, %token = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
  %x_swapped = permute %x [1, 0] : !x -> !x_swapped
  %w_swapped = permute %w [1, 0] : !w -> !w_swapped
  %next = mmaf %w_swapped, %x_swapped, %acc : !w_swapped, !x_swapped, !acc_swapped
  yield %next : !acc_swapped
}

// GEMV: one row (BM = 1) is multiplied element by element, and added up over K in the end.
fragment @multiply_one_row(%x_tiles: !x_part, %m: !int, %k0: !int, %k1: !int, %k2: !int, %w0: !w, %w1: !w, %w2: !w) -> !acc {
  %none = constant <f32: 0.0> : !w_f32
  %x0 = call @load_row(%x_tiles, %m, %k0)
  %total0 = call @gemv_step(%x0, %w0, %none)
  %x1 = call @load_row(%x_tiles, %m, %k1)
  %total1 = call @gemv_step(%x1, %w1, %total0)
  %x2 = call @load_row(%x_tiles, %m, %k2)
  %total2 = call @gemv_step(%x2, %w2, %total1)
  %product = call @sum_of_steps(%total2)
  yield %product : !acc
}

// BK columns of one row, as a column in f32
fragment @load_row(%x_tiles: !x_part, %m: !int, %k: !int) -> !x_column {
  %x, %token = load_view_tko weak %x_tiles[%m, %k] optimization_hints = <default = {allow_tma = false}>
      : !x_part, !int -> !x, token
  %x_f32 = ftof %x : !x -> !x_f32
  %column = reshape %x_f32 : !x_f32 -> !x_column
  yield %column : !x_column
}

fragment @gemv_step(%x: !x_column, %w: !w, %total: !w_f32) -> !w_f32 {
  %x_full = broadcast %x : !x_column -> !w_f32
  %w_f32 = ftof %w : !w -> !w_f32
  %next = fma %x_full, %w_f32, %total : !w_f32
  yield %next : !w_f32
}

fragment @sum_of_steps(%total: !w_f32) -> !acc {
  %sums = call @column_sums<R = BK, BC = BN>(%total)
  %product = reshape %sums : !line -> !acc
  yield %product : !acc
}

// 1 / rms of each row, from at most PARTS parts of its squares, read at once: past the last one there are zeros.
fragment @inverse_rms_at_once(%squares: !squares_at_once, %m: !int, %units: !column, %epsilons: !column) -> !column {
  %zero = constant <i32: 0> : !int
  %parts, %token = load_view_tko weak %squares[%zero, %m] optimization_hints = <default = {allow_tma = false}>
      : !squares_at_once, !int -> !squares_parts, token
  %sum = call @column_sums<R = PARTS, BC = BM>(%parts)
  %inverse = call @inverse_rms(%sum, %units, %epsilons)
  yield %inverse : !column
}

// The sum of squares of a tile's rows: a part is one tile wide.
fragment @store_squares(%value: !acc, %squares: !squares_out_part, %m: !int, %n: !int) -> token {
  %sum = call @row_squares_alone(%value)
  %row = reshape %sum : !column -> !square_1
  %stored = store_view_tko weak %row, %squares[%n, %m] optimization_hints = <default = {allow_tma = false}>
      : !square_1, !squares_out_part, !int -> token
  yield %stored : token
}

// Loads and stores of swap-AB kernels, whose tiles are too small for the copy engine
fragment @load_bias_directly(%tiles: !bias_part, %n: !int) -> (!bias, token) {
  %bias, %token = load_view_tko weak %tiles[%n] optimization_hints = <default = {allow_tma = false}>
      : !bias_part, !int -> !bias, token
  yield %bias, %token : !bias, token
}

fragment @load_residual(%tiles: !residual_part, %m: !int, %n: !int) -> (!out, token) {
  %residual, %read = load_view_tko weak %tiles[%m, %n] : !residual_part, !int -> !out, token
  yield %residual, %read : !out, token
}

fragment @load_residual_directly(%tiles: !residual_part, %m: !int, %n: !int) -> (!out, token) {
  %residual, %read = load_view_tko weak %tiles[%m, %n] optimization_hints = <default = {allow_tma = false}>
      : !residual_part, !int -> !out, token
  yield %residual, %read : !out, token
}

fragment @store_directly(%value: !acc, %tiles: !out_part, %m: !int, %n: !int, %before: token) -> token {
  %result = ftof %value : !acc -> !out
  %stored = store_view_tko weak %result, %tiles[%m, %n] token = %before optimization_hints = <default = {allow_tma = false}>
      : !out, !out_part, !int -> token
  yield %stored : token
}

// The wait comes after the reads before it by their tokens: else the compiler may put it first.
fragment @after_all(%t0: token, %t1: token, %t2: token, %bias_read: token) -> token {
  %read = join_tokens %t0, %t1, %t2, %bias_read : token
  yield %read : token
}

// The same by the last one's token: with a token of each they would be made one after the other.
fragment @after_last(%t0: token, %t1: token, %t2: token, %bias_read: token) -> token {
  %read = join_tokens %t2, %bias_read : token
  yield %read : token
}

// The holes of the schedule: `load`, of the weight; `multiply`, plain, swapped or of one row; `reads`, what the wait comes
// after; `load_bias`, `load_residual` and `store`. The others: `setup`; `bias` makes rows of the bias; `behind` comes after the
// wait, `epilogue` after the product.
skeleton @small_m {
  %x_tiles = make_partition_view %x_view : !x_part
  %w_tiles = make_partition_view %weight_view : !w_part
  %bias_tiles = make_partition_view %bias_view : !bias_part
  hole @setup
  %out_tiles = make_partition_view %out_view : !out_part
  %n, %m, %unused = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %two = constant <i32: 2> : !int
  %w0, %w1, %w2, %t0, %t1, %t2 = hole @load(%w_tiles, %zero, %one, %two, %n) -> (!w, !w, !w, token, token, token)
  %bias, %bias_read = hole @load_bias(%bias_tiles, %n) -> (!bias, token)
  %bias_rows = hole @bias(%bias) -> !acc
  %read = hole @reads(%t0, %t1, %t2, %bias_read) -> token
  %ready = gdc_wait_tko token = %read -> token
  hole @behind(%m, %n)
  %product = hole @multiply(%x_tiles, %m, %zero, %one, %two, %w0, %w1, %w2) -> !acc
  hole @epilogue(%product, %bias_rows, %out_tiles, %m, %n, %ready)
  return
}

skeleton @small_m_bias, skeleton = @small_m {
  @epilogue(%product, %bias_rows, %out_tiles, %m, %n, %ready) {
    %value = hole @value(%product, %bias_rows) -> !acc
    %stored = hole @store(%value, %out_tiles, %m, %n, %ready) -> token
  }
}

// The residual is read before the product. `after` gets the result once it is stored.
skeleton @small_m_residual, skeleton = @small_m {
  @setup {
    %residual_tiles = make_partition_view %residual_view : !residual_part
    hole @setup_after
  }
  @behind(%m, %n) { %residual, %residual_read = hole @load_residual(%residual_tiles, %m, %n) -> (!out, token) }
  @epilogue(%product, %bias_rows, %out_tiles, %m, %n, %ready) {
    %biased = addf %product, %bias_rows : !acc
    %value = call @add_residual(%biased, %residual)
    %stored = hole @store(%value, %out_tiles, %m, %n, %residual_read) -> token
    hole @after(%value, %m, %n)
  }
}

skeleton @small_m_residual_squares, skeleton = @small_m_residual {
  @bias = @bias_rows
  @setup_after { %squares_tiles = make_partition_view %squares_view : !squares_out_part }
  @after(%value, %m, %n) { %squares_stored = call @store_squares(%value, %squares_tiles, %m, %n) }
}

// The scale of the rows is made before the product. The holes are those of @persistent_rms.
skeleton @small_m_rms, skeleton = @small_m {
  @setup {
    %squares_tiles = make_partition_view %squares_view : !squares_at_once
    %four_parts, %units, %epsilons = call @rms_constants(%Z, %K, %eps)
  }
  @behind(%m, %n) {
    %inverse = call @inverse_rms_at_once(%squares_tiles, %m, %units, %epsilons)
    %scale = hole @scale(%inverse) -> !column
  }
  @epilogue(%product, %bias_rows, %out_tiles, %m, %n, %ready) {
    %scaled = call @scale_rows(%product, %scale, %bias_rows)
    %value = hole @activation(%scaled) -> !acc
    %stored = hole @store(%value, %out_tiles, %m, %n, %ready) -> token
  }
}

kernel @linear_small_m op = linear, skeleton = @small_m_bias {
  @load = @load_weight  @multiply = @multiply  @reads = @after_all  @load_bias = @load_bias  @store = @store_after
  @bias = @bias_rows  @value = @add_bias
}

kernel @linear_residual_small_m op = linear_residual, skeleton = @small_m_residual {
  @load = @load_weight  @multiply = @multiply  @reads = @after_all
  @load_bias = @load_bias  @load_residual = @load_residual  @store = @store_after
  @bias = @bias_rows
}

kernel @linear_residual_squares_small_m op = linear_residual_squares, skeleton = @small_m_residual_squares {
  @load = @load_weight  @multiply = @multiply  @reads = @after_all
  @load_bias = @load_bias  @load_residual = @load_residual  @store = @store_after
}

kernel @rms_linear_gelu_small_m op = rms_linear_gelu, skeleton = @small_m_rms {
  @load = @load_weight  @multiply = @multiply  @reads = @after_all  @load_bias = @load_bias  @store = @store_after
  @bias = @half_bias_rows  @scale = @halved  @activation = @gelu_of_half
}

kernel @linear_swap_ab op = linear, skeleton = @small_m_bias {
  @load = @load_weight  @multiply = @multiply_swapped  @reads = @after_last
  @load_bias = @load_bias_directly  @store = @store_directly
  @bias = @bias_rows  @value = @add_bias
}

kernel @linear_residual_squares_swap_ab op = linear_residual_squares, skeleton = @small_m_residual_squares {
  @load = @load_weight  @multiply = @multiply_swapped  @reads = @after_last  @load_bias = @load_bias_directly
  @load_residual = @load_residual_directly  @store = @store_directly
}

kernel @rms_linear_gelu_swap_ab op = rms_linear_gelu, skeleton = @small_m_rms {
  @load = @load_weight  @multiply = @multiply_swapped  @reads = @after_last
  @load_bias = @load_bias_directly  @store = @store_directly
  @bias = @half_bias_rows  @scale = @halved  @activation = @gelu_of_half
}

kernel @linear_residual_squares_gemv op = linear_residual_squares, skeleton = @small_m_residual_squares {
  @load = @load_weight_directly  @multiply = @multiply_one_row  @reads = @after_all  @load_bias = @load_bias_directly
  @load_residual = @load_residual_directly  @store = @store_directly
}

kernel @rms_linear_small_m op = rms_linear, skeleton = @small_m_rms {
  @load = @load_weight  @multiply = @multiply  @reads = @after_all  @load_bias = @load_bias  @store = @store_after
  @bias = @bias_rows  @scale = @unscaled  @activation = @identity
}

kernel @rms_linear_gemv op = rms_linear, skeleton = @small_m_rms {
  @load = @load_weight_directly  @multiply = @multiply_one_row  @reads = @after_all
  @load_bias = @load_bias_directly  @store = @store_directly
  @bias = @bias_rows  @scale = @unscaled  @activation = @identity
}
