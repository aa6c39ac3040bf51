// What matrix products share: the types of their tiles, and the fragments that their skeletons and kernels call.
//
// A tile of the result has BM rows and BN columns; K is walked in steps of BK. Results add up in f32.

include "common.mlir"

sizes BM = 128, BN = 128, BK = 64, BR = 64, GROUP = 8

!x_part = !cuda_tile.partition_view<tile=(BMxBK), padding_value = zero, !matrix>
!w_part = !cuda_tile.partition_view<tile=(BKxBN), padding_value = zero, !matrix>
!bias_part = !cuda_tile.partition_view<tile=(BN), padding_value = zero, !vector>
!residual_part = !cuda_tile.partition_view<tile=(BMxBN), padding_value = zero, !matrix>
!out_part = !cuda_tile.partition_view<tile=(BMxBN), !matrix>
!partial_part = !cuda_tile.partition_view<tile=(1xBMxBN), !parts>
!squares_in_part = !cuda_tile.partition_view<tile=(1xBM), padding_value = zero, !reals>
!squares_out_part = !cuda_tile.partition_view<tile=(1xBM), !reals>

!x = !cuda_tile.tile<BMxBKxT>
!w = !cuda_tile.tile<BKxBNxT>
!bias = !cuda_tile.tile<BNxT>
!out = !cuda_tile.tile<BMxBNxT>
!acc = !cuda_tile.tile<BMxBNxf32>
!partial = !cuda_tile.tile<1xBMxBNxf32>
!line = !cuda_tile.tile<BNxf32>
!line_1 = !cuda_tile.tile<1xBNxf32>
!column = !cuda_tile.tile<BMxf32>
!column_1 = !cuda_tile.tile<BMx1xf32>
!square_1 = !cuda_tile.tile<1xBMxf32>

// How many rows and columns of tiles there are, how many tiles, and how many steps of K
fragment @tiles_of(%M: !int, %N: !int, %K: !int) -> (!int, !int, !int, !int) {
  %BM = constant <i32: BM> : !int
  %BN = constant <i32: BN> : !int
  %BK = constant <i32: BK> : !int
  %m_tiles = divi %M, %BM signed rounding<positive_inf> : !int
  %n_tiles = divi %N, %BN signed rounding<positive_inf> : !int
  %tiles = muli %m_tiles, %n_tiles : !int
  %steps = divi %K, %BK signed rounding<positive_inf> : !int
  yield %m_tiles, %n_tiles, %tiles, %steps : !int, !int, !int, !int
}

// Row and column of a tile. GROUP rows of tiles are made at a time, column by column: tiles made at the same time share
// their inputs in the L2 cache. GROUP = 1 costs one division instead of three; the compiler knows it and keeps one way.
fragment @tile_place(%tile: !int, %m_tiles: !int, %n_tiles: !int) -> (!int, !int) {
  %one = constant <i32: 1> : !int
  %GROUP = constant <i32: GROUP> : !int
  %by_row = cmpi equal %GROUP, %one, signed : !int -> !flag
  %m, %n = if %by_row -> (!int, !int) {
    %m_in_rows = divi %tile, %n_tiles signed : !int
    %n_in_row = remi %tile, %n_tiles signed : !int
    yield %m_in_rows, %n_in_row : !int, !int
  } else {
    %span = muli %GROUP, %n_tiles : !int
    %group = divi %tile, %span signed : !int
    %in_group = remi %tile, %span signed : !int
    %m_first = muli %group, %GROUP : !int
    %m_left = subi %m_tiles, %m_first : !int
    %rows = mini %m_left, %GROUP signed : !int
    %row = remi %in_group, %rows signed : !int
    %m_in_group = addi %m_first, %row : !int
    %n_in_group = divi %in_group, %rows signed : !int
    yield %m_in_group, %n_in_group : !int, !int
  }
  yield %m, %n : !int, !int
}

// Loads, stores and steps of K

fragment @load_bias(%tiles: !bias_part, %n: !int) -> (!bias, token) {
  %bias, %read = load_view_tko weak %tiles[%n] : !bias_part, !int -> !bias, token
  yield %bias, %read : !bias, token
}

fragment @step(%x_tiles: !x_part, %w_tiles: !w_part, %m: !int, %n: !int, %k: !int, %acc: !acc) -> !acc {
  %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
  %w_tile, %w_token = load_view_tko weak %w_tiles[%k, %n] : !w_part, !int -> !w, token
  %next = mmaf %x_tile, %w_tile, %acc : !x, !w, !acc
  yield %next : !acc
}

fragment @store(%value: !acc, %tiles: !out_part, %m: !int, %n: !int) {
  %result = ftof %value : !acc -> !out
  %stored = store_view_tko weak %result, %tiles[%m, %n] : !out, !out_part, !int -> token
}

fragment @store_after(%value: !acc, %tiles: !out_part, %m: !int, %n: !int, %before: token) -> token {
  %result = ftof %value : !acc -> !out
  %stored = store_view_tko weak %result, %tiles[%m, %n] token = %before : !out, !out_part, !int -> token
  yield %stored : token
}

// Prologues

// Each row of a tile gets the bias of its columns.
fragment @bias_rows(%bias: !bias) -> !acc {
  %bias_f32 = ftof %bias : !bias -> !line
  %row = reshape %bias_f32 : !line -> !line_1
  %rows = broadcast %row : !line_1 -> !acc
  yield %rows : !acc
}

// The same of half the bias: GELU works on x / 2.
fragment @half_bias_rows(%bias: !bias) -> !acc {
  %half = constant <f32: 0.5> : !line
  %bias_f32 = ftof %bias : !bias -> !line
  %halved = mulf %bias_f32, %half : !line
  %row = reshape %halved : !line -> !line_1
  %rows = broadcast %row : !line_1 -> !acc
  yield %rows : !acc
}

// For `sum_of_parts` and `inverse_rms`, made once a block: steps of four parts, 1 / K and eps for each row
fragment @rms_constants(%Z: !int, %K: !int, %eps: !real) -> (!int, !column, !column) {
  %four = constant <i32: 4> : !int
  %steps = divi %Z, %four signed rounding<positive_inf> : !int
  %K_f32 = itof %K signed : !int -> !real
  %one = constant <f32: 1.0> : !real
  %unit = divf %one, %K_f32 : !real
  %unit_1 = reshape %unit : !real -> !real_1
  %units = broadcast %unit_1 : !real_1 -> !column
  %eps_1 = reshape %eps : !real -> !real_1
  %epsilons = broadcast %eps_1 : !real_1 -> !column
  yield %steps, %units, %epsilons : !int, !column, !column
}

// 1 / sqrt(sum of squares / K + eps), for each row
fragment @inverse_rms(%sum_of_squares: !column, %units: !column, %epsilons: !column) -> !column {
  %mean_square = mulf %sum_of_squares, %units : !column
  %shifted = addf %mean_square, %epsilons : !column
  %inverse = rsqrt %shifted : !column
  yield %inverse : !column
}

// A row's sum of squares from its parts, four a step: past the last part there are zeros.
fragment @sum_of_parts(%squares: !squares_in_part, %m: !int, %steps: !int) -> !column {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %four = constant <i32: 4> : !int
  %none = constant <f32: 0.0> : !column
  %total = for %step in (%zero to %steps, step %one) : !int iter_values(%sum = %none) -> (!column) {
    %z0 = muli %four, %step : !int
    %z1 = addi %z0, %one : !int
    %z2 = addi %z1, %one : !int
    %z3 = addi %z2, %one : !int
    %part0, %t0 = load_view_tko weak %squares[%z0, %m] : !squares_in_part, !int -> !square_1, token
    %part1, %t1 = load_view_tko weak %squares[%z1, %m] : !squares_in_part, !int -> !square_1, token
    %part2, %t2 = load_view_tko weak %squares[%z2, %m] : !squares_in_part, !int -> !square_1, token
    %part3, %t3 = load_view_tko weak %squares[%z3, %m] : !squares_in_part, !int -> !square_1, token
    %column0 = reshape %part0 : !square_1 -> !column
    %sum0 = addf %sum, %column0 : !column
    %column1 = reshape %part1 : !square_1 -> !column
    %sum1 = addf %sum0, %column1 : !column
    %column2 = reshape %part2 : !square_1 -> !column
    %sum2 = addf %sum1, %column2 : !column
    %column3 = reshape %part3 : !square_1 -> !column
    %sum3 = addf %sum2, %column3 : !column
    continue %sum3 : !column
  }
  yield %total : !column
}

// Epilogues

// gelu(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = h + h tanh(h (linear + cubic h^2)) with h = x/2. The GPU's own
// tanh is good to 2^-11, which is enough for 16 bits; entries of f32 get the full one (pass `full-tanh`).
fragment @gelu_of_half(%h: !acc) -> !acc {
  %cubic = constant <f32: 0.285419265090401> : !acc
  %linear = constant <f32: 1.5957691216057308> : !acc
  %square = mulf %h, %h : !acc
  %slope = fma %cubic, %square, %linear : !acc
  %inner = mulf %h, %slope : !acc
  %tanh = tanh %inner rounding<approx> : !acc
  %gelu = fma %h, %tanh, %h : !acc
  yield %gelu : !acc
}

fragment @add_bias(%product: !acc, %bias: !acc) -> !acc {
  %biased = addf %product, %bias : !acc
  yield %biased : !acc
}

// gelu(product + bias) from half the bias
fragment @gelu(%product: !acc, %half_bias: !acc) -> !acc {
  %half = constant <f32: 0.5> : !acc
  %h = fma %half, %product, %half_bias : !acc
  %gelu = call @gelu_of_half(%h)
  yield %gelu : !acc
}

// product * scale + bias, with one scale for each row
fragment @scale_rows(%product: !acc, %scale: !column, %bias: !acc) -> !acc {
  %scale_1 = reshape %scale : !column -> !column_1
  %scales = broadcast %scale_1 : !column_1 -> !acc
  %scaled = fma %product, %scales, %bias : !acc
  yield %scaled : !acc
}

fragment @halved(%column: !column) -> !column {
  %half = constant <f32: 0.5> : !column
  %halved = mulf %half, %column : !column
  yield %halved : !column
}

fragment @unscaled(%column: !column) -> !column { yield %column : !column }

fragment @identity(%value: !acc) -> !acc { yield %value : !acc }

fragment @add_residual(%value: !acc, %residual: !out) -> !acc {
  %residual_f32 = ftof %residual : !out -> !acc
  %sum = addf %value, %residual_f32 : !acc
  yield %sum : !acc
}

fragment @rounded(%value: !acc) -> !out {
  %result = ftof %value : !acc -> !out
  yield %result : !out
}

// The sum of squares of each row. The plain sum costs nothing and decides how the compiler arranges the products before it:
// without it they wait for one another.
fragment @row_squares(%value: !acc) -> !column {
  %plain, %sum = call @sums_and_squares<R = BM, BC = BN>(%value)
  yield %sum : !column
}

fragment @row_squares_alone(%value: !acc) -> !column {
  %square = mulf %value, %value : !acc
  %sum = call @row_sums<R = BM, BC = BN>(%square)
  yield %sum : !column
}
