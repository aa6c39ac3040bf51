// Products of 8-bit floats (e4m3). The tensor cores add up fast, in fewer bits than f32 has: over a step of K, over a run of
// RUN steps, or over the whole of a K that is not long. The sums of steps or runs are added up in f32. That takes a second
// accumulator, so a tile is smaller.

include "scaled.mlir"

sizes RUN = 8

!f8_matrix = !cuda_tile.tensor_view<?x?xf8E4M3FN, strides=[?,1]>
!x8_part = !cuda_tile.partition_view<tile=(BMxBK), padding_value = zero, !f8_matrix>
!w8_part = !cuda_tile.partition_view<tile=(BNxBK), padding_value = zero, !f8_matrix>
!x8 = !cuda_tile.tile<BMxBKxf8E4M3FN>
!w8_stored = !cuda_tile.tile<BNxBKxf8E4M3FN>
!w8 = !cuda_tile.tile<BKxBNxf8E4M3FN>

!f8_out_part = !cuda_tile.partition_view<tile=(BMxBN), !f8_matrix>
!f8_out = !cuda_tile.tile<BMxBNxf8E4M3FN>

fragment @f8_product(%x_tiles: !x8_part, %w_tiles: !w8_part, %m: !int, %n: !int, %steps: !int) -> !acc {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %empty = constant <f32: 0.0> : !acc
  %product = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!acc) {
    %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x8_part, !int -> !x8, token
    %w_tile, %w_token = load_view_tko weak %w_tiles[%n, %k] : !w8_part, !int -> !w8_stored, token
    %w_turned = permute %w_tile [1, 0] : !w8_stored -> !w8
    %part = mmaf %x_tile, %w_turned, %empty fast_acc : !x8, !w8, !acc
    %next = addf %acc, %part : !acc
    continue %next : !acc
  }
  yield %product : !acc
}

// The same, where the tensor cores add up all of K.
fragment @f8_whole_product(%x_tiles: !x8_part, %w_tiles: !w8_part, %m: !int, %n: !int, %steps: !int) -> !acc {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %empty = constant <f32: 0.0> : !acc
  %product = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!acc) {
    %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x8_part, !int -> !x8, token
    %w_tile, %w_token = load_view_tko weak %w_tiles[%n, %k] : !w8_part, !int -> !w8_stored, token
    %w_turned = permute %w_tile [1, 0] : !w8_stored -> !w8
    %next = mmaf %x_tile, %w_turned, %acc fast_acc : !x8, !w8, !acc
    continue %next : !acc
  }
  yield %product : !acc
}

// The same, where the sums of runs are added up.
fragment @f8_product_in_runs(%x_tiles: !x8_part, %w_tiles: !w8_part, %m: !int, %n: !int, %steps: !int) -> !acc {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %run = constant <i32: RUN> : !int
  %empty = constant <f32: 0.0> : !acc
  %product = for %first in (%zero to %steps, step %run) : !int iter_values(%acc = %empty) -> (!acc) {
    %behind = addi %first, %run : !int
    %end = mini %behind, %steps signed : !int
    %part = for %k in (%first to %end, step %one) : !int iter_values(%sum = %empty) -> (!acc) {
      %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x8_part, !int -> !x8, token
      %w_tile, %w_token = load_view_tko weak %w_tiles[%n, %k] : !w8_part, !int -> !w8_stored, token
      %w_turned = permute %w_tile [1, 0] : !w8_stored -> !w8
      %next = mmaf %x_tile, %w_turned, %sum fast_acc : !x8, !w8, !acc
      continue %next : !acc
    }
    %both = addf %acc, %part : !acc
    continue %both : !acc
  }
  yield %product : !acc
}

// Products of f8 in T. The hole: `sum`, over all steps of K.
skeleton @persistent_f8, skeleton = @persistent_scaled {
  @operands {
    %x_tiles = make_partition_view %x_view : !x8_part
    %w_tiles = make_partition_view %weight_view : !w8_part
  }
  @product(%m, %n, %steps) {
    %product = hole @sum(%x_tiles, %w_tiles, %m, %n, %steps) -> !acc
    yield %product : !acc
  }
}

skeleton @residual_f8, skeleton = @persistent_f8 {
  @setup_before { %residual_tiles = make_partition_view %residual_view : !residual_part }
  @value(%scaled, %m, %n, %before) {
    %residual, %read = load_view_tko weak %residual_tiles[%m, %n] token = %before : !residual_part, !int -> !out, token
    %sum = call @add_residual(%scaled, %residual)
    yield %sum, %read : !acc, token
  }
}

fragment @factored(%scaled: !acc, %factor_tiles: !column_scales_part, %n: !int) -> !f8_out {
  %factors, %read = load_view_tko weak %factor_tiles[%n] : !column_scales_part, !int -> !line, token
  %factors_1 = reshape %factors : !line -> !line_1
  %factor = broadcast %factors_1 : !line_1 -> !acc
  %activated = call @gelu_of(%scaled)
  %value = mulf %activated, %factor : !acc
  %result = ftof %value : !acc -> !f8_out
  yield %result : !f8_out
}

// GELU of products, times factors, in 8 bits. The hole: `sum`.
skeleton @factored_f8, skeleton = @persistent_scaled_any {
  @operands {
    %x_tiles = make_partition_view %x_view : !x8_part
    %w_tiles = make_partition_view %weight_view : !w8_part
  }
  @product(%m, %n, %steps) {
    %product = hole @sum(%x_tiles, %w_tiles, %m, %n, %steps) -> !acc
    yield %product : !acc
  }
  @setup {
    %out_tiles = make_partition_view %out_view : !f8_out_part
    %factor_tiles = make_partition_view %factors_view : !column_scales_part
  }
  @store(%scaled, %m, %n, %before) {
    %result = call @factored(%scaled, %factor_tiles, %n)
    %stored = store_view_tko weak %result, %out_tiles[%m, %n] token = %before : !f8_out, !f8_out_part, !int -> token
    yield %stored : token
  }
}

// out = (x @ weight.T) * scales + bias
kernel @linear_f8 op = linear_f8, skeleton = @persistent_f8 { @sum = @f8_product  @value = @scaled_alone }

kernel @linear_f8_whole op = linear_f8, skeleton = @persistent_f8 { @sum = @f8_whole_product  @value = @scaled_alone }

// out = gelu(linear_f8)
kernel @linear_gelu_f8 op = linear_gelu_f8, skeleton = @persistent_f8 { @sum = @f8_product  @value = @scaled_and_activated }

kernel @linear_gelu_f8_whole op = linear_gelu_f8, skeleton = @persistent_f8 {
  @sum = @f8_whole_product  @value = @scaled_and_activated
}

// out = gelu(linear_f8) * factors, in 8 bits
kernel @linear_gelu_f8_to_f8 op = linear_gelu_f8_to_f8, skeleton = @factored_f8 { @sum = @f8_product }

kernel @linear_gelu_f8_to_f8_whole op = linear_gelu_f8_to_f8, skeleton = @factored_f8 { @sum = @f8_whole_product }

// out = residual + linear_f8
kernel @linear_residual_f8 op = linear_residual_f8, skeleton = @residual_f8 { @sum = @f8_product }

kernel @linear_residual_f8_whole op = linear_residual_f8, skeleton = @residual_f8 { @sum = @f8_whole_product }

kernel @linear_residual_f8_in_runs op = linear_residual_f8, skeleton = @residual_f8 { @sum = @f8_product_in_runs }
