// Products over weights in 8 bits, whose rows, an output each, have a scale. All else has 16 bits.
//
// A tile of the weight is made wider, which T can without rounding, and is the left operand of the product: tensor cores take
// that one from registers, where it was made. So the product is turned: BN rows of the weight by BM rows of x.

include "matmul.mlir"

sizes BM = 1  // one row, since some kernels take no more

!scales = !cuda_tile.tensor_view<?xf32, strides=[1]>
!scales_part = !cuda_tile.partition_view<tile=(BN), padding_value = zero, !scales>
!f8_matrix = !cuda_tile.tensor_view<?x?xf8E4M3FN, strides=[?,1]>
!i8_matrix = !cuda_tile.tensor_view<?x?xi8, strides=[?,1]>
!f8_part = !cuda_tile.partition_view<tile=(BNxBK), padding_value = zero, !f8_matrix>
!i8_part = !cuda_tile.partition_view<tile=(BNxBK), padding_value = zero, !i8_matrix>
!f8_rows = !cuda_tile.tile<BNxBKxf8E4M3FN>
!i8_rows = !cuda_tile.tile<BNxBKxi8>
!w_rows = !cuda_tile.tile<BNxBKxT>
!x_turned = !cuda_tile.tile<BKxBMxT>
!acc_turned = !cuda_tile.tile<BNxBMxf32>
!x_one = !cuda_tile.tile<1xBKxf32>
!w_f32 = !cuda_tile.tile<BNxBKxf32>

fragment @wide_f8(%weight: !f8_matrix, %n: !int, %k: !int) -> (!w_rows, token) {
  %tiles = make_partition_view %weight : !f8_part
  %tile, %read = load_view_tko weak %tiles[%n, %k] : !f8_part, !int -> !f8_rows, token
  %wide = ftof %tile : !f8_rows -> !w_rows
  yield %wide, %read : !w_rows, token
}

fragment @wide_i8(%weight: !i8_matrix, %n: !int, %k: !int) -> (!w_rows, token) {
  %tiles = make_partition_view %weight : !i8_part
  %tile, %read = load_view_tko weak %tiles[%n, %k] : !i8_part, !int -> !i8_rows, token
  %wide = itof %tile signed : !i8_rows -> !w_rows
  yield %wide, %read : !w_rows, token
}

// The same without the copy engine: each thread gets what it multiplies.
fragment @wide_f8_directly(%weight: !f8_matrix, %n: !int, %k: !int) -> (!w_rows, token) {
  %tiles = make_partition_view %weight : !f8_part
  %tile, %read = load_view_tko weak %tiles[%n, %k] optimization_hints = <default = {allow_tma = false}>
      : !f8_part, !int -> !f8_rows, token
  %wide = ftof %tile : !f8_rows -> !w_rows
  yield %wide, %read : !w_rows, token
}

fragment @wide_i8_directly(%weight: !i8_matrix, %n: !int, %k: !int) -> (!w_rows, token) {
  %tiles = make_partition_view %weight : !i8_part
  %tile, %read = load_view_tko weak %tiles[%n, %k] optimization_hints = <default = {allow_tma = false}>
      : !i8_part, !int -> !i8_rows, token
  %wide = itof %tile signed : !i8_rows -> !w_rows
  yield %wide, %read : !w_rows, token
}

fragment @turned_step(%x: !x, %w: !w_rows, %acc: !acc_turned) -> !acc_turned {
  %x_turned = permute %x [1, 0] : !x -> !x_turned
  %next = mmaf %w, %x_turned, %acc : !w_rows, !x_turned, !acc_turned
  yield %next : !acc_turned
}

fragment @turned_back(%product: !acc_turned) -> !acc {
  %rows = permute %product [1, 0] : !acc_turned -> !acc
  yield %rows : !acc
}

// BK columns of one row of x
fragment @one_row_stored(%x_tiles: !x_part, %m: !int, %k: !int) -> !x {
  %x, %token = load_view_tko weak %x_tiles[%m, %k] optimization_hints = <default = {allow_tma = false}>
      : !x_part, !int -> !x, token
  yield %x : !x
}

fragment @one_row(%x_tiles: !x_part, %m: !int, %k: !int) -> !x_one {
  %x = call @one_row_stored(%x_tiles, %m, %k)
  %x_f32 = ftof %x : !x -> !x_one
  yield %x_f32 : !x_one
}

fragment @one_row_step(%x: !x_one, %w: !w_rows, %total: !w_f32) -> !w_f32 {
  %x_full = broadcast %x : !x_one -> !w_f32
  %w_f32 = ftof %w : !w_rows -> !w_f32
  %next = fma %x_full, %w_f32, %total : !w_f32
  yield %next : !w_f32
}

// The products of one row of x with the rows of the weight, of which three tiles were read ahead
fragment @one_row_product(%x_tiles: !x_part, %m: !int, %w0: !w_rows, %w1: !w_rows, %w2: !w_rows) -> !acc {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %two = constant <i32: 2> : !int
  %x0 = call @one_row(%x_tiles, %m, %zero)
  %x1 = call @one_row(%x_tiles, %m, %one)
  %x2 = call @one_row(%x_tiles, %m, %two)
  %product = call @one_row_of_three(%x0, %x1, %x2, %w0, %w1, %w2)
  yield %product : !acc
}

fragment @one_row_of_three(%x0: !x_one, %x1: !x_one, %x2: !x_one, %w0: !w_rows, %w1: !w_rows, %w2: !w_rows) -> !acc {
  %none = constant <f32: 0.0> : !w_f32
  %total0 = call @one_row_step(%x0, %w0, %none)
  %total1 = call @one_row_step(%x1, %w1, %total0)
  %total2 = call @one_row_step(%x2, %w2, %total1)
  %sums = call @row_sums<R = BN, BC = BK>(%total2)
  %product = reshape %sums : !line -> !acc
  yield %product : !acc
}

// The scales of a tile's columns
fragment @load_scales(%tiles: !scales_part, %n: !int) -> (!acc, token) {
  %line, %read = load_view_tko weak %tiles[%n] optimization_hints = <default = {allow_tma = false}>
      : !scales_part, !int -> !line, token
  %line_1 = reshape %line : !line -> !line_1
  %scales = broadcast %line_1 : !line_1 -> !acc
  yield %scales, %read : !acc, token
}

// One weight. The holes: `ahead` reads what it can, then waits; `product` comes after that; `setup` and `value` are the
// epilogue's, which gets the scaled product with its bias, and yields the result and a token of what it read.
skeleton @over_8bits {
  %x_tiles = make_partition_view %x_view : !x_part
  %scale_tiles = make_partition_view %weight_scales_view : !scales_part
  %bias_tiles = make_partition_view %bias_view : !bias_part
  hole @setup
  %out_tiles = make_partition_view %out_view : !out_part
  %n, %m, %unused = get_tile_block_id : !int
  %scales, %scales_read = call @load_scales(%scale_tiles, %n)
  %bias, %bias_read = call @load_bias_directly(%bias_tiles, %n)
  %bias_rows = call @bias_rows(%bias)
  %small_read = join_tokens %scales_read, %bias_read : token
  %ready = hole @ahead(%n, %small_read) -> token
  %product = hole @product(%x_tiles, %m, %n) -> !acc
  %scaled = fma %product, %scales, %bias_rows : !acc
  %value, %before = hole @value(%scaled, %m, %n, %ready) -> (!acc, token)
  %stored = call @store_directly(%value, %out_tiles, %m, %n, %before)
  return
}

// Any number of rows, with tensor cores. The hole: `wide`, a tile of the weight in T.
skeleton @rows_over_8bits, skeleton = @over_8bits {
  @ahead(%n, %read) {
    %ready = gdc_wait_tko token = %read -> token
    yield %ready : token
  }
  @product(%x_tiles, %m, %n) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BK = constant <i32: BK> : !int
    %steps = divi %K, %BK signed rounding<positive_inf> : !int
    %empty = constant <f32: 0.0> : !acc_turned
    %turned = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!acc_turned) {
      %x, %x_read = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
      %w, %w_read = hole @wide(%weight_view, %n, %k) -> (!w_rows, token)
      %next = call @turned_step(%x, %w, %acc)
      continue %next : !acc_turned
    }
    %product = call @turned_back(%turned)
    yield %product : !acc
  }
}

// One row of at most 3 BK columns, element by element: all of the weight is read ahead. The hole: `multiply`.
skeleton @read_ahead_over_8bits, skeleton = @over_8bits {
  @ahead(%n, %read) {
    %k0 = constant <i32: 0> : !int
    %k1 = constant <i32: 1> : !int
    %k2 = constant <i32: 2> : !int
    %w0, %t0 = hole @wide(%weight_view, %n, %k0) -> (!w_rows, token)
    %w1, %t1 = hole @wide(%weight_view, %n, %k1) -> (!w_rows, token)
    %w2, %t2 = hole @wide(%weight_view, %n, %k2) -> (!w_rows, token)
    %all_read = join_tokens %read, %t0, %t1, %t2 : token
    %ready = gdc_wait_tko token = %all_read -> token
    yield %ready : token
  }
  @product(%x_tiles, %m, %n) {
    %product = hole @multiply(%x_tiles, %m, %k0, %k1, %k2, %w0, %w1, %w2) -> !acc
    yield %product : !acc
  }
}

skeleton @one_row_over_8bits, skeleton = @read_ahead_over_8bits {
  @multiply(%x_tiles, %m, %k0, %k1, %k2, %w0, %w1, %w2) {
    %product = call @one_row_product(%x_tiles, %m, %w0, %w1, %w2)
    yield %product : !acc
  }
}

// SwiGLU: two weights, gate and up, without biases. The holes are those of @over_8bits.
skeleton @pair_over_8bits {
  %x_tiles = make_partition_view %x_view : !x_part
  %gate_scale_tiles = make_partition_view %gate_scales_view : !scales_part
  %up_scale_tiles = make_partition_view %up_scales_view : !scales_part
  %out_tiles = make_partition_view %out_view : !out_part
  %n, %m, %unused = get_tile_block_id : !int
  %gate_scales, %gate_read = call @load_scales(%gate_scale_tiles, %n)
  %up_scales, %up_read = call @load_scales(%up_scale_tiles, %n)
  %scales_read = join_tokens %gate_read, %up_read : token
  %ready = hole @ahead(%n, %scales_read) -> token
  %gate, %up = hole @products(%x_tiles, %m, %n) -> (!acc, !acc)
  %gate_scaled = mulf %gate, %gate_scales : !acc
  %up_scaled = mulf %up, %up_scales : !acc
  %value = call @gated(%gate_scaled, %up_scaled)
  %stored = call @store_directly(%value, %out_tiles, %m, %n, %ready)
  return
}

skeleton @rows_pair_over_8bits, skeleton = @pair_over_8bits {
  @ahead(%n, %read) {
    %ready = gdc_wait_tko token = %read -> token
    yield %ready : token
  }
  @products(%x_tiles, %m, %n) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BK = constant <i32: BK> : !int
    %steps = divi %K, %BK signed rounding<positive_inf> : !int
    %empty = constant <f32: 0.0> : !acc_turned
    %gate_turned, %up_turned = for %k in (%zero to %steps, step %one) : !int
        iter_values(%gate_acc = %empty, %up_acc = %empty) -> (!acc_turned, !acc_turned) {
      %x, %x_read = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
      %g, %g_read = hole @wide(%gate_view, %n, %k) -> (!w_rows, token)
      %u, %u_read = hole @wide(%up_view, %n, %k) -> (!w_rows, token)
      %gate_next = call @turned_step(%x, %g, %gate_acc)
      %up_next = call @turned_step(%x, %u, %up_acc)
      continue %gate_next, %up_next : !acc_turned, !acc_turned
    }
    %gate = call @turned_back(%gate_turned)
    %up = call @turned_back(%up_turned)
    yield %gate, %up : !acc, !acc
  }
}

skeleton @one_row_pair_over_8bits, skeleton = @pair_over_8bits {
  @ahead(%n, %read) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %two = constant <i32: 2> : !int
    %g0, %g0_read = hole @wide(%gate_view, %n, %zero) -> (!w_rows, token)
    %g1, %g1_read = hole @wide(%gate_view, %n, %one) -> (!w_rows, token)
    %g2, %g2_read = hole @wide(%gate_view, %n, %two) -> (!w_rows, token)
    %u0, %u0_read = hole @wide(%up_view, %n, %zero) -> (!w_rows, token)
    %u1, %u1_read = hole @wide(%up_view, %n, %one) -> (!w_rows, token)
    %u2, %u2_read = hole @wide(%up_view, %n, %two) -> (!w_rows, token)
    %all_read = join_tokens %read, %g0_read, %g1_read, %g2_read, %u0_read, %u1_read, %u2_read : token
    %ready = gdc_wait_tko token = %all_read -> token
    yield %ready : token
  }
  @products(%x_tiles, %m, %n) {
    %gate = call @one_row_product(%x_tiles, %m, %g0, %g1, %g2)
    %up = call @one_row_product(%x_tiles, %m, %u0, %u1, %u2)
    yield %gate, %up : !acc, !acc
  }
}

// With a residual, which may be the output itself
skeleton @rows_added, skeleton = @rows_over_8bits {
  @setup { %residual_tiles = make_partition_view %residual_view : !residual_part }
  @value(%scaled, %m, %n, %ready) {
    %residual, %read = call @load_residual_directly(%residual_tiles, %m, %n)
    %sum = call @add_residual(%scaled, %residual)
    yield %sum, %read : !acc, token
  }
}

skeleton @one_row_added, skeleton = @one_row_over_8bits {
  @setup { %residual_tiles = make_partition_view %residual_view : !residual_part }
  @value(%scaled, %m, %n, %ready) {
    %residual, %read = call @load_residual_directly(%residual_tiles, %m, %n)
    %sum = call @add_residual(%scaled, %residual)
    yield %sum, %read : !acc, token
  }
}

skeleton @rows_over_f8, skeleton = @rows_over_8bits { @wide = @wide_f8 }
skeleton @one_row_over_f8, skeleton = @one_row_over_8bits { @wide = @wide_f8_directly }
skeleton @rows_over_i8, skeleton = @rows_over_8bits { @wide = @wide_i8 }
skeleton @one_row_over_i8, skeleton = @one_row_over_8bits { @wide = @wide_i8_directly }

// out = x @ weight.T * scales + bias
kernel @linear_weight_f8 op = linear_weight_f8, skeleton = @rows_over_f8 { @value = @scaled_alone }

// out = gelu of it
kernel @linear_gelu_weight_f8 op = linear_gelu_weight_f8, skeleton = @rows_over_f8 { @value = @scaled_and_activated }

// out = residual + it
kernel @linear_residual_weight_f8 op = linear_residual_weight_f8, skeleton = @rows_added { @wide = @wide_f8 }

// out = silu(x @ gate.T) * (x @ up.T), each with its scales
kernel @swiglu_weight_f8 op = swiglu_weight_f8, skeleton = @rows_pair_over_8bits { @wide = @wide_f8 }

// out = x @ weight.T * scales + bias
kernel @linear_weight_f8_one_row op = linear_weight_f8, skeleton = @one_row_over_f8 { @value = @scaled_alone }

// out = gelu of it
kernel @linear_gelu_weight_f8_one_row op = linear_gelu_weight_f8, skeleton = @one_row_over_f8 { @value = @scaled_and_activated }

// out = residual + it
kernel @linear_residual_weight_f8_one_row op = linear_residual_weight_f8, skeleton = @one_row_added { @wide = @wide_f8_directly }

// out = silu(x @ gate.T) * (x @ up.T), each with its scales
kernel @swiglu_weight_f8_one_row op = swiglu_weight_f8, skeleton = @one_row_pair_over_8bits { @wide = @wide_f8_directly }

// out = x @ weight.T * scales + bias
kernel @linear_weight_i8 op = linear_weight_i8, skeleton = @rows_over_i8 { @value = @scaled_alone }

// out = gelu of it
kernel @linear_gelu_weight_i8 op = linear_gelu_weight_i8, skeleton = @rows_over_i8 { @value = @scaled_and_activated }

// out = residual + it
kernel @linear_residual_weight_i8 op = linear_residual_weight_i8, skeleton = @rows_added { @wide = @wide_i8 }

// out = silu(x @ gate.T) * (x @ up.T), each with its scales
kernel @swiglu_weight_i8 op = swiglu_weight_i8, skeleton = @rows_pair_over_8bits { @wide = @wide_i8 }

// out = x @ weight.T * scales + bias
kernel @linear_weight_i8_one_row op = linear_weight_i8, skeleton = @one_row_over_i8 { @value = @scaled_alone }

// out = gelu of it
kernel @linear_gelu_weight_i8_one_row op = linear_gelu_weight_i8, skeleton = @one_row_over_i8 { @value = @scaled_and_activated }

// out = residual + it
kernel @linear_residual_weight_i8_one_row op = linear_residual_weight_i8, skeleton = @one_row_added { @wide = @wide_i8_directly }

// out = silu(x @ gate.T) * (x @ up.T), each with its scales
kernel @swiglu_weight_i8_one_row op = swiglu_weight_i8, skeleton = @one_row_pair_over_8bits { @wide = @wide_i8_directly }
