// Rotary positions, and the append to a cache of keys and values.
//
// A block takes one position of one head of keys and values, and the Q heads of queries that share it, BQ at a time: grid
// (T, G, B). The head size D is a constant of the entry, E is half of it. A head is turned as two halves (not as pairs of
// neighbours): Su et al., https://arxiv.org/abs/2104.09864, in the order of Hugging Face's models. `norm_rope_append` first
// norms each head of queries and keys, as Qwen3 does.

include "pages.mlir"

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
!half = !cuda_tile.tile<1xExT>
!weight_part = !cuda_tile.partition_view<tile=(E), padding_value = zero, !vector>

// Both halves of BQ heads in f32, turned and rounded
fragment @turn(%x1: !halves_f32, %x2: !halves_f32, %cos: !angles, %sin: !angles) -> (!halves, !halves) {
  %c = broadcast %cos : !angles -> !halves_f32
  %s = broadcast %sin : !angles -> !halves_f32
  %x1_c = mulf %x1, %c : !halves_f32
  %x2_s = mulf %x2, %s : !halves_f32
  %y1 = subf %x1_c, %x2_s : !halves_f32
  %x2_c = mulf %x2, %c : !halves_f32
  %y2 = fma %x1, %s, %x2_c : !halves_f32
  %first = ftof %y1 : !halves_f32 -> !halves
  %second = ftof %y2 : !halves_f32 -> !halves
  yield %first, %second : !halves, !halves
}

// The holes `keys` and `queries` make of both halves what is turned, in f32; `slot` says where in the cache a position is;
// `append` stores the halves of the turned key, and the value; `setup` makes what they need.
skeleton @rope_append {
  hole @setup
  %q_tiles = make_partition_view %q_view : !q_in
  %turned_tiles = make_partition_view %turned_view : !q_out
  %k_tiles = make_partition_view %k_view : !half_part
  %v_tiles = make_partition_view %v_view : !whole_part
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
  %in, %at = hole @slot(%b, %place) -> (!int, !int)
  %cos, %t1 = load_view_tko weak %cos_tiles[%place, %zero] : !angle_part, !int -> !angles, token
  %sin, %t2 = load_view_tko weak %sin_tiles[%place, %zero] : !angle_part, !int -> !angles, token

  %k1_tile, %t3 = load_view_tko weak %k_tiles[%b, %t, %g, %zero] : !half_part, !int -> !half_tile, token
  %k2_tile, %t4 = load_view_tko weak %k_tiles[%b, %t, %g, %one] : !half_part, !int -> !half_tile, token
  %k1 = reshape %k1_tile : !half_tile -> !half
  %k2 = reshape %k2_tile : !half_tile -> !half
  %k1_f32, %k2_f32 = hole @keys(%k1, %k2) -> (!angles, !angles)
  %k1_turned, %k2_turned = call @turn<BQ = 1>(%k1_f32, %k2_f32, %cos, %sin)
  %v, %t5 = load_view_tko weak %v_tiles[%b, %t, %g, %zero] : !whole_part, !int -> !whole_tile, token
  hole @append(%k1_turned, %k2_turned, %v, %k_cache_view, %v_cache_view, %in, %at, %g)

  %steps = divi %Q, %BQ signed rounding<positive_inf> : !int
  for %i in (%zero to %steps, step %one) : !int {
    %q1_tile, %read1 = load_view_tko weak %q_tiles[%b, %t, %g, %i, %zero] : !q_in, !int -> !q_tile, token
    %q2_tile, %read2 = load_view_tko weak %q_tiles[%b, %t, %g, %i, %one] : !q_in, !int -> !q_tile, token
    %q1 = reshape %q1_tile : !q_tile -> !halves
    %q2 = reshape %q2_tile : !q_tile -> !halves
    %q1_f32, %q2_f32 = hole @queries(%q1, %q2) -> (!halves_f32, !halves_f32)
    %q1_turned, %q2_turned = call @turn(%q1_f32, %q2_f32, %cos, %sin)
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

fragment @append_turned(%k1: !half, %k2: !half, %v: !whole_tile, %k_cache: !batch, %v_cache: !batch, %in: !int, %at: !int,
    %g: !int) {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %k_cache_tiles = make_partition_view %k_cache : !half_part
  %v_cache_tiles = make_partition_view %v_cache : !whole_part
  %k1_out = reshape %k1 : !half -> !half_tile
  %k2_out = reshape %k2 : !half -> !half_tile
  %k1_stored = store_view_tko weak %k1_out, %k_cache_tiles[%in, %at, %g, %zero] : !half_tile, !half_part, !int -> token
  %k2_stored = store_view_tko weak %k2_out, %k_cache_tiles[%in, %at, %g, %one] : !half_tile, !half_part, !int -> token
  %v_stored = store_view_tko weak %v, %v_cache_tiles[%in, %at, %g, %zero] : !whole_tile, !whole_part, !int -> token
}

fragment @as_they_are(%first: !halves, %second: !halves) -> (!halves_f32, !halves_f32) {
  %x1 = ftof %first : !halves -> !halves_f32
  %x2 = ftof %second : !halves -> !halves_f32
  yield %x1, %x2 : !halves_f32, !halves_f32
}

// Each head divided by its root mean square, times the weights of its halves
fragment @normed_heads(%first: !halves, %second: !halves, %weight: !weight_part, %eps: !real) -> (!halves_f32, !halves_f32) {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %x1, %x2 = call @as_they_are(%first, %second)
  %squares1 = mulf %x1, %x1 : !halves_f32
  %squares = fma %x2, %x2, %squares1 : !halves_f32
  %sum = call @sum_in_rows<R = BQ, BC = E>(%squares)
  %D = constant <i32: D> : !int
  %inverse = call @inverse_root<R = BQ>(%sum, %D, %eps)
  %w1, %t1 = call @load_line<BC = E>(%weight, %zero)
  %w2, %t2 = call @load_line<BC = E>(%weight, %one)
  %weights1 = call @for_each_row<R = BQ, BC = E>(%w1)
  %weights2 = call @for_each_row<R = BQ, BC = E>(%w2)
  %y1 = call @scaled<R = BQ, BC = E>(%x1, %inverse, %weights1)
  %y2 = call @scaled<R = BQ, BC = E>(%x2, %inverse, %weights2)
  yield %y1, %y2 : !halves_f32, !halves_f32
}

skeleton @plain_heads, skeleton = @rope_append {
  @keys(%first, %second) {
    %x1, %x2 = call @as_they_are<BQ = 1>(%first, %second)
    yield %x1, %x2 : !angles, !angles
  }
  @queries = @as_they_are
}

skeleton @normed, skeleton = @rope_append {
  @setup {
    %k_weight_tiles = make_partition_view %k_weight_view : !weight_part
    %q_weight_tiles = make_partition_view %q_weight_view : !weight_part
    hole @more
  }
  @keys(%first, %second) {
    %k1_normed, %k2_normed = call @normed_heads<BQ = 1>(%first, %second, %k_weight_tiles, %eps)
    yield %k1_normed, %k2_normed : !angles, !angles
  }
  @queries(%first, %second) {
    %q1_normed, %q2_normed = call @normed_heads(%first, %second, %q_weight_tiles, %eps)
    yield %q1_normed, %q2_normed : !halves_f32, !halves_f32
  }
}

kernel @rope_append op = rope_append, skeleton = @plain_heads { @slot = @own_row  @append = @append_turned }

kernel @norm_rope_append op = norm_rope_append, skeleton = @normed { @slot = @own_row  @append = @append_turned }

kernel @paged_rope_append op = paged_rope_append, skeleton = @plain_heads {
  @append = @append_turned
  @setup { %table_tiles = make_partition_view %tables_view : !table_part }
  @slot(%b, %place) {
    %page, %at = call @page_of(%table_tiles, %b, %place, %PAGE)
    yield %page, %at : !int, !int
  }
}

kernel @paged_norm_rope_append op = paged_norm_rope_append, skeleton = @normed {
  @append = @append_turned
  @more { %table_tiles = make_partition_view %tables_view : !table_part }
  @slot(%b, %place) {
    %page, %at = call @page_of(%table_tiles, %b, %place, %PAGE)
    yield %page, %at : !int, !int
  }
}
