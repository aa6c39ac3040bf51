// Products of a layernorm over weights in 8 bits: see weights_8bits.mlir and few_rows_8bits.mlir. Each block norms its rows
// itself, which takes less than a launch.

include "few_rows_8bits.mlir"

!x_f32 = !cuda_tile.tile<BMxBKxf32>
!stat_1 = !cuda_tile.tile<BMx1xf32>
!columns = !cuda_tile.tile<1xBKxi32>
!inside = !cuda_tile.tile<BMxBKxi1>
!norm_part = !cuda_tile.partition_view<tile=(BK), padding_value = zero, !vector>

fragment @in_f32(%x: !x) -> !x_f32 {
  %value = ftof %x : !x -> !x_f32
  yield %value : !x_f32
}

fragment @mean_of(%sums: !x_f32, %K: !int) -> !stat_1 {
  %sum = call @sum_in_rows<R = BM, BC = BK>(%sums)
  %width = call @width_of<R = BM>(%K)
  %mean = divf %sum, %width : !stat_1
  yield %mean : !stat_1
}

// Adds the squares of how far rows are from their mean; nothing past the last column, where the padding would deviate too.
fragment @add_deviations(%x: !x, %mean: !stat_1, %k: !int, %K: !int, %so_far: !x_f32) -> !x_f32 {
  %value = call @in_f32(%x)
  %means = broadcast %mean : !stat_1 -> !x_f32
  %difference = subf %value, %means : !x_f32
  %BK = constant <i32: BK> : !int
  %first = muli %k, %BK : !int
  %columns = call @columns_from<BC = BK>(%first)
  %inside = call @inside<R = BM, BC = BK>(%columns, %K)
  %nothing = constant <f32: 0.0> : !x_f32
  %deviation = select %inside, %difference, %nothing : !inside, !x_f32
  %next = fma %deviation, %deviation, %so_far : !x_f32
  yield %next : !x_f32
}

// A tile of a norm, as layernorm stores it. Past the last column weight and bias are zeros.
fragment @normed_tile(%x: !x, %mean: !stat_1, %inverse: !stat_1, %weight: !vector, %bias: !vector, %k: !int) -> !x {
  %w_tiles = make_partition_view %weight : !norm_part
  %b_tiles = make_partition_view %bias : !norm_part
  %w, %w_read = call @load_line<BC = BK>(%w_tiles, %k)
  %b, %b_read = call @load_line<BC = BK>(%b_tiles, %k)
  %weights = call @for_each_row<R = BM, BC = BK>(%w)
  %biases = call @for_each_row<R = BM, BC = BK>(%b)
  %value = call @in_f32(%x)
  %means = broadcast %mean : !stat_1 -> !x_f32
  %deviation = subf %value, %means : !x_f32
  %normed = call @normed<R = BM, BC = BK>(%deviation, %inverse, %weights, %biases)
  %rounded = ftof %normed : !x_f32 -> !x
  yield %rounded : !x
}

// The norms of whole rows, in three tiles
fragment @three_normed(%x0: !x, %x1: !x, %x2: !x, %weight: !vector, %bias: !vector, %K: !int, %eps: !real) -> (!x, !x, !x) {
  %k0 = constant <i32: 0> : !int
  %k1 = constant <i32: 1> : !int
  %k2 = constant <i32: 2> : !int
  %value0 = call @in_f32(%x0)
  %value1 = call @in_f32(%x1)
  %value2 = call @in_f32(%x2)
  %sum01 = addf %value0, %value1 : !x_f32
  %sums = addf %sum01, %value2 : !x_f32
  %mean = call @mean_of(%sums, %K)
  %none = constant <f32: 0.0> : !x_f32
  %square0 = call @add_deviations(%x0, %mean, %k0, %K, %none)
  %square1 = call @add_deviations(%x1, %mean, %k1, %K, %square0)
  %squares = call @add_deviations(%x2, %mean, %k2, %K, %square1)
  %variance = call @mean_of(%squares, %K)
  %inverse = call @inverse_deviation<R = BM>(%variance, %eps)
  %n0 = call @normed_tile(%x0, %mean, %inverse, %weight, %bias, %k0)
  %n1 = call @normed_tile(%x1, %mean, %inverse, %weight, %bias, %k1)
  %n2 = call @normed_tile(%x2, %mean, %inverse, %weight, %bias, %k2)
  yield %n0, %n1, %n2 : !x, !x, !x
}

// Rows of any width and number: x is read three times. The hole: `wide`, a tile of the weight in T.
skeleton @normed_rows_over_8bits, skeleton = @over_8bits {
  @ahead(%n, %read) {
    %ready = gdc_wait_tko token = %read -> token
    yield %ready : token
  }
  @product(%x_tiles, %m, %n) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BK = constant <i32: BK> : !int
    %steps = divi %K, %BK signed rounding<positive_inf> : !int
    %none = constant <f32: 0.0> : !x_f32
    %sums = for %k in (%zero to %steps, step %one) : !int iter_values(%so_far = %none) -> (!x_f32) {
      %x, %x_read = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
      %value = call @in_f32(%x)
      %next = addf %so_far, %value : !x_f32
      continue %next : !x_f32
    }
    %mean = call @mean_of(%sums, %K)
    %squares = for %k in (%zero to %steps, step %one) : !int iter_values(%so_far = %none) -> (!x_f32) {
      %x, %x_read = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
      %next = call @add_deviations(%x, %mean, %k, %K, %so_far)
      continue %next : !x_f32
    }
    %variance = call @mean_of(%squares, %K)
    %inverse = call @inverse_deviation<R = BM>(%variance, %eps)
    %empty = constant <f32: 0.0> : !acc_turned
    %turned = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!acc_turned) {
      %x, %x_read = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
      %normed = call @normed_tile(%x, %mean, %inverse, %norm_weight_view, %norm_bias_view, %k)
      %w, %w_read = hole @wide(%weight_view, %n, %k) -> (!w_rows, token)
      %next = call @turned_step(%normed, %w, %acc)
      continue %next : !acc_turned
    }
    %product = call @turned_back(%turned)
    yield %product : !acc
  }
}

// One row of at most 3 BK columns, element by element: see @read_ahead_over_8bits. The hole: `wide`.
skeleton @normed_one_row_over_8bits, skeleton = @read_ahead_over_8bits {
  @multiply(%x_tiles, %m, %k0, %k1, %k2, %w0, %w1, %w2) {
    %x0 = call @one_row_stored(%x_tiles, %m, %k0)
    %x1 = call @one_row_stored(%x_tiles, %m, %k1)
    %x2 = call @one_row_stored(%x_tiles, %m, %k2)
    %n0, %n1, %n2 = call @three_normed(%x0, %x1, %x2, %norm_weight_view, %norm_bias_view, %K, %eps)
    %f0 = call @in_f32(%n0)
    %f1 = call @in_f32(%n1)
    %f2 = call @in_f32(%n2)
    %product = call @one_row_of_three(%f0, %f1, %f2, %w0, %w1, %w2)
    yield %product : !acc
  }
}

// Rows of at most 3 BK columns. The hole: `wide`.
skeleton @normed_ahead_over_8bits, skeleton = @ahead_over_8bits {
  @rows(%x_tiles, %m, %k0, %k1, %k2) {
    %x0, %x1, %x2 = call @three_tiles(%x_tiles, %m, %k0, %k1, %k2)
    %n0, %n1, %n2 = call @three_normed(%x0, %x1, %x2, %norm_weight_view, %norm_bias_view, %K, %eps)
    yield %n0, %n1, %n2 : !x, !x, !x
  }
}

// out = layernorm(x) @ weight.T * scales + bias
kernel @layernorm_linear_weight_f8 op = layernorm_linear_weight_f8, skeleton = @normed_rows_over_8bits {
  @wide = @wide_f8  @value = @scaled_alone
}

kernel @layernorm_linear_weight_f8_one_row op = layernorm_linear_weight_f8, skeleton = @normed_one_row_over_8bits {
  @wide = @wide_f8_directly  @value = @scaled_alone
}

kernel @layernorm_linear_weight_f8_ahead op = layernorm_linear_weight_f8, skeleton = @normed_ahead_over_8bits {
  @wide = @wide_f8  @value = @scaled_alone
}

// out = gelu of it
kernel @layernorm_linear_gelu_weight_f8 op = layernorm_linear_gelu_weight_f8, skeleton = @normed_rows_over_8bits {
  @wide = @wide_f8  @value = @scaled_and_activated
}

kernel @layernorm_linear_gelu_weight_f8_one_row op = layernorm_linear_gelu_weight_f8, skeleton = @normed_one_row_over_8bits {
  @wide = @wide_f8_directly  @value = @scaled_and_activated
}

kernel @layernorm_linear_gelu_weight_f8_ahead op = layernorm_linear_gelu_weight_f8, skeleton = @normed_ahead_over_8bits {
  @wide = @wide_f8  @value = @scaled_and_activated
}

// out = layernorm(x) @ weight.T * scales + bias
kernel @layernorm_linear_weight_i8 op = layernorm_linear_weight_i8, skeleton = @normed_rows_over_8bits {
  @wide = @wide_i8  @value = @scaled_alone
}

kernel @layernorm_linear_weight_i8_one_row op = layernorm_linear_weight_i8, skeleton = @normed_one_row_over_8bits {
  @wide = @wide_i8_directly  @value = @scaled_alone
}

kernel @layernorm_linear_weight_i8_ahead op = layernorm_linear_weight_i8, skeleton = @normed_ahead_over_8bits {
  @wide = @wide_i8  @value = @scaled_alone
}

// out = gelu of it
kernel @layernorm_linear_gelu_weight_i8 op = layernorm_linear_gelu_weight_i8, skeleton = @normed_rows_over_8bits {
  @wide = @wide_i8  @value = @scaled_and_activated
}

kernel @layernorm_linear_gelu_weight_i8_one_row op = layernorm_linear_gelu_weight_i8, skeleton = @normed_one_row_over_8bits {
  @wide = @wide_i8_directly  @value = @scaled_and_activated
}

kernel @layernorm_linear_gelu_weight_i8_ahead op = layernorm_linear_gelu_weight_i8, skeleton = @normed_ahead_over_8bits {
  @wide = @wide_i8  @value = @scaled_and_activated
}
