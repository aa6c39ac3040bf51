// out = residual + x @ weight + bias, and each row's sum of squares of it over each part of its columns
//
// As `linear_residual_squares_tile`, but a tile is BN + BR columns wide, with an accumulator for each of the two, and BN is twice
// BR: see `linear_residual_pair`. The grid has one row.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!flag = !cuda_tile.tile<i1>
!ptr = !cuda_tile.tile<ptr<!elem>>
!real = !cuda_tile.tile<f32>
!square_ptr = !cuda_tile.tile<ptr<f32>>
!squares = !cuda_tile.tensor_view<?x?xf32, strides=[?,1]>
!square_part_1xBM = !cuda_tile.partition_view<tile=(1x128), !squares>
!square_1xBM = !cuda_tile.tile<1x128xf32>
!column_BM = !cuda_tile.tile<128xf32>
!matrix = !cuda_tile.tensor_view<?x?x!elem, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?x!elem, strides=[1]>
!x_part_BMxBK = !cuda_tile.partition_view<tile=(128x64), padding_value = zero, !matrix>
!w_part_BKxBN_every_BKxBR = !cuda_tile.strided_view<tile=(64x128), traversal_strides=[64,64], padding_value = zero, !matrix>
!w_part_BKxBR = !cuda_tile.partition_view<tile=(64x64), padding_value = zero, !matrix>
!bias_part_BN_every_BR = !cuda_tile.strided_view<tile=(128), traversal_strides=[64], padding_value = zero, !vector>
!bias_part_BR = !cuda_tile.partition_view<tile=(64), padding_value = zero, !vector>
!r_part_BMxBN_every_BMxBR = !cuda_tile.strided_view<tile=(128x128), traversal_strides=[128,64], padding_value = zero, !matrix>
!r_part_BMxBR = !cuda_tile.partition_view<tile=(128x64), padding_value = zero, !matrix>
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
!halves_BMx2x64 = !cuda_tile.tile<128x2x64xf32>
!halves_BMx2 = !cuda_tile.tile<128x2xf32>
!out_BMxBN = !cuda_tile.tile<128x128x!elem>
!out_BMxBR = !cuda_tile.tile<128x64x!elem>

cuda_tile.module @linear_residual_squares_pair {
  entry @linear_residual_squares_pair(%x: !ptr, %x_m: !int, %x_k: !int, %x_stride: !int, %x_unit: !int,
      %w: !ptr, %w_k: !int, %w_n: !int, %w_stride: !int, %w_unit: !int,
      %bias: !ptr, %bias_n: !int, %bias_unit: !int,
      %r: !ptr, %r_m: !int, %r_n: !int, %r_stride: !int, %r_unit: !int,
      %out: !ptr, %out_m: !int, %out_n: !int, %out_stride: !int, %out_unit: !int,
      %squares: !square_ptr, %squares_z: !int, %squares_l: !int, %squares_stride: !int, %squares_unit: !int) {
    %M = assume bounded<0, ?>, %x_m : !int
    %K = assume bounded<0, ?>, %x_k : !int
    %N = assume bounded<0, ?>, %w_n : !int
    %Z = assume bounded<0, ?>, %squares_z : !int
    %L = assume bounded<0, ?>, %squares_l : !int
    %x_row = assume bounded<0, ?>, %x_stride : !int
    %w_row = assume bounded<0, ?>, %w_stride : !int
    %r_row = assume bounded<0, ?>, %r_stride : !int
    %out_row = assume bounded<0, ?>, %out_stride : !int
    %squares_row = assume bounded<0, ?>, %squares_stride : !int
    %x_view = make_tensor_view %x, shape = [%M, %K], strides = [%x_row, 1] : !int -> !matrix
    %w_view = make_tensor_view %w, shape = [%K, %N], strides = [%w_row, 1] : !int -> !matrix
    %bias_view = make_tensor_view %bias, shape = [%N], strides = [1] : !int -> !vector
    %r_view = make_tensor_view %r, shape = [%M, %N], strides = [%r_row, 1] : !int -> !matrix
    %out_view = make_tensor_view %out, shape = [%M, %N], strides = [%out_row, 1] : !int -> !matrix
    %squares_view = make_tensor_view %squares, shape = [%Z, %L], strides = [%squares_row, 1] : !int -> !squares
    %square_tiles = make_partition_view %squares_view : !square_part_1xBM
    %x_tiles = make_partition_view %x_view : !x_part_BMxBK
    %w_left = make_strided_view %w_view : !w_part_BKxBN_every_BKxBR
    %w_right = make_partition_view %w_view : !w_part_BKxBR
    %bias_left = make_strided_view %bias_view : !bias_part_BN_every_BR
    %bias_right = make_partition_view %bias_view : !bias_part_BR
    %r_left = make_strided_view %r_view : !r_part_BMxBN_every_BMxBR
    %r_right = make_partition_view %r_view : !r_part_BMxBR
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
    %steps = divi %K, %BK signed rounding<positive_inf> : !int

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
      %product, %rest_product = for %k in (%zero to %steps, step %one) : !int
          iter_values(%acc = %empty, %rest = %rest_empty) -> (!acc_BMxBN, !acc_BMxBR) {
        %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part_BMxBK, !int -> !x_BMxBK, token
        %w_tile, %w_token = load_view_tko weak %w_left[%k, %left] : !w_part_BKxBN_every_BKxBR, !int -> !w_BKxBN, token
        %rest_w_tile, %rest_w_token = load_view_tko weak %w_right[%k, %right] : !w_part_BKxBR, !int -> !w_BKxBR, token
        %next = mmaf %x_tile, %w_tile, %acc : !x_BMxBK, !w_BKxBN, !acc_BMxBN
        %rest_next = mmaf %x_tile, %rest_w_tile, %rest : !x_BMxBK, !w_BKxBR, !acc_BMxBR
        continue %next, %rest_next : !acc_BMxBN, !acc_BMxBR
      }
      %biased = addf %product, %bias_full : !acc_BMxBN
      %rest_biased = addf %rest_product, %rest_bias_full : !acc_BMxBR

      // The residual may be the output itself: the stores are ordered after the loads by their tokens. Tiles do not meet, but
      // without an order from tile to tile the compiler starts the next one early, which is slower.
      %r_tile, %r_token = load_view_tko weak %r_left[%m, %left] token = %before
          : !r_part_BMxBN_every_BMxBR, !int -> !out_BMxBN, token
      %r_f32 = ftof %r_tile : !out_BMxBN -> !acc_BMxBN
      %summed = addf %biased, %r_f32 : !acc_BMxBN
      %rest_r_tile, %rest_r_token = load_view_tko weak %r_right[%m, %right] token = %before
          : !r_part_BMxBR, !int -> !out_BMxBR, token
      %rest_r_f32 = ftof %rest_r_tile : !out_BMxBR -> !acc_BMxBR
      %rest_summed = addf %rest_biased, %rest_r_f32 : !acc_BMxBR
      %result = ftof %summed : !acc_BMxBN -> !out_BMxBN
      %read = join_tokens %r_token, %rest_r_token : token
      %stored = store_view_tko weak %result, %out_left[%m, %left] token = %read
          : !out_BMxBN, !out_part_BMxBN_every_BMxBR, !int -> token
      %rest_result = ftof %rest_summed : !acc_BMxBR -> !out_BMxBR
      %rest_stored = store_view_tko weak %rest_result, %out_right[%m, %right] token = %stored
          : !out_BMxBR, !out_part_BMxBR, !int -> token

      // The left part by halves: by whole rows the compiler has the products above wait for one another.
      %square = mulf %summed, %summed : !acc_BMxBN
      %square_halves = reshape %square : !acc_BMxBN -> !halves_BMx2x64
      %halves = reduce %square_halves dim=2 identities=[0.0 : f32] : !halves_BMx2x64 -> !halves_BMx2
      (%half_a: !real, %half_b: !real) {
        %half_ab = addf %half_a, %half_b : !real
        yield %half_ab : !real
      }
      %left_sum = reduce %halves dim=1 identities=[0.0 : f32] : !halves_BMx2 -> !column_BM
      (%left_a: !real, %left_b: !real) {
        %left_ab = addf %left_a, %left_b : !real
        yield %left_ab : !real
      }
      %rest_square = mulf %rest_summed, %rest_summed : !acc_BMxBR
      %rest_sum = reduce %rest_square dim=1 identities=[0.0 : f32] : !acc_BMxBR -> !column_BM
      (%right_a: !real, %right_b: !real) {
        %right_ab = addf %right_a, %right_b : !real
        yield %right_ab : !real
      }
      %row_sum = addf %left_sum, %rest_sum : !column_BM
      %row_line = reshape %row_sum : !column_BM -> !square_1xBM
      %squares_stored = store_view_tko weak %row_line, %square_tiles[%n, %m] optimization_hints = <default = {allow_tma = false}>
          : !square_1xBM, !square_part_1xBM, !int -> token
      continue %rest_stored : token
    }
    return
  }
}
