// Products without a bias, on the schedule of persistent.mlir, and SwiGLU: a product over two weights.

include "products.mlir"

// out = x @ weight
kernel @matmul op = matmul, skeleton = @persistent {
  @epilogue(%product, %out_tiles, %m, %n, %before) {
    call @store(%product, %out_tiles, %m, %n)
    yield %before : token
  }
}

// out = residual + x @ weight, where the residual may be the output itself: it is stored after it is read.
kernel @matmul_residual op = matmul_residual, skeleton = @persistent {
  @setup { %residual_tiles = make_partition_view %residual_view : !residual_part }
  @epilogue(%product, %out_tiles, %m, %n, %before) {
    %residual, %read = load_view_tko weak %residual_tiles[%m, %n] token = %before : !residual_part, !int -> !out, token
    %value = call @add_residual(%product, %residual)
    %stored = call @store_after(%value, %out_tiles, %m, %n, %read)
    yield %stored : token
  }
}

// silu(gate) * up. silu(x) = x / (1 + e^-x) = h + h tanh(h) with h = x/2: as for GELU, the GPU's own tanh is enough for 16
// bits, and entries of f32 get the full one.
fragment @gated(%gate: !acc, %up: !acc) -> !acc {
  %half = constant <f32: 0.5> : !acc
  %h = mulf %gate, %half : !acc
  %tanh = tanh %h rounding<approx> : !acc
  %silu = fma %h, %tanh, %h : !acc
  %gated = mulf %silu, %up : !acc
  yield %gated : !acc
}

// One step of K for both weights
fragment @pair_step(%x_tiles: !x_part, %gate_tiles: !w_part, %up_tiles: !w_part, %m: !int, %n: !int, %k: !int, %gate: !acc,
    %up: !acc) -> (!acc, !acc) {
  %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
  %gate_tile, %gate_token = load_view_tko weak %gate_tiles[%k, %n] : !w_part, !int -> !w, token
  %up_tile, %up_token = load_view_tko weak %up_tiles[%k, %n] : !w_part, !int -> !w, token
  %gate_next = mmaf %x_tile, %gate_tile, %gate : !x, !w, !acc
  %up_next = mmaf %x_tile, %up_tile, %up : !x, !w, !acc
  yield %gate_next, %up_next : !acc, !acc
}

// The same of rows that are scaled first
fragment @gated_rows(%gate: !acc, %up: !acc, %scale: !column) -> !acc {
  %scale_1 = reshape %scale : !column -> !column_1
  %scales = broadcast %scale_1 : !column_1 -> !acc
  %gate_scaled = mulf %gate, %scales : !acc
  %up_scaled = mulf %up, %scales : !acc
  %gated = call @gated(%gate_scaled, %up_scaled)
  yield %gated : !acc
}

// Both products of a tile are made by one block, which reads x once. The grid has one row, whose number is the zero that the
// compiler does not know: see split_n.mlir. The holes: `setup` once a block; `value` makes the result of both products.
skeleton @persistent_pair {
  %x_tiles = make_partition_view %x_view : !x_part
  %gate_tiles = make_partition_view %gate_view : !w_part
  %up_tiles = make_partition_view %up_view : !w_part
  %out_tiles = make_partition_view %out_view : !out_part
  %block, %row_zero, %unused_z = get_tile_block_id : !int
  %blocks, %one_y, %one_z = get_num_tile_blocks : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %m_tiles, %n_tiles, %tiles, %steps = call @tiles_of(%M, %N, %K)
  %empty = call @unknown_zero(%row_zero)
  hole @setup
  for %tile in (%block to %tiles, step %blocks) : !int {
    %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
    %gate, %up = for %k in (%zero to %steps, step %one) : !int iter_values(%gate_so_far = %empty, %up_so_far = %empty)
        -> (!acc, !acc) {
      %gate_next, %up_next = call @pair_step(%x_tiles, %gate_tiles, %up_tiles, %m, %n, %k, %gate_so_far, %up_so_far)
      continue %gate_next, %up_next : !acc, !acc
    }
    %value = hole @value(%gate, %up, %m) -> !acc
    call @store(%value, %out_tiles, %m, %n)
    continue
  }
  return
}

// out = silu(x @ gate) * (x @ up)
kernel @swiglu op = swiglu, skeleton = @persistent_pair {
  @value(%gate, %up, %m) {
    %gated = call @gated(%gate, %up)
    yield %gated : !acc
  }
}

// swiglu of x divided by each row's root mean square
kernel @rms_swiglu op = rms_swiglu, skeleton = @persistent_pair {
  @setup {
    %squares_tiles = make_partition_view %squares_view : !squares_in_part
    %four_parts, %units, %epsilons = call @rms_constants(%Z, %K, %eps)
  }
  @value(%gate, %up, %m) {
    %sum = call @sum_of_parts(%squares_tiles, %m, %four_parts)
    %inverse = call @inverse_rms(%sum, %units, %epsilons)
    %gated = call @gated_rows(%gate, %up, %inverse)
    yield %gated : !acc
  }
}
