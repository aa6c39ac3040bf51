// Products with a schedule of their own.

include "split_n.mlir"

!residual_narrow = !cuda_tile.partition_view<tile=(BMxBR), padding_value = zero, !matrix>
!index_BR = !cuda_tile.tile<BRxi32>
!index_BRx1 = !cuda_tile.tile<BRx1xi32>
!index_BN = !cuda_tile.tile<BNxi32>
!index_1xBN = !cuda_tile.tile<1xBNxi32>
!index_BRxBN = !cuda_tile.tile<BRxBNxi32>
!same_BRxBN = !cuda_tile.tile<BRxBNxi1>
!ones_BRxBN = !cuda_tile.tile<BRxBNxT>
!ones_BRxBR = !cuda_tile.tile<BRxBRxT>

// The product of a tile, K in steps of BK from %first to %last
fragment @product(%x_tiles: !x_part, %w_tiles: !w_part, %m: !int, %n: !int, %first: !int, %last: !int) -> !acc {
  %one = constant <i32: 1> : !int
  %empty = constant <f32: 0.0> : !acc
  %product = for %k in (%first to %last, step %one) : !int iter_values(%acc = %empty) -> (!acc) {
    %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
    %w_tile, %w_token = load_view_tko weak %w_tiles[%k, %n] : !w_part, !int -> !w, token
    %next = mmaf %x_tile, %w_tile, %acc : !x, !w, !acc
    continue %next : !acc
  }
  yield %product : !acc
}

// The first step of K of part z, and the one behind its last: parts are whole steps of 64.
fragment @steps_of_part(%K: !int, %z: !int, %parts: !int) -> (!int, !int) {
  %BK = constant <i32: BK> : !int
  %deal = constant <i32: 64> : !int
  %dealt = divi %K, %deal signed rounding<positive_inf> : !int
  %each = divi %dealt, %parts signed rounding<positive_inf> : !int
  %length = muli %each, %deal : !int
  %steps = divi %length, %BK signed : !int
  %first = muli %z, %steps : !int
  %behind = addi %first, %steps : !int
  %all = divi %K, %BK signed rounding<positive_inf> : !int
  %last = mini %behind, %all signed : !int
  yield %first, %last : !int, !int
}

// Split-K: partial[z] = x[:, part z] @ weight[part z]. A block makes one tile of one part; parts are whole steps of 64.
kernel @linear_split_k op = linear_split_k {
  %x_tiles = make_partition_view %x_view : !x_part
  %w_tiles = make_partition_view %weight_view : !w_part
  %partial_tiles = make_partition_view %partial_view : !partial_part
  %n, %m, %z = get_tile_block_id : !int
  %blocks_x, %blocks_y, %parts = get_num_tile_blocks : !int
  %first, %last = call @steps_of_part(%K, %z, %parts)
  %product = call @product(%x_tiles, %w_tiles, %m, %n, %first, %last)
  %result = reshape %product : !acc -> !partial
  %stored = store_view_tko weak %result, %partial_tiles[%z, %m, %n] : !partial, !partial_part, !int -> token
  return
}

// Split-K of few rows: a part is 3 BK columns. See small_m.mlir.
kernel @linear_split_k_small_m op = linear_split_k {
  %x_tiles = make_partition_view %x_view : !x_part
  %w_tiles = make_partition_view %weight_view : !w_part
  %partial_tiles = make_partition_view %partial_view : !partial_part
  %n, %m, %z = get_tile_block_id : !int
  %k0, %k1, %k2 = call @three_steps(%z)
  %w0, %w1, %w2, %t0, %t1, %t2 = call @load_weight(%w_tiles, %k0, %k1, %k2, %n)
  // The wait comes after these reads by their tokens: else the compiler may put it first.
  %read = join_tokens %t0, %t1, %t2 : token
  %ready = gdc_wait_tko token = %read -> token
  %product = call @multiply(%x_tiles, %m, %k0, %k1, %k2, %w0, %w1, %w2)
  %result = reshape %product : !acc -> !partial
  %stored = store_view_tko weak %result, %partial_tiles[%z, %m, %n] : !partial, !partial_part, !int -> token
  return
}

kernel @linear_split_k_swap_ab op = linear_split_k {
  %x_tiles = make_partition_view %x_view : !x_part
  %w_tiles = make_partition_view %weight_view : !w_part
  %partial_tiles = make_partition_view %partial_view : !partial_part
  %n, %m, %z = get_tile_block_id : !int
  %k0, %k1, %k2 = call @three_steps(%z)
  %w0, %w1, %w2, %t0, %t1, %t2 = call @load_weight(%w_tiles, %k0, %k1, %k2, %n)
  %ready = gdc_wait_tko token = %t2 -> token
  %product = call @multiply_swapped(%x_tiles, %m, %k0, %k1, %k2, %w0, %w1, %w2)
  %result = reshape %product : !acc -> !partial
  %stored = store_view_tko weak %result, %partial_tiles[%z, %m, %n] optimization_hints = <default = {allow_tma = false}>
      : !partial, !partial_part, !int -> token
  return
}

// The three steps of K of part z
fragment @three_steps(%z: !int) -> (!int, !int, !int) {
  %one = constant <i32: 1> : !int
  %two = constant <i32: 2> : !int
  %three = constant <i32: 3> : !int
  %k0 = muli %z, %three : !int
  %k1 = addi %k0, %one : !int
  %k2 = addi %k0, %two : !int
  yield %k0, %k1, %k2 : !int, !int, !int
}

// linear_residual with the squares of a part that several tiles make: one block walks the tiles of its part
kernel @linear_residual_squares op = linear_residual_squares {
  %squares_tiles = make_partition_view %squares_view : !squares_out_part
  %x_tiles = make_partition_view %x_view : !x_part
  %w_tiles = make_partition_view %weight_view : !w_part
  %bias_tiles = make_partition_view %bias_view : !bias_part
  %residual_tiles = make_partition_view %residual_view : !residual_part
  %out_tiles = make_partition_view %out_view : !out_part
  %z, %m, %unused = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BN = constant <i32: BN> : !int
  %BK = constant <i32: BK> : !int
  %n_tiles = divi %N, %BN signed rounding<positive_inf> : !int
  %part_tiles = divi %n_tiles, %Z signed rounding<positive_inf> : !int
  %first = muli %z, %part_tiles : !int
  %behind = addi %first, %part_tiles : !int
  %last = mini %behind, %n_tiles signed : !int
  %steps = divi %K, %BK signed rounding<positive_inf> : !int
  %none = constant <f32: 0.0> : !column
  %start = make_token : token
  %end, %row_sum = for %n in (%first to %last, step %one) : !int iter_values(%before = %start, %sum = %none)
      -> (token, !column) {
    %bias, %bias_token = load_view_tko weak %bias_tiles[%n] : !bias_part, !int -> !bias, token
    %bias_rows = call @bias_rows(%bias)
    %product = call @product(%x_tiles, %w_tiles, %m, %n, %zero, %steps)
    %biased = addf %product, %bias_rows : !acc
    %residual, %read = load_view_tko weak %residual_tiles[%m, %n] token = %before : !residual_part, !int -> !out, token
    %value = call @add_residual(%biased, %residual)
    %result = call @rounded(%value)
    %stored = store_view_tko weak %result, %out_tiles[%m, %n] token = %read : !out, !out_part, !int -> token
    %tile_sum = call @row_squares(%value)
    %next_sum = addf %sum, %tile_sum : !column
    continue %stored, %next_sum : token, !column
  }
  %row = reshape %row_sum : !column -> !square_1
  %squares_stored = store_view_tko weak %row, %squares_tiles[%z, %m] : !square_1, !squares_out_part, !int -> token
  return
}

// Ones where column c of a tile of BN columns is row r + %offset of one of BR: a product with it puts BR columns in place
fragment @shifted_identity(%offset: !int) -> !ones_BRxBN {
  %rows_flat = iota : !index_BR
  %rows_column = reshape %rows_flat : !index_BR -> !index_BRx1
  %rows = broadcast %rows_column : !index_BRx1 -> !index_BRxBN
  %columns_flat = iota : !index_BN
  %columns_row = reshape %columns_flat : !index_BN -> !index_1xBN
  %columns = broadcast %columns_row : !index_1xBN -> !index_BRxBN
  %offset_1x1 = reshape %offset : !int -> !int_1x1
  %offsets = broadcast %offset_1x1 : !int_1x1 -> !index_BRxBN
  %shifted = addi %rows, %offsets : !index_BRxBN
  %same = cmpi equal %shifted, %columns, signed : !index_BRxBN -> !same_BRxBN
  %ones = constant <T: 1.0> : !ones_BRxBN
  %zeros = constant <T: 0.0> : !ones_BRxBN
  %identity = select %same, %ones, %zeros : !same_BRxBN, !ones_BRxBN
  yield %identity : !ones_BRxBN
}

// Split-N linear_residual with squares. The residual is added by the tensor cores, as a product with ones: an addition after
// the K loop would need its tile in registers beside both accumulators.
kernel @linear_residual_squares_split_n_mma op = linear_residual_squares, skeleton = @split_n {
  @setup {
    %bias_left = make_strided_view %bias_view : !bias_left
    %bias_right = make_partition_view %bias_view : !bias_right
    %residual_tiles = make_partition_view %residual_view : !residual_narrow
    %squares_tiles = make_partition_view %squares_view : !squares_out_part
    %no_offset = constant <i32: 0> : !int
    %offset = constant <i32: BR> : !int
    %ones_first = call @shifted_identity(%no_offset)
    %ones_second = call @shifted_identity(%offset)
    %ones_right = call @shifted_identity<BN = BR>(%no_offset)
  }
  @prologue(%left, %right) {
    %bias, %rest_bias = call @load_split_bias(%bias_left, %bias_right, %left, %right)
    %bias_rows = call @bias_rows(%bias)
    %rest_bias_rows = call @bias_rows<BN = BR>(%rest_bias)
  }
  @epilogue(%product, %rest_product, %out_left, %out_right, %m, %n, %left, %right, %before) {
    %next_step = constant <i32: 1> : !int
    %second = addi %left, %next_step : !int
    %r0, %t0 = load_view_tko weak %residual_tiles[%m, %left] token = %before : !residual_narrow, !int -> !rest_out, token
    %with_first = mmaf %r0, %ones_first, %product : !rest_out, !ones_BRxBN, !acc
    %r1, %t1 = load_view_tko weak %residual_tiles[%m, %second] token = %before : !residual_narrow, !int -> !rest_out, token
    %with_both = mmaf %r1, %ones_second, %with_first : !rest_out, !ones_BRxBN, !acc
    %r2, %t2 = load_view_tko weak %residual_tiles[%m, %right] token = %before : !residual_narrow, !int -> !rest_out, token
    %rest_with = mmaf %r2, %ones_right, %rest_product : !rest_out, !ones_BRxBR, !rest_acc
    %value = addf %with_both, %bias_rows : !acc
    %rest = addf %rest_with, %rest_bias_rows : !rest_acc
    %read = join_tokens %t0, %t1, %t2 : token
    %stored = call @store_split(%value, %rest, %out_left, %out_right, %m, %left, %right, %read)
    call @store_split_squares(%value, %rest, %squares_tiles, %m, %n)
    yield %stored : token
  }
}
