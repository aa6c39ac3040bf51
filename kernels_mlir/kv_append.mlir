// k_cache[b, positions[b] + t] = k[b, t], and likewise v
//
// One block copies one head's vectors of one position: grid (T, H, B). The head size D is a constant of the entry.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!index = !cuda_tile.tile<1xi32>
!ptr = !cuda_tile.tile<ptr<!elem>>
!int_ptr = !cuda_tile.tile<ptr<i32>>
!heads = !cuda_tile.tensor_view<?x?x?x?x!elem, strides=[?,?,?,1]>
!indices = !cuda_tile.tensor_view<?xi32, strides=[1]>
!index_part = !cuda_tile.partition_view<tile=(1), !indices>
!head_part_1x1x1xD = !cuda_tile.partition_view<tile=(1x1x1x64), !heads>
!head_1x1x1xD = !cuda_tile.tile<1x1x1x64x!elem>

cuda_tile.module @kv_append {
  entry @kv_append(
      %k: !ptr, %k_b: !int, %k_t: !int, %k_h: !int, %k_d: !int, %k_s0: !int, %k_s1: !int, %k_s2: !int, %k_unit: !int,
      %v: !ptr, %v_b: !int, %v_t: !int, %v_h: !int, %v_d: !int, %v_s0: !int, %v_s1: !int, %v_s2: !int, %v_unit: !int,
      %positions: !int_ptr, %positions_b: !int, %positions_unit: !int,
      %kc: !ptr, %kc_b: !int, %kc_p: !int, %kc_h: !int, %kc_d: !int, %kc_s0: !int, %kc_s1: !int, %kc_s2: !int, %kc_unit: !int,
      %vc: !ptr, %vc_b: !int, %vc_p: !int, %vc_h: !int, %vc_d: !int, %vc_s0: !int, %vc_s1: !int, %vc_s2: !int, %vc_unit: !int) {
    %B = assume bounded<0, ?>, %k_b : !int
    %T = assume bounded<0, ?>, %k_t : !int
    %H = assume bounded<0, ?>, %k_h : !int
    %P = assume bounded<0, ?>, %kc_p : !int
    %k0 = assume bounded<0, ?>, %k_s0 : !int
    %k1 = assume bounded<0, ?>, %k_s1 : !int
    %k2 = assume bounded<0, ?>, %k_s2 : !int
    %v0 = assume bounded<0, ?>, %v_s0 : !int
    %v1 = assume bounded<0, ?>, %v_s1 : !int
    %v2 = assume bounded<0, ?>, %v_s2 : !int
    %kc0 = assume bounded<0, ?>, %kc_s0 : !int
    %kc1 = assume bounded<0, ?>, %kc_s1 : !int
    %kc2 = assume bounded<0, ?>, %kc_s2 : !int
    %vc0 = assume bounded<0, ?>, %vc_s0 : !int
    %vc1 = assume bounded<0, ?>, %vc_s1 : !int
    %vc2 = assume bounded<0, ?>, %vc_s2 : !int
    %D = constant <i32: 64> : !int
    %k_view = make_tensor_view %k, shape = [%B, %T, %H, %D], strides = [%k0, %k1, %k2, 1] : !int -> !heads
    %v_view = make_tensor_view %v, shape = [%B, %T, %H, %D], strides = [%v0, %v1, %v2, 1] : !int -> !heads
    %kc_view = make_tensor_view %kc, shape = [%B, %P, %H, %D], strides = [%kc0, %kc1, %kc2, 1] : !int -> !heads
    %vc_view = make_tensor_view %vc, shape = [%B, %P, %H, %D], strides = [%vc0, %vc1, %vc2, 1] : !int -> !heads
    %positions_view = make_tensor_view %positions, shape = [%B], strides = [1] : !int -> !indices
    %k_tiles = make_partition_view %k_view : !head_part_1x1x1xD
    %v_tiles = make_partition_view %v_view : !head_part_1x1x1xD
    %kc_tiles = make_partition_view %kc_view : !head_part_1x1x1xD
    %vc_tiles = make_partition_view %vc_view : !head_part_1x1x1xD
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
}
