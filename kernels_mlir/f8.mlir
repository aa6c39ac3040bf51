// Products of 8-bit floats (e4m3) with a scale for each row of both operands, and the rounding to them.
//
// Persistent, as persistent.mlir. Both operands are walked along their rows, as the tensor cores take 8 bits. Within a step of
// K the tensor cores add up fast, in fewer bits than f32 has; the steps are added up in f32.

include "products.mlir"

!f8_matrix = !cuda_tile.tensor_view<?x?xf8E4M3FN, strides=[?,1]>
!scales = !cuda_tile.tensor_view<?xf32, strides=[1]>
!x8_part = !cuda_tile.partition_view<tile=(BMxBK), padding_value = zero, !f8_matrix>
!w8_part = !cuda_tile.partition_view<tile=(BNxBK), padding_value = zero, !f8_matrix>
!row_scales_part = !cuda_tile.partition_view<tile=(BM), padding_value = zero, !scales>
!column_scales_part = !cuda_tile.partition_view<tile=(BN), padding_value = zero, !scales>
!x8 = !cuda_tile.tile<BMxBKxf8E4M3FN>
!w8_stored = !cuda_tile.tile<BNxBKxf8E4M3FN>
!w8 = !cuda_tile.tile<BKxBNxf8E4M3FN>

!f8_out_part = !cuda_tile.partition_view<tile=(BMxBN), !f8_matrix>
!f8_out = !cuda_tile.tile<BMxBNxf8E4M3FN>

// The hole: `store` gets the scaled product with its bias, and a token of the tile before; it yields the token of its store.
skeleton @persistent_f8_any {
  %x_tiles = make_partition_view %x_view : !x8_part
  %w_tiles = make_partition_view %weight_view : !w8_part
  %row_scales = make_partition_view %x_scales_view : !row_scales_part
  %column_scales = make_partition_view %weight_scales_view : !column_scales_part
  %bias_tiles = make_partition_view %bias_view : !bias_part
  hole @setup
  %block, %unused_y, %unused_z = get_tile_block_id : !int
  %blocks, %one_y, %one_z = get_num_tile_blocks : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BM = constant <i32: BM> : !int
  %BN = constant <i32: BN> : !int
  %BK = constant <i32: BK> : !int
  %m_tiles = divi %M, %BM signed rounding<positive_inf> : !int
  %n_tiles = divi %N, %BN signed rounding<positive_inf> : !int
  %tiles = muli %m_tiles, %n_tiles : !int
  %steps = divi %K, %BK signed rounding<positive_inf> : !int
  %empty = constant <f32: 0.0> : !acc
  %start = make_token : token
  %end = for %tile in (%block to %tiles, step %blocks) : !int iter_values(%before = %start) -> (token) {
    %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
    %bias, %bias_read = call @load_bias(%bias_tiles, %n)
    %bias_rows = call @bias_rows(%bias)
    %columns, %columns_read = load_view_tko weak %column_scales[%n] : !column_scales_part, !int -> !line, token
    %product = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!acc) {
      %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x8_part, !int -> !x8, token
      %w_tile, %w_token = load_view_tko weak %w_tiles[%n, %k] : !w8_part, !int -> !w8_stored, token
      %w_turned = permute %w_tile [1, 0] : !w8_stored -> !w8
      %part = mmaf %x_tile, %w_turned, %empty fast_acc : !x8, !w8, !acc
      %next = addf %acc, %part : !acc
      continue %next : !acc
    }
    %rows, %rows_read = load_view_tko weak %row_scales[%m] : !row_scales_part, !int -> !column, token
    %rows_1 = reshape %rows : !column -> !column_1
    %by_row = broadcast %rows_1 : !column_1 -> !acc
    %columns_1 = reshape %columns : !line -> !line_1
    %by_column = broadcast %columns_1 : !line_1 -> !acc
    %half_scaled = mulf %product, %by_row : !acc
    %scaled = fma %half_scaled, %by_column, %bias_rows : !acc
    %stored = hole @store(%scaled, %m, %n, %before) -> token
    continue %stored : token
  }
  return
}

// With a result in T. The hole: `value` yields the result, and a token of what it read.
skeleton @persistent_f8, skeleton = @persistent_f8_any {
  @setup {
    hole @setup_before
    %out_tiles = make_partition_view %out_view : !out_part
  }
  @store(%scaled, %m, %n, %before) {
    %value, %read = hole @value(%scaled, %m, %n, %before) -> (!acc, token)
    %stored = call @store_after(%value, %out_tiles, %m, %n, %read)
    yield %stored : token
  }
}

// out = (x @ weight.T) * scales + bias
kernel @linear_f8 op = linear_f8, skeleton = @persistent_f8 {
  @value(%scaled, %m, %n, %before) { yield %scaled, %before : !acc, token }
}

// out = gelu(linear_f8)
kernel @linear_gelu_f8 op = linear_gelu_f8, skeleton = @persistent_f8 {
  @value(%scaled, %m, %n, %before) {
    %half = constant <f32: 0.5> : !acc
    %halved = mulf %scaled, %half : !acc
    %activated = call @gelu_of_half(%halved)
    yield %activated, %before : !acc, token
  }
}

// out = gelu(linear_f8) * factors, in 8 bits
kernel @linear_gelu_f8_to_f8 op = linear_gelu_f8_to_f8, skeleton = @persistent_f8_any {
  @setup {
    %out_tiles = make_partition_view %out_view : !f8_out_part
    %factor_tiles = make_partition_view %factors_view : !column_scales_part
  }
  @store(%scaled, %m, %n, %before) {
    %factors, %read = load_view_tko weak %factor_tiles[%n] : !column_scales_part, !int -> !line, token
    %factors_1 = reshape %factors : !line -> !line_1
    %factor = broadcast %factors_1 : !line_1 -> !acc
    %half = constant <f32: 0.5> : !acc
    %halved = mulf %scaled, %half : !acc
    %activated = call @gelu_of_half(%halved)
    %value = mulf %activated, %factor : !acc
    %result = ftof %value : !acc -> !f8_out
    %stored = store_view_tko weak %result, %out_tiles[%m, %n] token = %before : !f8_out, !f8_out_part, !int -> token
    yield %stored : token
  }
}

// out = residual + linear_f8
kernel @linear_residual_f8 op = linear_residual_f8, skeleton = @persistent_f8 {
  @setup_before { %residual_tiles = make_partition_view %residual_view : !residual_part }
  @value(%scaled, %m, %n, %before) {
    %residual, %read = load_view_tko weak %residual_tiles[%m, %n] token = %before : !residual_part, !int -> !out, token
    %sum = call @add_residual(%scaled, %residual)
    yield %sum, %read : !acc, token
  }
}
