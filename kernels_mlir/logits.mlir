// out = x @ weight.T, weight stored (V, C)
//
// As `linear`, but both operands are walked along their rows; the weight's tile is turned over before the product.
// No bias: GPT-2's output layer has none.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!flag = !cuda_tile.tile<i1>
!ptr = !cuda_tile.tile<ptr<!elem>>
!matrix = !cuda_tile.tensor_view<?x?x!elem, strides=[?,1]>
!x_part_BMxBK = !cuda_tile.partition_view<tile=(128x64), padding_value = zero, !matrix>
!w_part_BNxBK = !cuda_tile.partition_view<tile=(128x64), padding_value = zero, !matrix>
!out_part_BMxBN = !cuda_tile.partition_view<tile=(128x128), !matrix>
!x_BMxBK = !cuda_tile.tile<128x64x!elem>
!w_BNxBK = !cuda_tile.tile<128x64x!elem>
!w_BKxBN = !cuda_tile.tile<64x128x!elem>
!acc_BMxBN = !cuda_tile.tile<128x128xf32>
!out_BMxBN = !cuda_tile.tile<128x128x!elem>

cuda_tile.module @logits {
  entry @logits(%x: !ptr, %x_m: !int, %x_c: !int, %x_stride: !int, %x_unit: !int,
      %w: !ptr, %w_v: !int, %w_c: !int, %w_stride: !int, %w_unit: !int,
      %out: !ptr, %out_m: !int, %out_v: !int, %out_stride: !int, %out_unit: !int) {
    %M = assume bounded<0, ?>, %x_m : !int
    %C = assume bounded<0, ?>, %x_c : !int
    %V = assume bounded<0, ?>, %w_v : !int
    %x_row = assume bounded<0, ?>, %x_stride : !int
    %w_row = assume bounded<0, ?>, %w_stride : !int
    %out_row = assume bounded<0, ?>, %out_stride : !int
    %x_view = make_tensor_view %x, shape = [%M, %C], strides = [%x_row, 1] : !int -> !matrix
    %w_view = make_tensor_view %w, shape = [%V, %C], strides = [%w_row, 1] : !int -> !matrix
    %out_view = make_tensor_view %out, shape = [%M, %V], strides = [%out_row, 1] : !int -> !matrix
    %x_tiles = make_partition_view %x_view : !x_part_BMxBK
    %w_tiles = make_partition_view %w_view : !w_part_BNxBK
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
    %n_tiles = divi %V, %BN signed rounding<positive_inf> : !int
    %tiles = muli %m_tiles, %n_tiles : !int
    %span = muli %GROUP, %n_tiles : !int
    // One division instead of three, which every block does before its first load. The compiler knows GROUP and keeps one way.
    %by_row = cmpi equal %GROUP, %one, signed : !int -> !flag
    %steps = divi %C, %BK signed rounding<positive_inf> : !int
    %empty = constant <f32: 0.0> : !acc_BMxBN

    for %tile in (%block to %tiles, step %blocks) : !int {
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

      %product = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!acc_BMxBN) {
        %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part_BMxBK, !int -> !x_BMxBK, token
        %w_tile, %w_token = load_view_tko weak %w_tiles[%n, %k] : !w_part_BNxBK, !int -> !w_BNxBK, token
        %w_turned = permute %w_tile [1, 0] : !w_BNxBK -> !w_BKxBN
        %next = mmaf %x_tile, %w_turned, %acc : !x_BMxBK, !w_BKxBN, !acc_BMxBN
        continue %next : !acc_BMxBN
      }
      %result = ftof %product : !acc_BMxBN -> !out_BMxBN
      %stored = store_view_tko weak %result, %out_tiles[%m, %n] : !out_BMxBN, !out_part_BMxBN, !int -> token
      continue
    }
    return
  }
}
