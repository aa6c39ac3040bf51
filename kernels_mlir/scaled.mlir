// Products of 8-bit numbers with a scale for each row of both operands, whatever the numbers are.
//
// Persistent, as persistent.mlir. Both operands are walked along their rows, as the tensor cores take 8 bits.

include "products.mlir"

!scales = !cuda_tile.tensor_view<?xf32, strides=[1]>
!row_scales_part = !cuda_tile.partition_view<tile=(BM), padding_value = zero, !scales>
!column_scales_part = !cuda_tile.partition_view<tile=(BN), padding_value = zero, !scales>

// The holes: `operands` makes views of x and weight; `product` makes the product of their rows m and n over so many steps of K;
// `setup` once a block; `store` gets the scaled product with its bias, and a token of the tile before, and yields the token of
// its store.
skeleton @persistent_scaled_any {
  hole @operands
  %row_scales = make_partition_view %x_scales_view : !row_scales_part
  %column_scales = make_partition_view %weight_scales_view : !column_scales_part
  %bias_tiles = make_partition_view %bias_view : !bias_part
  hole @setup
  %block, %unused_y, %unused_z = get_tile_block_id : !int
  %blocks, %one_y, %one_z = get_num_tile_blocks : !int
  %m_tiles, %n_tiles, %tiles, %steps = call @tiles_of(%M, %N, %K)
  %start = make_token : token
  %end = for %tile in (%block to %tiles, step %blocks) : !int iter_values(%before = %start) -> (token) {
    %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
    %bias, %bias_read = call @load_bias(%bias_tiles, %n)
    %bias_rows = call @bias_rows(%bias)
    %columns, %columns_read = load_view_tko weak %column_scales[%n] : !column_scales_part, !int -> !line, token
    %product = hole @product(%m, %n, %steps) -> !acc
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
skeleton @persistent_scaled, skeleton = @persistent_scaled_any {
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

fragment @gelu_of(%value: !acc) -> !acc {
  %half = constant <f32: 0.5> : !acc
  %halved = mulf %value, %half : !acc
  %activated = call @gelu_of_half(%halved)
  yield %activated : !acc
}

// For `value`: the result as it is, or GELU of it
fragment @scaled_alone(%scaled: !acc, %m: !int, %n: !int, %ready: token) -> (!acc, token) {
  yield %scaled, %ready : !acc, token
}

fragment @scaled_and_activated(%scaled: !acc, %m: !int, %n: !int, %ready: token) -> (!acc, token) {
  %activated = call @gelu_of(%scaled)
  yield %activated, %ready : !acc, token
}
