// partial[z] = x[:, part z] @ weight[part z]
//
// One block makes a BM x BN tile of one part's product: of few rows and a long K, more blocks share the walk. The steps of
// 64 that K has are dealt out to the parts in order; BK is a number of these steps, or goes into one.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!ptr = !cuda_tile.tile<ptr<!elem>>
!result = !cuda_tile.tile<ptr<f32>>
!matrix = !cuda_tile.tensor_view<?x?x!elem, strides=[?,1]>
!parts = !cuda_tile.tensor_view<?x?x?xf32, strides=[?,?,1]>
!x_part_BMxBK = !cuda_tile.partition_view<tile=(64x128), padding_value = zero, !matrix>
!w_part_BKxBN = !cuda_tile.partition_view<tile=(128x32), padding_value = zero, !matrix>
!out_part_1xBMxBN = !cuda_tile.partition_view<tile=(1x64x32), !parts>
!x_BMxBK = !cuda_tile.tile<64x128x!elem>
!w_BKxBN = !cuda_tile.tile<128x32x!elem>
!acc_BMxBN = !cuda_tile.tile<64x32xf32>
!out_1xBMxBN = !cuda_tile.tile<1x64x32xf32>

cuda_tile.module @linear_parts {
  entry @linear_parts(%x: !ptr, %x_m: !int, %x_k: !int, %x_stride: !int, %x_unit: !int,
      %w: !ptr, %w_k: !int, %w_n: !int, %w_stride: !int, %w_unit: !int,
      %p: !result, %p_z: !int, %p_m: !int, %p_n: !int, %p_s0: !int, %p_s1: !int, %p_unit: !int) {
    %M = assume bounded<0, ?>, %x_m : !int
    %K = assume bounded<0, ?>, %x_k : !int
    %N = assume bounded<0, ?>, %w_n : !int
    %Z = assume bounded<0, ?>, %p_z : !int
    %x_row = assume bounded<0, ?>, %x_stride : !int
    %w_row = assume bounded<0, ?>, %w_stride : !int
    %p0 = assume bounded<0, ?>, %p_s0 : !int
    %p1 = assume bounded<0, ?>, %p_s1 : !int
    %x_view = make_tensor_view %x, shape = [%M, %K], strides = [%x_row, 1] : !int -> !matrix
    %w_view = make_tensor_view %w, shape = [%K, %N], strides = [%w_row, 1] : !int -> !matrix
    %p_view = make_tensor_view %p, shape = [%Z, %M, %N], strides = [%p0, %p1, 1] : !int -> !parts
    %x_tiles = make_partition_view %x_view : !x_part_BMxBK
    %w_tiles = make_partition_view %w_view : !w_part_BKxBN
    %p_tiles = make_partition_view %p_view : !out_part_1xBMxBN

    %n, %m, %z = get_tile_block_id : !int
    %blocks_x, %blocks_y, %parts = get_num_tile_blocks : !int
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BK = constant <i32: 128> : !int
    %deal = constant <i32: 64> : !int
    %dealt = divi %K, %deal signed rounding<positive_inf> : !int
    %each = divi %dealt, %parts signed rounding<positive_inf> : !int
    %length = muli %each, %deal : !int
    %steps = divi %length, %BK signed : !int
    %first = muli %z, %steps : !int
    %behind = addi %first, %steps : !int
    %all = divi %K, %BK signed rounding<positive_inf> : !int
    %last = mini %behind, %all signed : !int
    %empty = constant <f32: 0.0> : !acc_BMxBN
    %product = for %k in (%first to %last, step %one) : !int iter_values(%acc = %empty) -> (!acc_BMxBN) {
      %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part_BMxBK, !int -> !x_BMxBK, token
      %w_tile, %w_token = load_view_tko weak %w_tiles[%k, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token
      %next = mmaf %x_tile, %w_tile, %acc : !x_BMxBK, !w_BKxBN, !acc_BMxBN
      continue %next : !acc_BMxBN
    }
    %result = reshape %product : !acc_BMxBN -> !out_1xBMxBN
    %stored = store_view_tko weak %result, %p_tiles[%z, %m, %n] : !out_1xBMxBN, !out_part_1xBMxBN, !int -> token
    return
  }
}
