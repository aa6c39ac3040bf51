// The likeliest token of each row of logits, of which each rank has some columns.

include "collectives.mlir"
include "next_token.mlir"

sizes BZ = 64

!rank_values_part = !cuda_tile.partition_view<tile=(1x1xBZ), padding_value = neg_inf, !parts>
!rank_indices_part = !cuda_tile.partition_view<tile=(1x1xBZ), padding_value = zero, !cuda_tile.tensor_view<?x?x?xi32, strides=[?,?,1]>>
!plane_values = !cuda_tile.tile<1x1xBZxf32>
!plane_indices = !cuda_tile.tile<1x1xBZxi32>

// tokens[m] = the index of the largest value of row m over all ranks, where those of rank r begin at r times %width;
// positions[m] += 1
//
// One block makes every B-th row: of equals that of the least index, as the parts of a rank need not stand in order. Values
// past Z are padded with -inf and never win, nor does NaN.
kernel @next_token_of_ranks op = next_token_of_ranks {
  %value_tiles = make_partition_view %values_view : !rank_values_part
  %place_tiles = make_partition_view %indices_view : !rank_indices_part
  %token_tiles = make_partition_view %tokens_view : !index_part
  %position_tiles = make_partition_view %positions_view : !index_part
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BZ = constant <i32: BZ> : !int
  %steps = divi %Z, %BZ signed rounding<positive_inf> : !int
  %lowest = constant <f32: 0xFF800000> : !real_1x1  // -inf
  %no_token = constant <i32: 0> : !int_1x1
  %ready = gdc_wait_tko -> token
  %met = call @meet(%flags_ptr, %flags_stride0, %flags_stride1, %state_view, %R, %rank, %ready)
  %block, %unused_y, %unused_z = get_tile_block_id : !int
  %blocks, %unused_by, %unused_bz = get_num_tile_blocks : !int
  for %m in (%block to %M, step %blocks) : !int {
    %best, %token = for %r in (%zero to %R, step %one) : !int iter_values(%best_of = %lowest, %token_of = %no_token)
        -> (!real_1x1, !int_1x1) {
      %first_index = muli %r, %width : !int
      %first_1x1 = reshape %first_index : !int -> !int_1x1
      %b, %t = for %j in (%zero to %steps, step %one) : !int iter_values(%best_old = %best_of, %token_old = %token_of)
          -> (!real_1x1, !int_1x1) {
        %value_plane, %t0 = load_view_tko weak %value_tiles[%r, %m, %j] token = %met
            optimization_hints = <default = {allow_tma = false}> : !rank_values_part, !int -> !plane_values, token
        %place_plane, %t1 = load_view_tko weak %place_tiles[%r, %m, %j] token = %met
            optimization_hints = <default = {allow_tma = false}> : !rank_indices_part, !int -> !plane_indices, token
        %value = reshape %value_plane : !plane_values -> !cuda_tile.tile<1xBZxf32>
        %place = reshape %place_plane : !plane_indices -> !cuda_tile.tile<1xBZxi32>
        %largest = call @max_in_rows<R = 1, BC = BZ>(%value)
        %first = call @first_of<BV = BZ>(%largest, %value, %place)
        %index = addi %first, %first_1x1 : !int_1x1
        %better = call @comes_first(%largest, %index, %best_old, %token_old)
        %token_new = select %better, %index, %token_old : !bit_1x1, !int_1x1
        %best_new = select %better, %largest, %best_old : !bit_1x1, !real_1x1
        continue %best_new, %token_new : !real_1x1, !int_1x1
      }
      continue %b, %t : !real_1x1, !int_1x1
    }
    %token_tile = reshape %token : !int_1x1 -> !int_1
    %t2 = store_view_tko weak %token_tile, %token_tiles[%m] token = %met
        optimization_hints = <default = {allow_tma = false}> : !int_1, !index_part, !int -> token
    %position, %read = load_view_tko weak %position_tiles[%m] token = %met
        optimization_hints = <default = {allow_tma = false}> : !index_part, !int -> !int_1, token
    %unit = constant <i32: 1> : !int_1
    %position_next = addi %position, %unit : !int_1
    %t3 = store_view_tko weak %position_next, %position_tiles[%m] token = %read
        optimization_hints = <default = {allow_tma = false}> : !int_1, !index_part, !int -> token
    continue
  }
  return
}
