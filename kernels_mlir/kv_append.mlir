sizes D = 32

!int = !cuda_tile.tile<i32>
!index = !cuda_tile.tile<1xi32>
!ptr = !cuda_tile.tile<ptr<T>>
!int_ptr = !cuda_tile.tile<ptr<i32>>
!heads = !cuda_tile.tensor_view<?x?x?x?xT, strides=[?,?,?,1]>
!indices = !cuda_tile.tensor_view<?xi32, strides=[1]>
!index_part = !cuda_tile.partition_view<tile=(1), !indices>
!head_part_1x1x1xD = !cuda_tile.partition_view<tile=(1x1x1xD), !heads>
!head_1x1x1xD = !cuda_tile.tile<1x1x1xDxT>

// k_cache[b, positions[b] + t] = k[b, t], and likewise v
//
// One block copies one head's vectors of one position: grid (T, H, B). The head size D is a constant of the entry.
kernel @kv_append op = kv_append {
  %k_tiles = make_partition_view %k_view : !head_part_1x1x1xD
  %v_tiles = make_partition_view %v_view : !head_part_1x1x1xD
  %kc_tiles = make_partition_view %k_cache_view : !head_part_1x1x1xD
  %vc_tiles = make_partition_view %v_cache_view : !head_part_1x1x1xD
  %position_tiles = make_partition_view %positions_view : !index_part

  %t, %h, %b = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %start_tile, %t0 = load_view_tko weak %position_tiles[%b] : !index_part, !int -> !index, token
  %start = reshape %start_tile : !index -> !int
  %place = addi %start, %t : !int
  %k_tile, %t1 = load_view_tko weak %k_tiles[%b, %t, %h, %zero] : !head_part_1x1x1xD, !int -> !head_1x1x1xD, token
  %v_tile, %t2 = load_view_tko weak %v_tiles[%b, %t, %h, %zero] : !head_part_1x1x1xD, !int -> !head_1x1x1xD, token
  %k_stored = store_view_tko weak %k_tile, %kc_tiles[%b, %place, %h, %zero] : !head_1x1x1xD, !head_part_1x1x1xD, !int -> token
  %v_stored = store_view_tko weak %v_tile, %vc_tiles[%b, %place, %h, %zero] : !head_1x1x1xD, !head_part_1x1x1xD, !int -> token
  return
}
