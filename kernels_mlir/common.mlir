// Types that most kernels use, and sums and maxima over tiles of R rows and BC columns.

sizes R = 2, BC = 1024

!int = !cuda_tile.tile<i32>
!int_1 = !cuda_tile.tile<1xi32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!flag = !cuda_tile.tile<i1>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>

!vector = !cuda_tile.tensor_view<?xT, strides=[1]>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!heads = !cuda_tile.tensor_view<?x?x?xT, strides=[?,?,1]>
!batch = !cuda_tile.tensor_view<?x?x?x?xT, strides=[?,?,?,1]>
!reals = !cuda_tile.tensor_view<?x?xf32, strides=[?,1]>
!parts = !cuda_tile.tensor_view<?x?x?xf32, strides=[?,?,1]>
!spans = !cuda_tile.tensor_view<?x?x?x?xf32, strides=[?,?,?,1]>
!indices = !cuda_tile.tensor_view<?xi32, strides=[1]>
!index_part = !cuda_tile.partition_view<tile=(1), !indices>

!f32 = !cuda_tile.tile<RxBCxf32>
!stat = !cuda_tile.tile<Rxf32>
!stat_1 = !cuda_tile.tile<Rx1xf32>
!line_f32 = !cuda_tile.tile<BCxf32>
!line_f32_1 = !cuda_tile.tile<1xBCxf32>

fragment @row_sums(%value: !f32) -> !stat {
  %sums = reduce %value dim=1 identities=[0.0 : f32] : !f32 -> !stat
  (%a: !real, %b: !real) {
    %ab = addf %a, %b : !real
    yield %ab : !real
  }
  yield %sums : !stat
}

fragment @column_sums(%value: !f32) -> !line_f32 {
  %sums = reduce %value dim=0 identities=[0.0 : f32] : !f32 -> !line_f32
  (%a: !real, %b: !real) {
    %ab = addf %a, %b : !real
    yield %ab : !real
  }
  yield %sums : !line_f32
}

// The same as a column, and as a row
fragment @sum_in_rows(%value: !f32) -> !stat_1 {
  %sums = call @row_sums(%value)
  %column = reshape %sums : !stat -> !stat_1
  yield %column : !stat_1
}

fragment @sum_in_columns(%value: !f32) -> !line_f32_1 {
  %sums = call @column_sums(%value)
  %row = reshape %sums : !line_f32 -> !line_f32_1
  yield %row : !line_f32_1
}

fragment @max_in_rows(%value: !f32) -> !stat_1 {
  %maxima = reduce %value dim=1 identities=[0xFF800000 : f32] : !f32 -> !stat
  (%a: !real, %b: !real) {
    %larger = maxf %a, %b : !real
    yield %larger : !real
  }
  %column = reshape %maxima : !stat -> !stat_1
  yield %column : !stat_1
}

fragment @max_in_columns(%value: !f32) -> !line_f32_1 {
  %maxima = reduce %value dim=0 identities=[0xFF800000 : f32] : !f32 -> !line_f32
  (%a: !real, %b: !real) {
    %larger = maxf %a, %b : !real
    yield %larger : !real
  }
  %row = reshape %maxima : !line_f32 -> !line_f32_1
  yield %row : !line_f32_1
}

// The maximum and the sum of all elements
fragment @line_maximum(%value: !line_f32) -> !real {
  %maximum = reduce %value dim=0 identities=[0xFF800000 : f32] : !line_f32 -> !real
  (%a: !real, %b: !real) {
    %larger = maxf %a, %b : !real
    yield %larger : !real
  }
  yield %maximum : !real
}

fragment @line_sum(%value: !line_f32) -> !real {
  %sum = reduce %value dim=0 identities=[0.0 : f32] : !line_f32 -> !real
  (%a: !real, %b: !real) {
    %ab = addf %a, %b : !real
    yield %ab : !real
  }
  yield %sum : !real
}

// The sums of each row and of its squares, in one pass
fragment @sums_and_squares(%value: !f32) -> (!stat, !stat) {
  %square = mulf %value, %value : !f32
  %sum, %square_sum = reduce %value, %square dim=1 identities=[0.0 : f32, 0.0 : f32] : !f32, !f32 -> !stat, !stat
  (%a: !real, %b: !real, %square_a: !real, %square_b: !real) {
    %ab = addf %a, %b : !real
    %square_ab = addf %square_a, %square_b : !real
    yield %ab, %square_ab : !real, !real
  }
  yield %sum, %square_sum : !stat, !stat
}
