// Products of 8-bit integers. Their sums are exact, in 32 bits.

include "scaled.mlir"

!i8_matrix = !cuda_tile.tensor_view<?x?xi8, strides=[?,1]>
!x_i8_part = !cuda_tile.partition_view<tile=(BMxBK), padding_value = zero, !i8_matrix>
!w_i8_part = !cuda_tile.partition_view<tile=(BNxBK), padding_value = zero, !i8_matrix>
!x_i8 = !cuda_tile.tile<BMxBKxi8>
!w_i8_stored = !cuda_tile.tile<BNxBKxi8>
!w_i8 = !cuda_tile.tile<BKxBNxi8>
!sums = !cuda_tile.tile<BMxBNxi32>

skeleton @persistent_i8, skeleton = @persistent_scaled {
  @operands {
    %x_tiles = make_partition_view %x_view : !x_i8_part
    %w_tiles = make_partition_view %weight_view : !w_i8_part
  }
  @product(%m, %n, %steps) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %empty = constant <i32: 0> : !sums
    %sums = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!sums) {
      %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_i8_part, !int -> !x_i8, token
      %w_tile, %w_token = load_view_tko weak %w_tiles[%n, %k] : !w_i8_part, !int -> !w_i8_stored, token
      %w_turned = permute %w_tile [1, 0] : !w_i8_stored -> !w_i8
      %next = mmai %x_tile, %w_turned, %acc signed signed : !x_i8, !w_i8, !sums
      continue %next : !sums
    }
    %product = itof %sums signed : !sums -> !acc
    yield %product : !acc
  }
}

// out = (x @ weight.T) * scales + bias
kernel @linear_i8 op = linear_i8, skeleton = @persistent_i8 { @value = @scaled_alone }

// out = gelu(linear_i8)
kernel @linear_gelu_i8 op = linear_gelu_i8, skeleton = @persistent_i8 { @value = @scaled_and_activated }

// out = residual + linear_i8
kernel @linear_residual_i8 op = linear_residual_i8, skeleton = @persistent_i8 {
  @setup_before { %residual_tiles = make_partition_view %residual_view : !residual_part }
  @value(%scaled, %m, %n, %before) {
    %residual, %read = load_view_tko weak %residual_tiles[%m, %n] token = %before : !residual_part, !int -> !out, token
    %sum = call @add_residual(%scaled, %residual)
    yield %sum, %read : !acc, token
  }
}
