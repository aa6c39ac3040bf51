// Rotary positions, and the append to a cache of keys and values.
//
// A block takes one position of one head of keys and values, and the Q heads of queries that share it, BQ at a time: grid
// (T, G, B). The head size D is a constant of the entry, E is half of it. A head is turned as two halves (not as pairs of
// neighbours): Su et al., https://arxiv.org/abs/2104.09864, in the order of Hugging Face's models.

include "common.mlir"

sizes BQ = 4, D = 64, E = 32

!grouped = !cuda_tile.tensor_view<?x?x?x?x?xT, strides=[?,?,?,?,1]>
!q_in = !cuda_tile.partition_view<tile=(1x1x1xBQxE), padding_value = zero, !grouped>
!q_out = !cuda_tile.partition_view<tile=(1x1x1xBQxE), !grouped>
!half_part = !cuda_tile.partition_view<tile=(1x1x1xE), !batch>
!whole_part = !cuda_tile.partition_view<tile=(1x1x1xD), !batch>
!angle_part = !cuda_tile.partition_view<tile=(1xE), !reals>
!q_tile = !cuda_tile.tile<1x1x1xBQxExT>
!half_tile = !cuda_tile.tile<1x1x1xExT>
!whole_tile = !cuda_tile.tile<1x1x1xDxT>
!halves = !cuda_tile.tile<BQxExT>
!halves_f32 = !cuda_tile.tile<BQxExf32>
!angles = !cuda_tile.tile<1xExf32>
!angles_stored = !cuda_tile.tile<1xExT>

// Both halves of BQ heads, turned
fragment @turn(%first: !halves, %second: !halves, %cos: !angles, %sin: !angles) -> (!halves, !halves) {
  %x1 = ftof %first : !halves -> !halves_f32
  %x2 = ftof %second : !halves -> !halves_f32
  %c = broadcast %cos : !angles -> !halves_f32
  %s = broadcast %sin : !angles -> !halves_f32
  %x1_c = mulf %x1, %c : !halves_f32
  %x2_s = mulf %x2, %s : !halves_f32
  %y1 = subf %x1_c, %x2_s : !halves_f32
  %x2_c = mulf %x2, %c : !halves_f32
  %y2 = fma %x1, %s, %x2_c : !halves_f32
  %first_turned = ftof %y1 : !halves_f32 -> !halves
  %second_turned = ftof %y2 : !halves_f32 -> !halves
  yield %first_turned, %second_turned : !halves, !halves
}

kernel @rope_append op = rope_append {
  %q_tiles = make_partition_view %q_view : !q_in
  %turned_tiles = make_partition_view %turned_view : !q_out
  %k_tiles = make_partition_view %k_view : !half_part
  %k_cache_tiles = make_partition_view %k_cache_view : !half_part
  %v_tiles = make_partition_view %v_view : !whole_part
  %v_cache_tiles = make_partition_view %v_cache_view : !whole_part
  %position_tiles = make_partition_view %positions_view : !index_part
  %cos_tiles = make_partition_view %cos_view : !angle_part
  %sin_tiles = make_partition_view %sin_view : !angle_part
  %t, %g, %b = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BQ = constant <i32: BQ> : !int
  %start_tile, %t0 = load_view_tko weak %position_tiles[%b] : !index_part, !int -> !int_1, token
  %start = reshape %start_tile : !int_1 -> !int
  %place = addi %start, %t : !int
  %cos, %t1 = load_view_tko weak %cos_tiles[%place, %zero] : !angle_part, !int -> !angles, token
  %sin, %t2 = load_view_tko weak %sin_tiles[%place, %zero] : !angle_part, !int -> !angles, token

  %k1_tile, %t3 = load_view_tko weak %k_tiles[%b, %t, %g, %zero] : !half_part, !int -> !half_tile, token
  %k2_tile, %t4 = load_view_tko weak %k_tiles[%b, %t, %g, %one] : !half_part, !int -> !half_tile, token
  %k1 = reshape %k1_tile : !half_tile -> !angles_stored
  %k2 = reshape %k2_tile : !half_tile -> !angles_stored
  %k1_turned, %k2_turned = call @turn<BQ = 1>(%k1, %k2, %cos, %sin)
  %k1_out = reshape %k1_turned : !angles_stored -> !half_tile
  %k2_out = reshape %k2_turned : !angles_stored -> !half_tile
  %k1_stored = store_view_tko weak %k1_out, %k_cache_tiles[%b, %place, %g, %zero] : !half_tile, !half_part, !int -> token
  %k2_stored = store_view_tko weak %k2_out, %k_cache_tiles[%b, %place, %g, %one] : !half_tile, !half_part, !int -> token
  %v, %t5 = load_view_tko weak %v_tiles[%b, %t, %g, %zero] : !whole_part, !int -> !whole_tile, token
  %v_stored = store_view_tko weak %v, %v_cache_tiles[%b, %place, %g, %zero] : !whole_tile, !whole_part, !int -> token

  %steps = divi %Q, %BQ signed rounding<positive_inf> : !int
  for %i in (%zero to %steps, step %one) : !int {
    %q1_tile, %read1 = load_view_tko weak %q_tiles[%b, %t, %g, %i, %zero] : !q_in, !int -> !q_tile, token
    %q2_tile, %read2 = load_view_tko weak %q_tiles[%b, %t, %g, %i, %one] : !q_in, !int -> !q_tile, token
    %q1 = reshape %q1_tile : !q_tile -> !halves
    %q2 = reshape %q2_tile : !q_tile -> !halves
    %q1_turned, %q2_turned = call @turn(%q1, %q2, %cos, %sin)
    %q1_out = reshape %q1_turned : !halves -> !q_tile
    %q2_out = reshape %q2_turned : !halves -> !q_tile
    // The result may be the queries themselves: it is stored after both halves are read.
    %read = join_tokens %read1, %read2 : token
    %q1_stored = store_view_tko weak %q1_out, %turned_tiles[%b, %t, %g, %i, %zero] token = %read
        : !q_tile, !q_out, !int -> token
    %q2_stored = store_view_tko weak %q2_out, %turned_tiles[%b, %t, %g, %i, %one] token = %read
        : !q_tile, !q_out, !int -> token
    continue
  }
  return
}
