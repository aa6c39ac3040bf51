// Persistent products: as many blocks as fit the GPU walk the tiles of the result, so that the epilogue of one tile overlaps
// the loads of the next one. With a grid as large as the number of tiles, each block makes one.

include "products.mlir"

// The holes: `rows` (what scales the rows of x) and `setup` once a block; `prologue` before a tile's K loop; `epilogue` after
// it. The epilogue gets the product in f32, the tile's place, and a token of the tile before, and yields its own: stores that
// follow it are made in order from tile to tile. Tiles do not overlap, but without that order the compiler starts the next
// tile early, which can be slower.
skeleton @persistent {
  %x_tiles = make_partition_view %x_view : !x_part
  hole @rows
  %w_tiles = make_partition_view %weight_view : !w_part
  hole @setup
  %out_tiles = make_partition_view %out_view : !out_part
  %block, %unused_y, %unused_z = get_tile_block_id : !int
  %blocks, %one_y, %one_z = get_num_tile_blocks : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %m_tiles, %n_tiles, %tiles, %steps = call @tiles_of(%M, %N, %K)
  %empty = constant <f32: 0.0> : !acc
  %start = make_token : token
  %end = for %tile in (%block to %tiles, step %blocks) : !int iter_values(%before = %start) -> (token) {
    %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
    hole @prologue(%n)
    %product = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!acc) {
      %next = call @step(%x_tiles, %w_tiles, %m, %n, %k, %acc)
      continue %next : !acc
    }
    %after = hole @epilogue(%product, %out_tiles, %m, %n, %before) -> token
    continue %after : token
  }
  return
}

// With a bias, read before the K loop. The holes: `bias` makes its rows; `value` makes the result.
skeleton @persistent_bias, skeleton = @persistent {
  @setup { %bias_tiles = make_partition_view %bias_view : !bias_part }
  @prologue(%n) {
    %bias, %read = call @load_bias(%bias_tiles, %n)
    %bias_rows = hole @bias(%bias) -> !acc
  }
  @epilogue(%product, %out_tiles, %m, %n, %before) {
    %value = hole @value(%product, %bias_rows) -> !acc
    call @store(%value, %out_tiles, %m, %n)
    yield %before : token
  }
}

// With a bias and a residual, which may be the output itself: it is stored after it is read. The holes: `setup_after`, and
// `after`, which gets the result once it is stored.
skeleton @persistent_residual, skeleton = @persistent {
  @setup {
    %bias_tiles = make_partition_view %bias_view : !bias_part
    %residual_tiles = make_partition_view %residual_view : !residual_part
    hole @setup_after
  }
  @prologue(%n) {
    %bias, %bias_read = call @load_bias(%bias_tiles, %n)
    %bias_rows = call @bias_rows(%bias)
  }
  @epilogue(%product, %out_tiles, %m, %n, %before) {
    %biased = addf %product, %bias_rows : !acc
    %residual, %read = load_view_tko weak %residual_tiles[%m, %n] token = %before : !residual_part, !int -> !out, token
    %value = call @add_residual(%biased, %residual)
    %stored = call @store_after(%value, %out_tiles, %m, %n, %read)
    hole @after(%value, %m, %n)
    yield %stored : token
  }
}

// With rows scaled by 1 / rms, where the squares are those of linear_residual_squares. The holes: `bias` makes rows of the
// bias, `scale` changes the scale, `activation` comes last.
skeleton @persistent_rms, skeleton = @persistent {
  @rows {
    %squares_tiles = make_partition_view %squares_view : !squares_in_part
    %four_parts, %units, %epsilons = call @rms_constants(%Z, %K, %eps)
  }
  @setup { %bias_tiles = make_partition_view %bias_view : !bias_part }
  @epilogue(%product, %out_tiles, %m, %n, %before) {
    %bias, %read = call @load_bias(%bias_tiles, %n)
    %bias_rows = hole @bias(%bias) -> !acc
    %sum = call @sum_of_parts(%squares_tiles, %m, %four_parts)
    %inverse = call @inverse_rms(%sum, %units, %epsilons)
    %scale = hole @scale(%inverse) -> !column
    %scaled = call @scale_rows(%product, %scale, %bias_rows)
    %value = hole @activation(%scaled) -> !acc
    call @store(%value, %out_tiles, %m, %n)
    yield %before : token
  }
}

// out = x @ weight + bias
kernel @linear op = linear, skeleton = @persistent_bias { @bias = @bias_rows  @value = @add_bias }

// out = gelu(x @ weight + bias)
kernel @linear_gelu op = linear_gelu, skeleton = @persistent_bias { @bias = @half_bias_rows  @value = @gelu }

// out = residual + x @ weight + bias
kernel @linear_residual op = linear_residual, skeleton = @persistent_residual {}

// linear_residual, and the sum of squares of each row's result over the tile's columns, which are one part of them
kernel @linear_residual_squares_persistent op = linear_residual_squares, skeleton = @persistent_residual {
  @setup_after { %squares_tiles = make_partition_view %squares_view : !squares_out_part }
  @after(%value, %m, %n) {
    %squares = call @row_squares(%value)
    %square_row = reshape %squares : !column -> !square_1
    %written = store_view_tko weak %square_row, %squares_tiles[%n, %m] : !square_1, !squares_out_part, !int -> token
  }
}

// out = (x @ weight) / rms + bias
kernel @rms_linear op = rms_linear, skeleton = @persistent_rms {
  @bias = @bias_rows  @scale = @unscaled  @activation = @identity
}

// out = gelu(rms_linear)
kernel @rms_linear_gelu op = rms_linear_gelu, skeleton = @persistent_rms {
  @bias = @half_bias_rows  @scale = @halved  @activation = @gelu_of_half
}
