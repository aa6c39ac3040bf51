include "common.mlir"

sizes D = 32

!head_part = !cuda_tile.partition_view<tile=(1x1x1xD), !batch>
!head = !cuda_tile.tile<1x1x1xDxT>

// k_cache[b, positions[b] + t] = k[b, t], and likewise v
//
// One block copies one head's vectors of one position: grid (T, H, B). The head size D is a constant of the entry.
kernel @kv_append op = kv_append {
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
  %k_tile, %t1 = load_view_tko weak %k_tiles[%b, %t, %h, %zero] : !head_part, !int -> !head, token
  %v_tile, %t2 = load_view_tko weak %v_tiles[%b, %t, %h, %zero] : !head_part, !int -> !head, token
  %k_stored = store_view_tko weak %k_tile, %kc_tiles[%b, %place, %h, %zero] : !head, !head_part, !int -> token
  %v_stored = store_view_tko weak %v_tile, %vc_tiles[%b, %place, %h, %zero] : !head, !head_part, !int -> token
  return
}
