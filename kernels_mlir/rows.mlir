// What kernels over rows share: R rows of at most BC columns in registers, and the fragments for their masks, loads and
// stores.

include "common.mlir"

sizes R = 2, BC = 1024

!in_part = !cuda_tile.partition_view<tile=(RxBC), padding_value = zero, !matrix>
!out_part = !cuda_tile.partition_view<tile=(RxBC), !matrix>
!first_part = !cuda_tile.partition_view<tile=(Rx1), padding_value = zero, !matrix>
!vector_part = !cuda_tile.partition_view<tile=(BC), padding_value = zero, !vector>
!rows = !cuda_tile.tile<RxBCxT>
!row_in = !cuda_tile.partition_view<tile=(1xBC), padding_value = zero, !matrix>
!row_out = !cuda_tile.partition_view<tile=(1xBC), !matrix>
!row = !cuda_tile.tile<1xBCxT>
!row_f32 = !cuda_tile.tile<1xBCxf32>
!first = !cuda_tile.tile<Rx1xT>
!line = !cuda_tile.tile<BCxT>
!lane = !cuda_tile.tile<BCxi32>
!column = !cuda_tile.tile<1xBCxi32>
!inside_1 = !cuda_tile.tile<1xBCxi1>
!inside = !cuda_tile.tile<RxBCxi1>

// The numbers of BC columns from %first on
fragment @columns_from(%first: !int) -> !column {
  %lane = iota : !lane
  %lane_1 = reshape %lane : !lane -> !column
  %first_1x1 = reshape %first : !int -> !int_1x1
  %firsts = broadcast %first_1x1 : !int_1x1 -> !column
  %columns = addi %firsts, %lane_1 : !column
  yield %columns : !column
}

fragment @first_columns() -> !column {
  %lane = iota : !lane
  %columns = reshape %lane : !lane -> !column
  yield %columns : !column
}

// Which of these columns a row of C has
fragment @inside(%columns: !column, %C: !int) -> !inside {
  %C_1x1 = reshape %C : !int -> !int_1x1
  %C_line = broadcast %C_1x1 : !int_1x1 -> !column
  %inside_1 = cmpi less_than %columns, %C_line, signed : !column -> !inside_1
  %inside = broadcast %inside_1 : !inside_1 -> !inside
  yield %inside : !inside
}

// A scalar for each row, and for each element
fragment @for_rows(%scalar: !real) -> !stat_1 {
  %scalar_1x1 = reshape %scalar : !real -> !real_1x1
  %column = broadcast %scalar_1x1 : !real_1x1 -> !stat_1
  yield %column : !stat_1
}

fragment @for_elements(%scalar: !real) -> !f32 {
  %scalar_1x1 = reshape %scalar : !real -> !real_1x1
  %all = broadcast %scalar_1x1 : !real_1x1 -> !f32
  yield %all : !f32
}

fragment @width_of(%C: !int) -> !stat_1 {
  %width = itof %C signed : !int -> !real
  %widths = call @for_rows(%width)
  yield %widths : !stat_1
}

// A vector of BC columns, read by the threads themselves, and the token of its load
fragment @load_line(%tiles: !vector_part, %j: !int) -> (!line, token) {
  %tile, %token = load_view_tko weak %tiles[%j] optimization_hints = <default = {allow_tma = false}>
      : !vector_part, !int -> !line, token
  yield %tile, %token : !line, token
}

// Each row gets the vector.
fragment @for_each_row(%line: !line) -> !f32 {
  %f32 = ftof %line : !line -> !line_f32
  %row = reshape %f32 : !line_f32 -> !line_f32_1
  %rows = broadcast %row : !line_f32_1 -> !f32
  yield %rows : !f32
}

// BC columns of R rows, read and written by the threads themselves
fragment @load_rows(%tiles: !in_part, %n: !int, %j: !int) -> !rows {
  %tile, %token = load_view_tko weak %tiles[%n, %j] optimization_hints = <default = {allow_tma = false}>
      : !in_part, !int -> !rows, token
  yield %tile : !rows
}

fragment @store_rows(%value: !f32, %tiles: !out_part, %n: !int, %j: !int) {
  %result = ftof %value : !f32 -> !rows
  %stored = store_view_tko weak %result, %tiles[%n, %j] optimization_hints = <default = {allow_tma = false}>
      : !rows, !out_part, !int -> token
}
