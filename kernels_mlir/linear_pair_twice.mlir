// out = x @ weight + bias
//
// As `linear_pair`, for a long K: two steps of K at a time, for which the compiler keeps five tiles of each operand on their way,
// not three or four. A tile past K is zeros. The grid has one row.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!flag = !cuda_tile.tile<i1>
!ptr = !cuda_tile.tile<ptr<!elem>>
!matrix = !cuda_tile.tensor_view<?x?x!elem, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?x!elem, strides=[1]>
!x_part_BMxBK = !cuda_tile.partition_view<tile=(128x64), padding_value = zero, !matrix>
!w_part_BKxBN_every_BKxBR = !cuda_tile.strided_view<tile=(64x128), traversal_strides=[64,64], padding_value = zero, !matrix>
!w_part_BKxBR = !cuda_tile.partition_view<tile=(64x64), padding_value = zero, !matrix>
!bias_part_BN_every_BR = !cuda_tile.strided_view<tile=(128), traversal_strides=[64], padding_value = zero, !vector>
!bias_part_BR = !cuda_tile.partition_view<tile=(64), padding_value = zero, !vector>
!out_part_BMxBN_every_BMxBR = !cuda_tile.strided_view<tile=(128x128), traversal_strides=[128,64], !matrix>
!out_part_BMxBR = !cuda_tile.partition_view<tile=(128x64), !matrix>
!x_BMxBK = !cuda_tile.tile<128x64x!elem>
!w_BKxBN = !cuda_tile.tile<64x128x!elem>
!w_BKxBR = !cuda_tile.tile<64x64x!elem>
!bias_BN = !cuda_tile.tile<128x!elem>
!bias_f32_BN = !cuda_tile.tile<128xf32>
!bias_f32_1xBN = !cuda_tile.tile<1x128xf32>
!bias_BR = !cuda_tile.tile<64x!elem>
!bias_f32_BR = !cuda_tile.tile<64xf32>
!bias_f32_1xBR = !cuda_tile.tile<1x64xf32>
!start = !cuda_tile.tile<f32>
!start_1x1 = !cuda_tile.tile<1x1xf32>
!acc_BMxBN = !cuda_tile.tile<128x128xf32>
!acc_BMxBR = !cuda_tile.tile<128x64xf32>
!out_BMxBN = !cuda_tile.tile<128x128x!elem>
!out_BMxBR = !cuda_tile.tile<128x64x!elem>

cuda_tile.module @linear_pair_twice {
  entry @linear_pair_twice(%x: !ptr, %x_m: !int, %x_k: !int, %x_stride: !int, %x_unit: !int,
      %w: !ptr, %w_k: !int, %w_n: !int, %w_stride: !int, %w_unit: !int,
      %bias: !ptr, %bias_n: !int, %bias_unit: !int,
      %out: !ptr, %out_m: !int, %out_n: !int, %out_stride: !int, %out_unit: !int) {
    %M = assume bounded<0, ?>, %x_m : !int
    %K = assume bounded<0, ?>, %x_k : !int
    %N = assume bounded<0, ?>, %w_n : !int
    %x_row = assume bounded<0, ?>, %x_stride : !int
    %w_row = assume bounded<0, ?>, %w_stride : !int
    %out_row = assume bounded<0, ?>, %out_stride : !int
    %x_view = make_tensor_view %x, shape = [%M, %K], strides = [%x_row, 1] : !int -> !matrix
    %w_view = make_tensor_view %w, shape = [%K, %N], strides = [%w_row, 1] : !int -> !matrix
    %bias_view = make_tensor_view %bias, shape = [%N], strides = [1] : !int -> !vector
    %out_view = make_tensor_view %out, shape = [%M, %N], strides = [%out_row, 1] : !int -> !matrix
    %x_tiles = make_partition_view %x_view : !x_part_BMxBK
    %w_left = make_strided_view %w_view : !w_part_BKxBN_every_BKxBR
    %w_right = make_partition_view %w_view : !w_part_BKxBR
    %bias_left = make_strided_view %bias_view : !bias_part_BN_every_BR
    %bias_right = make_partition_view %bias_view : !bias_part_BR
    %out_left = make_strided_view %out_view : !out_part_BMxBN_every_BMxBR
    %out_right = make_partition_view %out_view : !out_part_BMxBR

    %block, %row_zero, %unused_z = get_tile_block_id : !int
    %blocks, %one_y, %one_z = get_num_tile_blocks : !int
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BM = constant <i32: 128> : !int
    %BN = constant <i32: 128> : !int
    %BR = constant <i32: 64> : !int
    %BK = constant <i32: 64> : !int
    %two = constant <i32: 2> : !int
    %two_BK = muli %two, %BK : !int
    %GROUP = constant <i32: 8> : !int
    %before_right = divi %BN, %BR signed : !int
    %per_tile = addi %before_right, %one : !int  // a tile's columns, in steps of BR
    %width = addi %BN, %BR : !int
    %m_tiles = divi %M, %BM signed rounding<positive_inf> : !int
    %n_tiles = divi %N, %width signed rounding<positive_inf> : !int
    %tiles = muli %m_tiles, %n_tiles : !int
    %span = muli %GROUP, %n_tiles : !int
    // One division instead of three, which every block does before its first load. The compiler knows GROUP and keeps one way.
    %by_row = cmpi equal %GROUP, %one, signed : !int -> !flag
    %steps = divi %K, %two_BK signed rounding<positive_inf> : !int

    // The accumulators start with a zero that the compiler does not know: it takes the first step out of a loop that starts
    // with known ones, and then, with two accumulators, has each product wait for the one before it.
    %start = itof %row_zero signed : !int -> !start
    %start_1x1 = reshape %start : !start -> !start_1x1
    %empty = broadcast %start_1x1 : !start_1x1 -> !acc_BMxBN
    %rest_empty = broadcast %start_1x1 : !start_1x1 -> !acc_BMxBR

    %untouched = make_token : token
    %end = for %tile in (%block to %tiles, step %blocks) : !int iter_values(%before = %untouched) -> (token) {
      // GROUP rows of tiles at a time, column by column: tiles made at the same time share their inputs in the L2 cache.
      %m, %n = if %by_row -> (!int, !int) {
        %m_in_rows = divi %tile, %n_tiles signed : !int
        %n_in_row = remi %tile, %n_tiles signed : !int
        yield %m_in_rows, %n_in_row : !int, !int
      } else {
        %group = divi %tile, %span signed : !int
        %in_group = remi %tile, %span signed : !int
        %m_first = muli %group, %GROUP : !int
        %m_left = subi %m_tiles, %m_first : !int
        %rows = mini %m_left, %GROUP signed : !int
        %row = remi %in_group, %rows signed : !int
        %m_in_group = addi %m_first, %row : !int
        %n_in_group = divi %in_group, %rows signed : !int
        yield %m_in_group, %n_in_group : !int, !int
      }
      %left = muli %n, %per_tile : !int
      %right = addi %left, %before_right : !int

      %bias_tile, %bias_token = load_view_tko weak %bias_left[%left] : !bias_part_BN_every_BR, !int -> !bias_BN, token
      %bias_f32 = ftof %bias_tile : !bias_BN -> !bias_f32_BN
      %bias_line = reshape %bias_f32 : !bias_f32_BN -> !bias_f32_1xBN
      %bias_full = broadcast %bias_line : !bias_f32_1xBN -> !acc_BMxBN
      %rest_bias_tile, %rest_bias_token = load_view_tko weak %bias_right[%right] : !bias_part_BR, !int -> !bias_BR, token
      %rest_bias_f32 = ftof %rest_bias_tile : !bias_BR -> !bias_f32_BR
      %rest_bias_line = reshape %rest_bias_f32 : !bias_f32_BR -> !bias_f32_1xBR
      %rest_bias_full = broadcast %rest_bias_line : !bias_f32_1xBR -> !acc_BMxBR
      %product, %rest_product = for %step in (%zero to %steps, step %one) : !int
          iter_values(%acc = %empty, %rest = %rest_empty) -> (!acc_BMxBN, !acc_BMxBR) {
        %k = muli %step, %two : !int
        %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part_BMxBK, !int -> !x_BMxBK, token
        %w_tile, %w_token = load_view_tko weak %w_left[%k, %left] : !w_part_BKxBN_every_BKxBR, !int -> !w_BKxBN, token
        %rest_w_tile, %rest_w_token = load_view_tko weak %w_right[%k, %right] : !w_part_BKxBR, !int -> !w_BKxBR, token
        %next = mmaf %x_tile, %w_tile, %acc : !x_BMxBK, !w_BKxBN, !acc_BMxBN
        %rest_next = mmaf %x_tile, %rest_w_tile, %rest : !x_BMxBK, !w_BKxBR, !acc_BMxBR
        %k1 = addi %k, %one : !int
        %x_tile1, %x_token1 = load_view_tko weak %x_tiles[%m, %k1] : !x_part_BMxBK, !int -> !x_BMxBK, token
        %w_tile1, %w_token1 = load_view_tko weak %w_left[%k1, %left] : !w_part_BKxBN_every_BKxBR, !int -> !w_BKxBN, token
        %rest_w_tile1, %rest_w_token1 = load_view_tko weak %w_right[%k1, %right] : !w_part_BKxBR, !int -> !w_BKxBR, token
        %next1 = mmaf %x_tile1, %w_tile1, %next : !x_BMxBK, !w_BKxBN, !acc_BMxBN
        %rest_next1 = mmaf %x_tile1, %rest_w_tile1, %rest_next : !x_BMxBK, !w_BKxBR, !acc_BMxBR
        continue %next1, %rest_next1 : !acc_BMxBN, !acc_BMxBR
      }
      %biased = addf %product, %bias_full : !acc_BMxBN
      %rest_biased = addf %rest_product, %rest_bias_full : !acc_BMxBR
      %result = ftof %biased : !acc_BMxBN -> !out_BMxBN
      // Tiles do not meet, but without an order from tile to tile the compiler starts the next one early, which is slower.
      %stored = store_view_tko weak %result, %out_left[%m, %left] token = %before
          : !out_BMxBN, !out_part_BMxBN_every_BMxBR, !int -> token
      %rest_result = ftof %rest_biased : !acc_BMxBR -> !out_BMxBR
      %rest_stored = store_view_tko weak %rest_result, %out_right[%m, %right] token = %stored
          : !out_BMxBR, !out_part_BMxBR, !int -> token
      continue %rest_stored : token
    }
    return
  }
}
