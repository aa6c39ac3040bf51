// Products of few rows over weights in 8 bits: see weights_8bits.mlir.
//
// A block reads all that it needs of the weight, three tiles of BK columns, and makes them wider before it waits for the
// launches before this one: that takes longer than the product.

include "weights_8bits.mlir"

!partial_part = !cuda_tile.partition_view<tile=(1xBMxBN), !parts>
!partial = !cuda_tile.tile<1xBMxBNxf32>

// Three tiles of rows of x
fragment @three_tiles(%x_tiles: !x_part, %m: !int, %k0: !int, %k1: !int, %k2: !int) -> (!x, !x, !x) {
  %x0, %t0 = load_view_tko weak %x_tiles[%m, %k0] : !x_part, !int -> !x, token
  %x1, %t1 = load_view_tko weak %x_tiles[%m, %k1] : !x_part, !int -> !x, token
  %x2, %t2 = load_view_tko weak %x_tiles[%m, %k2] : !x_part, !int -> !x, token
  yield %x0, %x1, %x2 : !x, !x, !x
}

fragment @turned_product(%x0: !x, %x1: !x, %x2: !x, %w0: !w_rows, %w1: !w_rows, %w2: !w_rows) -> !acc {
  %empty = constant <f32: 0.0> : !acc_turned
  %acc0 = call @turned_step(%x0, %w0, %empty)
  %acc1 = call @turned_step(%x1, %w1, %acc0)
  %acc2 = call @turned_step(%x2, %w2, %acc1)
  %product = call @turned_back(%acc2)
  yield %product : !acc
}

// At most 3 BK columns. The holes: `wide`, a tile of the weight in T; `rows`, three tiles of x.
skeleton @ahead_over_8bits, skeleton = @over_8bits {
  @ahead(%n, %read) {
    %k0 = constant <i32: 0> : !int
    %k1 = constant <i32: 1> : !int
    %k2 = constant <i32: 2> : !int
    %w0, %t0 = hole @wide(%weight_view, %n, %k0) -> (!w_rows, token)
    %w1, %t1 = hole @wide(%weight_view, %n, %k1) -> (!w_rows, token)
    %w2, %t2 = hole @wide(%weight_view, %n, %k2) -> (!w_rows, token)
    %all_read = join_tokens %read, %t2 : token
    %ready = gdc_wait_tko token = %all_read -> token
    yield %ready : token
  }
  @product(%x_tiles, %m, %n) {
    %x0, %x1, %x2 = hole @rows(%x_tiles, %m, %k0, %k1, %k2) -> (!x, !x, !x)
    %product = call @turned_product(%x0, %x1, %x2, %w0, %w1, %w2)
    yield %product : !acc
  }
}

// With a residual, which may be the output itself
skeleton @ahead_added, skeleton = @ahead_over_8bits {
  @rows = @three_tiles
  @setup { %residual_tiles = make_partition_view %residual_view : !residual_part }
  @value(%scaled, %m, %n, %ready) {
    %residual, %read = call @load_residual_directly(%residual_tiles, %m, %n)
    %sum = call @add_residual(%scaled, %residual)
    yield %sum, %read : !acc, token
  }
}

// Split-K: partial[z] = (x[:, part z] @ weight[:, part z].T) * scales. A block makes one tile of one part. The hole: `product`,
// not scaled yet; it waits.
skeleton @split_k_over_8bits {
  %x_tiles = make_partition_view %x_view : !x_part
  %scale_tiles = make_partition_view %weight_scales_view : !scales_part
  %partial_tiles = make_partition_view %partial_view : !partial_part
  %n, %m, %z = get_tile_block_id : !int
  %scales, %scales_read = call @load_scales(%scale_tiles, %n)
  %product = hole @product(%x_tiles, %m, %n, %z, %scales_read) -> !acc
  %scaled = mulf %product, %scales : !acc
  %result = reshape %scaled : !acc -> !partial
  %stored = store_view_tko weak %result, %partial_tiles[%z, %m, %n] optimization_hints = <default = {allow_tma = false}>
      : !partial, !partial_part, !int -> token
  return
}

// Any number of rows. The hole: `wide`, a tile of the weight in T.
skeleton @rows_split_k_over_8bits, skeleton = @split_k_over_8bits {
  @product(%x_tiles, %m, %n, %z, %read) {
    %ready = gdc_wait_tko token = %read -> token
    %blocks_x, %blocks_y, %parts = get_num_tile_blocks : !int
    %first, %last = call @steps_of_part(%K, %z, %parts)
    %one = constant <i32: 1> : !int
    %empty = constant <f32: 0.0> : !acc_turned
    %turned = for %k in (%first to %last, step %one) : !int iter_values(%acc = %empty) -> (!acc_turned) {
      %x, %x_read = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
      %w, %w_read = hole @wide(%weight_view, %n, %k) -> (!w_rows, token)
      %next = call @turned_step(%x, %w, %acc)
      continue %next : !acc_turned
    }
    %product = call @turned_back(%turned)
    yield %product : !acc
  }
}

// Few rows: a part is 3 BK columns. The hole: `wide`.
skeleton @ahead_split_k_over_8bits, skeleton = @split_k_over_8bits {
  @product(%x_tiles, %m, %n, %z, %read) {
    %k0, %k1, %k2 = call @three_steps(%z)
    %w0, %t0 = hole @wide(%weight_view, %n, %k0) -> (!w_rows, token)
    %w1, %t1 = hole @wide(%weight_view, %n, %k1) -> (!w_rows, token)
    %w2, %t2 = hole @wide(%weight_view, %n, %k2) -> (!w_rows, token)
    %all_read = join_tokens %read, %t2 : token
    %ready = gdc_wait_tko token = %all_read -> token
    %x0, %x1, %x2 = call @three_tiles(%x_tiles, %m, %k0, %k1, %k2)
    %product = call @turned_product(%x0, %x1, %x2, %w0, %w1, %w2)
    yield %product : !acc
  }
}

// out = x @ weight.T * scales + bias
kernel @linear_weight_f8_ahead op = linear_weight_f8, skeleton = @ahead_over_8bits {
  @wide = @wide_f8  @rows = @three_tiles  @value = @scaled_alone
}

// out = gelu of it
kernel @linear_gelu_weight_f8_ahead op = linear_gelu_weight_f8, skeleton = @ahead_over_8bits {
  @wide = @wide_f8  @rows = @three_tiles  @value = @scaled_and_activated
}

// out = residual + it
kernel @linear_residual_weight_f8_ahead op = linear_residual_weight_f8, skeleton = @ahead_added { @wide = @wide_f8 }

// partial[z] = (x[:, part z] @ weight[:, part z].T) * scales
kernel @linear_split_k_weight_f8 op = linear_split_k_weight_f8, skeleton = @rows_split_k_over_8bits { @wide = @wide_f8 }

// The same of few rows
kernel @linear_split_k_weight_f8_ahead op = linear_split_k_weight_f8, skeleton = @ahead_split_k_over_8bits { @wide = @wide_f8 }

// out = x @ weight.T * scales + bias
kernel @linear_weight_i8_ahead op = linear_weight_i8, skeleton = @ahead_over_8bits {
  @wide = @wide_i8  @rows = @three_tiles  @value = @scaled_alone
}

// out = gelu of it
kernel @linear_gelu_weight_i8_ahead op = linear_gelu_weight_i8, skeleton = @ahead_over_8bits {
  @wide = @wide_i8  @rows = @three_tiles  @value = @scaled_and_activated
}

// out = residual + it
kernel @linear_residual_weight_i8_ahead op = linear_residual_weight_i8, skeleton = @ahead_added { @wide = @wide_i8 }

// partial[z] = (x[:, part z] @ weight[:, part z].T) * scales
kernel @linear_split_k_weight_i8 op = linear_split_k_weight_i8, skeleton = @rows_split_k_over_8bits { @wide = @wide_i8 }

// The same of few rows
kernel @linear_split_k_weight_i8_ahead op = linear_split_k_weight_i8, skeleton = @ahead_split_k_over_8bits { @wide = @wide_i8 }
