// SwiGLU of few rows: products over two weights, of which a block reads all that it needs before the wait. See small_m.mlir.

include "small_m.mlir"

fragment @multiply_both(%x_tiles: !x_part, %m: !int, %k0: !int, %k1: !int, %k2: !int, %g0: !w, %g1: !w, %g2: !w, %u0: !w,
    %u1: !w, %u2: !w) -> (!acc, !acc) {
  %empty = constant <f32: 0.0> : !acc
  %x0, %t0 = load_view_tko weak %x_tiles[%m, %k0] : !x_part, !int -> !x, token
  %gate0 = mmaf %x0, %g0, %empty : !x, !w, !acc
  %up0 = mmaf %x0, %u0, %empty : !x, !w, !acc
  %x1, %t1 = load_view_tko weak %x_tiles[%m, %k1] : !x_part, !int -> !x, token
  %gate1 = mmaf %x1, %g1, %gate0 : !x, !w, !acc
  %up1 = mmaf %x1, %u1, %up0 : !x, !w, !acc
  %x2, %t2 = load_view_tko weak %x_tiles[%m, %k2] : !x_part, !int -> !x, token
  %gate = mmaf %x2, %g2, %gate1 : !x, !w, !acc
  %up = mmaf %x2, %u2, %up1 : !x, !w, !acc
  yield %gate, %up : !acc, !acc
}

fragment @multiply_both_by_one_row(%x_tiles: !x_part, %m: !int, %k0: !int, %k1: !int, %k2: !int, %g0: !w, %g1: !w, %g2: !w,
    %u0: !w, %u1: !w, %u2: !w) -> (!acc, !acc) {
  %none = constant <f32: 0.0> : !w_f32
  %x0 = call @load_row(%x_tiles, %m, %k0)
  %gate0 = call @gemv_step(%x0, %g0, %none)
  %up0 = call @gemv_step(%x0, %u0, %none)
  %x1 = call @load_row(%x_tiles, %m, %k1)
  %gate1 = call @gemv_step(%x1, %g1, %gate0)
  %up1 = call @gemv_step(%x1, %u1, %up0)
  %x2 = call @load_row(%x_tiles, %m, %k2)
  %gate2 = call @gemv_step(%x2, %g2, %gate1)
  %up2 = call @gemv_step(%x2, %u2, %up1)
  %gate = call @sum_of_steps(%gate2)
  %up = call @sum_of_steps(%up2)
  yield %gate, %up : !acc, !acc
}

// As @after_all: the reads of one row's kernel are the threads' own, and only their tokens keep them before the wait.
fragment @after_both(%g0: token, %g1: token, %g2: token, %u0: token, %u1: token, %u2: token) -> token {
  %read = join_tokens %g0, %g1, %g2, %u0, %u1, %u2 : token
  yield %read : token
}

// As @after_last: those of the copy engine stay in their order.
fragment @after_last_of_both(%g0: token, %g1: token, %g2: token, %u0: token, %u1: token, %u2: token) -> token {
  yield %u2 : token
}

// The holes: `load`, of a weight; `reads`, what the wait comes after; `multiply_both`, plain or of one row, and `store`.
skeleton @small_m_pair {
  %x_tiles = make_partition_view %x_view : !x_part
  %gate_tiles = make_partition_view %gate_view : !w_part
  %up_tiles = make_partition_view %up_view : !w_part
  %squares_tiles = make_partition_view %squares_view : !squares_at_once
  %out_tiles = make_partition_view %out_view : !out_part
  %four_parts, %units, %epsilons = call @rms_constants(%Z, %K, %eps)
  %n, %m, %unused = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %two = constant <i32: 2> : !int
  %g0, %g1, %g2, %g0_read, %g1_read, %g2_read = hole @load(%gate_tiles, %zero, %one, %two, %n)
      -> (!w, !w, !w, token, token, token)
  %u0, %u1, %u2, %u0_read, %u1_read, %u2_read = hole @load(%up_tiles, %zero, %one, %two, %n)
      -> (!w, !w, !w, token, token, token)
  %read = hole @reads(%g0_read, %g1_read, %g2_read, %u0_read, %u1_read, %u2_read) -> token
  %ready = gdc_wait_tko token = %read -> token
  %inverse = call @inverse_rms_at_once(%squares_tiles, %m, %units, %epsilons)
  %gate, %up = hole @multiply_both(%x_tiles, %m, %zero, %one, %two, %g0, %g1, %g2, %u0, %u1, %u2) -> (!acc, !acc)
  %value = call @gated_rows(%gate, %up, %inverse)
  %stored = hole @store(%value, %out_tiles, %m, %n, %ready) -> token
  return
}

kernel @rms_swiglu_small_m op = rms_swiglu, skeleton = @small_m_pair {
  @load = @load_weight  @reads = @after_last_of_both  @multiply_both = @multiply_both  @store = @store_after
}

kernel @rms_swiglu_gemv op = rms_swiglu, skeleton = @small_m_pair {
  @load = @load_weight_directly  @reads = @after_both  @multiply_both = @multiply_both_by_one_row  @store = @store_directly
}
