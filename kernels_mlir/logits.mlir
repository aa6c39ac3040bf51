// out = x @ weight.T: both operands are walked along their rows, and the weight's tile is turned over. Persistent, with one
// accumulator and, split-N, with two.

include "split_n.mlir"

!weight_part = !cuda_tile.partition_view<tile=(BNxBK), padding_value = zero, !matrix>
!weight_left = !cuda_tile.strided_view<tile=(BNxBK), traversal_strides=[BR,BK], padding_value = zero, !matrix>
!weight_right = !cuda_tile.partition_view<tile=(BRxBK), padding_value = zero, !matrix>
!weight = !cuda_tile.tile<BNxBKxT>
!rest_weight = !cuda_tile.tile<BRxBKxT>

kernel @logits op = logits {
  %x_tiles = make_partition_view %x_view : !x_part
  %w_tiles = make_partition_view %weight_view : !weight_part
  %out_tiles = make_partition_view %out_view : !out_part
  %block, %unused_y, %unused_z = get_tile_block_id : !int
  %blocks, %one_y, %one_z = get_num_tile_blocks : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %m_tiles, %n_tiles, %tiles, %steps = call @tiles_of(%M, %V, %C)
  %empty = constant <f32: 0.0> : !acc
  for %tile in (%block to %tiles, step %blocks) : !int {
    %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
    %product = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!acc) {
      %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
      %w_tile, %w_token = load_view_tko weak %w_tiles[%n, %k] : !weight_part, !int -> !weight, token
      %w_turned = permute %w_tile [1, 0] : !weight -> !w
      %next = mmaf %x_tile, %w_turned, %acc : !x, !w, !acc
      continue %next : !acc
    }
    %result = call @rounded(%product)
    %stored = store_view_tko weak %result, %out_tiles[%m, %n] : !out, !out_part, !int -> token
    continue
  }
  return
}

kernel @logits_split_n op = logits {
  %x_tiles = make_partition_view %x_view : !x_part
  %w_left = make_strided_view %weight_view : !weight_left
  %w_right = make_partition_view %weight_view : !weight_right
  %out_left = make_strided_view %out_view : !out_left
  %out_right = make_partition_view %out_view : !out_right
  %block, %row_zero, %unused_z = get_tile_block_id : !int
  %blocks, %one_y, %one_z = get_num_tile_blocks : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %m_tiles, %n_tiles, %tiles, %steps = call @split_tiles_of(%M, %V, %C)
  %empty = call @unknown_zero(%row_zero)
  %rest_empty = call @unknown_zero<BN = BR>(%row_zero)
  for %tile in (%block to %tiles, step %blocks) : !int {
    %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
    %left, %right = call @split_columns(%n)
    %product, %rest_product = for %k in (%zero to %steps, step %one) : !int
        iter_values(%acc = %empty, %rest = %rest_empty) -> (!acc, !rest_acc) {
      %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part, !int -> !x, token
      %w_tile, %w_token = load_view_tko weak %w_left[%left, %k] : !weight_left, !int -> !weight, token
      %rest_w_tile, %rest_w_token = load_view_tko weak %w_right[%right, %k] : !weight_right, !int -> !rest_weight, token
      %w_turned = permute %w_tile [1, 0] : !weight -> !w
      %rest_w_turned = permute %rest_w_tile [1, 0] : !rest_weight -> !rest_w
      %next = mmaf %x_tile, %w_turned, %acc : !x, !w, !acc
      %rest_next = mmaf %x_tile, %rest_w_turned, %rest : !x, !rest_w, !rest_acc
      continue %next, %rest_next : !acc, !rest_acc
    }
    call @store_split_unordered(%product, %rest_product, %out_left, %out_right, %m, %left, %right)
    continue
  }
  return
}
