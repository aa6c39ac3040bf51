// out = residual + x @ weight + bias, and each row's sum of squares of it over each part of its columns
//
// As `linear_residual`; a part is one tile wide.

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
!w_part_BKxBN = !cuda_tile.partition_view<tile=(64x128), padding_value = zero, !matrix>
!bias_part_BN = !cuda_tile.partition_view<tile=(128), padding_value = zero, !vector>
!r_part_BMxBN = !cuda_tile.partition_view<tile=(128x128), padding_value = zero, !matrix>
!out_part_BMxBN = !cuda_tile.partition_view<tile=(128x128), !matrix>
!x_BMxBK = !cuda_tile.tile<128x64x!elem>
!w_BKxBN = !cuda_tile.tile<64x128x!elem>
!bias_BN = !cuda_tile.tile<128x!elem>
!bias_f32_BN = !cuda_tile.tile<128xf32>
!bias_f32_1xBN = !cuda_tile.tile<1x128xf32>
!acc_BMxBN = !cuda_tile.tile<128x128xf32>
!out_BMxBN = !cuda_tile.tile<128x128x!elem>

cuda_tile.module @linear_residual_squares_tile {
  entry @linear_residual_squares_tile(%x: !ptr, %x_m: !int, %x_k: !int, %x_stride: !int, %x_unit: !int,
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
    %w_tiles = make_partition_view %w_view : !w_part_BKxBN
    %bias_tiles = make_partition_view %bias_view : !bias_part_BN
    %r_tiles = make_partition_view %r_view : !r_part_BMxBN
    %out_tiles = make_partition_view %out_view : !out_part_BMxBN

    %block, %unused_y, %unused_z = get_tile_block_id : !int
    %blocks, %one_y, %one_z = get_num_tile_blocks : !int
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BM = constant <i32: 128> : !int
    %BN = constant <i32: 128> : !int
    %BK = constant <i32: 64> : !int
    %GROUP = constant <i32: 8> : !int
    %m_tiles = divi %M, %BM signed rounding<positive_inf> : !int
    %n_tiles = divi %N, %BN signed rounding<positive_inf> : !int
    %tiles = muli %m_tiles, %n_tiles : !int
    %span = muli %GROUP, %n_tiles : !int
    // One division instead of three, which every block does before its first load. The compiler knows GROUP and keeps one way.
    %by_row = cmpi equal %GROUP, %one, signed : !int -> !flag
    %steps = divi %K, %BK signed rounding<positive_inf> : !int
    %empty = constant <f32: 0.0> : !acc_BMxBN

    %start = make_token : token
    %end = for %tile in (%block to %tiles, step %blocks) : !int iter_values(%before = %start) -> (token) {
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

      %bias_tile, %bias_token = load_view_tko weak %bias_tiles[%n] : !bias_part_BN, !int -> !bias_BN, token
      %bias_f32 = ftof %bias_tile : !bias_BN -> !bias_f32_BN
      %bias_line = reshape %bias_f32 : !bias_f32_BN -> !bias_f32_1xBN
      %bias_full = broadcast %bias_line : !bias_f32_1xBN -> !acc_BMxBN
      %product = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!acc_BMxBN) {
        %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part_BMxBK, !int -> !x_BMxBK, token
        %w_tile, %w_token = load_view_tko weak %w_tiles[%k, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token
        %next = mmaf %x_tile, %w_tile, %acc : !x_BMxBK, !w_BKxBN, !acc_BMxBN
        continue %next : !acc_BMxBN
      }
      %biased = addf %product, %bias_full : !acc_BMxBN

      // The residual may be the output itself: the store is ordered after this load by its token. Tiles do not meet, but
      // without an order from tile to tile the compiler starts the next one early, which is slower.
      %r_tile, %r_token = load_view_tko weak %r_tiles[%m, %n] token = %before : !r_part_BMxBN, !int -> !out_BMxBN, token
      %r_f32 = ftof %r_tile : !out_BMxBN -> !acc_BMxBN
      %summed = addf %biased, %r_f32 : !acc_BMxBN
      %result = ftof %summed : !acc_BMxBN -> !out_BMxBN
      %stored = store_view_tko weak %result, %out_tiles[%m, %n] token = %r_token : !out_BMxBN, !out_part_BMxBN, !int -> token

      %square = mulf %summed, %summed : !acc_BMxBN
      // The plain sum costs nothing and decides how the compiler arranges the products above: without it they wait for one another.
      %row_sum_unused, %row_sum = reduce %summed, %square dim=1 identities=[0.0 : f32, 0.0 : f32]
          : !acc_BMxBN, !acc_BMxBN -> !column_BM, !column_BM
      (%sum_a: !real, %sum_b: !real, %square_a: !real, %square_b: !real) {
        %sum_ab = addf %sum_a, %sum_b : !real
        %square_ab = addf %square_a, %square_b : !real
        yield %sum_ab, %square_ab : !real, !real
      }
      %row_line = reshape %row_sum : !column_BM -> !square_1xBM
      %squares_stored = store_view_tko weak %row_line, %square_tiles[%n, %m] : !square_1xBM, !square_part_1xBM, !int -> token
      continue %stored : token
    }
    return
  }
}
