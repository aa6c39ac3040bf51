sizes BZ = 4, BC = 1024

!int = !cuda_tile.tile<i32>
!int_1x1 = !cuda_tile.tile<1x1xi32>
!real = !cuda_tile.tile<f32>
!stat_1 = !cuda_tile.tile<1xf32>
!stat_1x1 = !cuda_tile.tile<1x1xf32>
!ptr = !cuda_tile.tile<ptr<T>>
!input = !cuda_tile.tile<ptr<f32>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?xT, strides=[1]>
!parts = !cuda_tile.tensor_view<?x?x?xf32, strides=[?,?,1]>
!x_part_1xBC = !cuda_tile.partition_view<tile=(1xBC), padding_value = zero, !matrix>
!out_part_1xBC = !cuda_tile.partition_view<tile=(1xBC), !matrix>
!vector_part_BC = !cuda_tile.partition_view<tile=(BC), padding_value = zero, !vector>
!p_part_BZx1xBC = !cuda_tile.partition_view<tile=(BZx1xBC), padding_value = zero, !parts>
!row_1xBC = !cuda_tile.tile<1xBCxT>
!vector_BC = !cuda_tile.tile<BCxT>
!vector_f32_BC = !cuda_tile.tile<BCxf32>
!f32_1xBC = !cuda_tile.tile<1xBCxf32>
!p_BZx1xBC = !cuda_tile.tile<BZx1xBCxf32>
!p_BZxBC = !cuda_tile.tile<BZxBCxf32>
!lane_BC = !cuda_tile.tile<BCxi32>
!column_1xBC = !cuda_tile.tile<1xBCxi32>
!mask_1xBC = !cuda_tile.tile<1xBCxi1>

// x = x + sum of partial over its parts + bias, and out = layernorm(x), over rows of at most BC columns
//
// One block makes one row, which stays in registers: it adds up the parts of a product, BZ at a time, and the residual,
// rounds the sum as it is stored, and norms what it stored. The variance is that of the deviations from the mean. The
// biases and the weight are read before the wait for the launches before this one: they arrive while those still run.
kernel @residual_layernorm op = residual_layernorm {
  %p_tiles = make_partition_view %partial_view : !p_part_BZx1xBC
  %bias_tiles = make_partition_view %bias_view : !vector_part_BC
  %w_tiles = make_partition_view %norm_weight_view : !vector_part_BC
  %b_tiles = make_partition_view %norm_bias_view : !vector_part_BC
  %x_tiles = make_partition_view %x_view : !x_part_1xBC
  %x_stores = make_partition_view %x_view : !out_part_1xBC
  %out_tiles = make_partition_view %out_view : !out_part_1xBC

  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BZ = constant <i32: BZ> : !int
  %bias_tile, %t0 = load_view_tko weak %bias_tiles[%zero] optimization_hints = <default = {allow_tma = false}>
      : !vector_part_BC, !int -> !vector_BC, token
  %w_tile, %t1 = load_view_tko weak %w_tiles[%zero] optimization_hints = <default = {allow_tma = false}>
      : !vector_part_BC, !int -> !vector_BC, token
  %b_tile, %t2 = load_view_tko weak %b_tiles[%zero] optimization_hints = <default = {allow_tma = false}>
      : !vector_part_BC, !int -> !vector_BC, token
  %bias_f32 = ftof %bias_tile : !vector_BC -> !vector_f32_BC
  %w_f32 = ftof %w_tile : !vector_BC -> !vector_f32_BC
  %b_f32 = ftof %b_tile : !vector_BC -> !vector_f32_BC
  %bias_line = reshape %bias_f32 : !vector_f32_BC -> !f32_1xBC
  %w_line = reshape %w_f32 : !vector_f32_BC -> !f32_1xBC
  %b_line = reshape %b_f32 : !vector_f32_BC -> !f32_1xBC

  // The wait comes after these reads by their tokens: else the compiler may put it first.
  %ahead = join_tokens %t0, %t1, %t2 : token
  %ready = gdc_wait_tko token = %ahead -> token
  %x_tile, %x_token = load_view_tko weak %x_tiles[%n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !x_part_1xBC, !int -> !row_1xBC, token
  %x_f32 = ftof %x_tile : !row_1xBC -> !f32_1xBC
  %biased = addf %x_f32, %bias_line : !f32_1xBC
  %steps = divi %Z, %BZ signed rounding<positive_inf> : !int
  %sum = for %z in (%zero to %steps, step %one) : !int iter_values(%so_far = %biased) -> (!f32_1xBC) {
    %p_tile, %t3 = load_view_tko weak %p_tiles[%z, %n, %zero] optimization_hints = <default = {allow_tma = false}>
        : !p_part_BZx1xBC, !int -> !p_BZx1xBC, token
    %p_flat = reshape %p_tile : !p_BZx1xBC -> !p_BZxBC
    %p_sum = reduce %p_flat dim=0 identities=[0.0 : f32] : !p_BZxBC -> !vector_f32_BC
    (%part_a: !real, %part_b: !real) {
      %part_ab = addf %part_a, %part_b : !real
      yield %part_ab : !real
    }
    %p_line = reshape %p_sum : !vector_f32_BC -> !f32_1xBC
    %next = addf %so_far, %p_line : !f32_1xBC
    continue %next : !f32_1xBC
  }
  %rounded = ftof %sum : !f32_1xBC -> !row_1xBC
  %x_stored = store_view_tko weak %rounded, %x_stores[%n, %zero] token = %x_token
      optimization_hints = <default = {allow_tma = false}> : !row_1xBC, !out_part_1xBC, !int -> token
  %value = ftof %rounded : !row_1xBC -> !f32_1xBC

  %total = reduce %value dim=1 identities=[0.0 : f32] : !f32_1xBC -> !stat_1
  (%sum_a: !real, %sum_b: !real) {
    %sum_ab = addf %sum_a, %sum_b : !real
    yield %sum_ab : !real
  }
  %total_1x1 = reshape %total : !stat_1 -> !stat_1x1
  %width = itof %C signed : !int -> !real
  %width_1x1 = reshape %width : !real -> !stat_1x1
  %mean = divf %total_1x1, %width_1x1 : !stat_1x1
  %mean_line = broadcast %mean : !stat_1x1 -> !f32_1xBC

  // Columns past C were padded with zeros, which deviate from the mean: they must not count.
  %lane = iota : !lane_BC
  %column = reshape %lane : !lane_BC -> !column_1xBC
  %C_1x1 = reshape %C : !int -> !int_1x1
  %C_line = broadcast %C_1x1 : !int_1x1 -> !column_1xBC
  %inside = cmpi less_than %column, %C_line, signed : !column_1xBC -> !mask_1xBC
  %nothing = constant <f32: 0.0> : !f32_1xBC
  %difference = subf %value, %mean_line : !f32_1xBC
  %deviation = select %inside, %difference, %nothing : !mask_1xBC, !f32_1xBC
  %square = mulf %deviation, %deviation : !f32_1xBC
  %spread = reduce %square dim=1 identities=[0.0 : f32] : !f32_1xBC -> !stat_1
  (%square_a: !real, %square_b: !real) {
    %square_ab = addf %square_a, %square_b : !real
    yield %square_ab : !real
  }
  %spread_1x1 = reshape %spread : !stat_1 -> !stat_1x1
  %variance = divf %spread_1x1, %width_1x1 : !stat_1x1
  %eps_1x1 = reshape %eps : !real -> !stat_1x1
  %shifted = addf %variance, %eps_1x1 : !stat_1x1
  %inverse = rsqrt %shifted : !stat_1x1
  %inverse_line = broadcast %inverse : !stat_1x1 -> !f32_1xBC

  %normal = mulf %deviation, %inverse_line : !f32_1xBC
  %normed = fma %normal, %w_line, %b_line : !f32_1xBC
  %result = ftof %normed : !f32_1xBC -> !row_1xBC
  %stored = store_view_tko weak %result, %out_tiles[%n, %zero] optimization_hints = <default = {allow_tma = false}>
      : !row_1xBC, !out_part_1xBC, !int -> token
  return
}
