// out[m] = index of the largest x[m, :], the first of equals
//
// One block makes one row. Each lane keeps its largest value and where it stood, then the lanes are compared: a larger
// value wins, of equal values the smaller index. Columns past V are padded with -inf and never win.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!int_1 = !cuda_tile.tile<1xi32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!bit = !cuda_tile.tile<i1>
!ptr = !cuda_tile.tile<ptr<!elem>>
!int_ptr = !cuda_tile.tile<ptr<i32>>
!matrix = !cuda_tile.tensor_view<?x?x!elem, strides=[?,1]>
!indices = !cuda_tile.tensor_view<?xi32, strides=[1]>
!x_part_1xBV = !cuda_tile.partition_view<tile=(1x1024), padding_value = neg_inf, !matrix>
!out_part = !cuda_tile.partition_view<tile=(1), !indices>
!row_1xBV = !cuda_tile.tile<1x1024x!elem>
!f32_1xBV = !cuda_tile.tile<1x1024xf32>
!lane_BV = !cuda_tile.tile<1024xi32>
!column_1xBV = !cuda_tile.tile<1x1024xi32>
!mask_1xBV = !cuda_tile.tile<1x1024xi1>

cuda_tile.module @argmax {
  entry @argmax(%x: !ptr, %x_m: !int, %x_v: !int, %x_stride: !int, %x_unit: !int,
      %out: !int_ptr, %out_m: !int, %out_unit: !int) {
    %M = assume bounded<0, ?>, %x_m : !int
    %V = assume bounded<0, ?>, %x_v : !int
    %x_row = assume bounded<0, ?>, %x_stride : !int
    %x_view = make_tensor_view %x, shape = [%M, %V], strides = [%x_row, 1] : !int -> !matrix
    %out_view = make_tensor_view %out, shape = [%M], strides = [1] : !int -> !indices
    %x_tiles = make_partition_view %x_view : !x_part_1xBV
    %out_tiles = make_partition_view %out_view : !out_part

    %m, %unused_y, %unused_z = get_tile_block_id : !int
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BV = constant <i32: 1024> : !int
    %steps = divi %V, %BV signed rounding<positive_inf> : !int
    %lowest = constant <f32: 0xFF800000> : !f32_1xBV  // -inf
    %lanes = iota : !lane_BV
    %lane_line = reshape %lanes : !lane_BV -> !column_1xBV

    %values, %places = for %j in (%zero to %steps, step %one) : !int iter_values(%best = %lowest, %place = %lane_line) -> (!f32_1xBV, !column_1xBV) {
      %tile, %token = load_view_tko weak %x_tiles[%m, %j] : !x_part_1xBV, !int -> !row_1xBV, token
      %value = ftof %tile : !row_1xBV -> !f32_1xBV
      %first = muli %j, %BV : !int
      %first_1x1 = reshape %first : !int -> !int_1x1
      %first_full = broadcast %first_1x1 : !int_1x1 -> !column_1xBV
      %column = addi %first_full, %lane_line : !column_1xBV
      %larger = cmpf greater_than ordered %value, %best : !f32_1xBV -> !mask_1xBV
      %next_best = select %larger, %value, %best : !mask_1xBV, !f32_1xBV
      %next_place = select %larger, %column, %place : !mask_1xBV, !column_1xBV
      continue %next_best, %next_place : !f32_1xBV, !column_1xBV
    }
    %best_of_row, %place_of_row = reduce %values, %places dim=1 identities=[0xFF800000 : f32, 2147483647 : i32] : !f32_1xBV, !column_1xBV -> !real_1, !int_1
    (%value_a: !real, %value_b: !real, %place_a: !int, %place_b: !int) {
      %larger = cmpf greater_than ordered %value_a, %value_b : !real -> !bit
      %equal = cmpf equal ordered %value_a, %value_b : !real -> !bit
      %earlier = cmpi less_than %place_a, %place_b, signed : !int -> !bit
      %tie = andi %equal, %earlier : !bit
      %keep = ori %larger, %tie : !bit
      %value_kept = select %keep, %value_a, %value_b : !bit, !real
      %place_kept = select %keep, %place_a, %place_b : !bit, !int
      yield %value_kept, %place_kept : !real, !int
    }
    %stored = store_view_tko weak %place_of_row, %out_tiles[%m] : !int_1, !out_part, !int -> token
    return
  }
}
