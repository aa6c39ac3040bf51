include "pages.mlir"

sizes D = 32

!head_part = !cuda_tile.partition_view<tile=(1x1x1xD), !batch>
!head = !cuda_tile.tile<1x1x1xDxT>

// k_cache[b, positions[b] + t] = k[b, t], and likewise v
//
// One block copies one head's vectors of one position: grid (T, H, B). The head size D is a constant of the entry. The hole
// `slot` says where in the cache a position is; `setup` makes what it needs.
skeleton @kv_append {
  hole @setup
  %k_tiles = make_partition_view %k_view : !head_part
  %v_tiles = make_partition_view %v_view : !head_part
  %kc_tiles = make_partition_view %k_cache_view : !head_part
  %vc_tiles = make_partition_view %v_cache_view : !head_part
  %position_tiles = make_partition_view %positions_view : !index_part

  %t, %h, %b = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %start_tile, %t0 = load_view_tko weak %position_tiles[%b] : !index_part, !int -> !int_1, token
  %start = reshape %start_tile : !int_1 -> !int
  %place = addi %start, %t : !int
  %in, %at = hole @slot(%b, %place) -> (!int, !int)
  %k_tile, %t1 = load_view_tko weak %k_tiles[%b, %t, %h, %zero] : !head_part, !int -> !head, token
  %v_tile, %t2 = load_view_tko weak %v_tiles[%b, %t, %h, %zero] : !head_part, !int -> !head, token
  %k_stored = store_view_tko weak %k_tile, %kc_tiles[%in, %at, %h, %zero] : !head, !head_part, !int -> token
  %v_stored = store_view_tko weak %v_tile, %vc_tiles[%in, %at, %h, %zero] : !head, !head_part, !int -> token
  return
}

kernel @kv_append op = kv_append, skeleton = @kv_append { @slot = @own_row }

// k_cache[page, at] = k[b, t], and likewise v, where position positions[b] + t of sequence b is
kernel @paged_append op = paged_append, skeleton = @kv_append {
  @setup { %table_tiles = make_partition_view %tables_view : !table_part }
  @slot(%b, %place) {
    %page, %at = call @page_of(%table_tiles, %b, %place, %PAGE)
    yield %page, %at : !int, !int
  }
}
