// out = layernorm(x) @ weight + bias
//
// One block makes BN columns of one row, as decoding a single sequence wants it: the weights are read once and are all the
// work, so they are multiplied element by element. It takes the row's mean and variance itself, in tiles of BC columns;
// the normed row is rounded as a layernorm of its own rounds it. Past the row's end the norm's weight and bias are 0, and
// so is the normed row.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!real = !cuda_tile.tile<f32>
!ptr = !cuda_tile.tile<ptr<!elem>>
!matrix = !cuda_tile.tensor_view<?x?x!elem, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?x!elem, strides=[1]>
!x_part_1xBC = !cuda_tile.partition_view<tile=(1x1024), padding_value = zero, !matrix>
!x_part_1xBK = !cuda_tile.partition_view<tile=(1x256), padding_value = zero, !matrix>
!w_part_BKxBN = !cuda_tile.partition_view<tile=(256x32), padding_value = zero, !matrix>
!out_part_1xBN = !cuda_tile.partition_view<tile=(1x32), !matrix>
!norm_part_BK = !cuda_tile.partition_view<tile=(256), padding_value = zero, !vector>
!bias_part_BN = !cuda_tile.partition_view<tile=(32), padding_value = zero, !vector>
!row_1xBC = !cuda_tile.tile<1x1024x!elem>
!row_1xBK = !cuda_tile.tile<1x256x!elem>
!norm_BK = !cuda_tile.tile<256x!elem>
!bias_BN = !cuda_tile.tile<32x!elem>
!w_BKxBN = !cuda_tile.tile<256x32x!elem>
!line_1xBN = !cuda_tile.tile<1x32x!elem>
!f32_1xBC = !cuda_tile.tile<1x1024xf32>
!f32_1xBK = !cuda_tile.tile<1x256xf32>
!f32_BK = !cuda_tile.tile<256xf32>
!f32_BKx1 = !cuda_tile.tile<256x1xf32>
!f32_BKxBN = !cuda_tile.tile<256x32xf32>
!f32_BN = !cuda_tile.tile<32xf32>
!f32_1xBN = !cuda_tile.tile<1x32xf32>
!stat_1 = !cuda_tile.tile<1xf32>
!stat_1x1 = !cuda_tile.tile<1x1xf32>
!lane_BC = !cuda_tile.tile<1024xi32>
!int_1 = !cuda_tile.tile<1xi32>
!mask_BC = !cuda_tile.tile<1024xi1>
!mask_1xBC = !cuda_tile.tile<1x1024xi1>

cuda_tile.module @norm_linear {
  entry @norm_linear(%x: !ptr, %x_m: !int, %x_k: !int, %x_stride: !int, %x_unit: !int,
      %g: !ptr, %g_k: !int, %g_unit: !int,
      %h: !ptr, %h_k: !int, %h_unit: !int,
      %w: !ptr, %w_k: !int, %w_n: !int, %w_stride: !int, %w_unit: !int,
      %b: !ptr, %b_n: !int, %b_unit: !int,
      %out: !ptr, %out_m: !int, %out_n: !int, %out_stride: !int, %out_unit: !int,
      %eps: !real) {
    %M = assume bounded<0, ?>, %x_m : !int
    %K = assume bounded<0, ?>, %x_k : !int
    %N = assume bounded<0, ?>, %w_n : !int
    %x_row = assume bounded<0, ?>, %x_stride : !int
    %w_row = assume bounded<0, ?>, %w_stride : !int
    %out_row = assume bounded<0, ?>, %out_stride : !int
    %x_view = make_tensor_view %x, shape = [%M, %K], strides = [%x_row, 1] : !int -> !matrix
    %g_view = make_tensor_view %g, shape = [%K], strides = [1] : !int -> !vector
    %h_view = make_tensor_view %h, shape = [%K], strides = [1] : !int -> !vector
    %w_view = make_tensor_view %w, shape = [%K, %N], strides = [%w_row, 1] : !int -> !matrix
    %b_view = make_tensor_view %b, shape = [%N], strides = [1] : !int -> !vector
    %out_view = make_tensor_view %out, shape = [%M, %N], strides = [%out_row, 1] : !int -> !matrix
    %x_wide = make_partition_view %x_view : !x_part_1xBC
    %x_tiles = make_partition_view %x_view : !x_part_1xBK
    %g_tiles = make_partition_view %g_view : !norm_part_BK
    %h_tiles = make_partition_view %h_view : !norm_part_BK
    %w_tiles = make_partition_view %w_view : !w_part_BKxBN
    %b_tiles = make_partition_view %b_view : !bias_part_BN
    %out_tiles = make_partition_view %out_view : !out_part_1xBN

    %n, %m, %unused = get_tile_block_id : !int
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BC = constant <i32: 1024> : !int
    %BK = constant <i32: 256> : !int
    %wide_steps = divi %K, %BC signed rounding<positive_inf> : !int
    %steps = divi %K, %BK signed rounding<positive_inf> : !int
    %width = itof %K signed : !int -> !real
    %width_1x1 = reshape %width : !real -> !stat_1x1
    %nothing = constant <f32: 0.0> : !f32_1xBC

    %sums = for %j in (%zero to %wide_steps, step %one) : !int iter_values(%acc = %nothing) -> (!f32_1xBC) {
      %tile, %t0 = load_view_tko weak %x_wide[%m, %j] : !x_part_1xBC, !int -> !row_1xBC, token
      %value = ftof %tile : !row_1xBC -> !f32_1xBC
      %next = addf %acc, %value : !f32_1xBC
      continue %next : !f32_1xBC
    }
    %total = reduce %sums dim=1 identities=[0.0 : f32] : !f32_1xBC -> !stat_1
    (%sum_a: !real, %sum_b: !real) {
      %sum_ab = addf %sum_a, %sum_b : !real
      yield %sum_ab : !real
    }
    %total_1x1 = reshape %total : !stat_1 -> !stat_1x1
    %mean = divf %total_1x1, %width_1x1 : !stat_1x1
    %mean_wide = broadcast %mean : !stat_1x1 -> !f32_1xBC

    %lane = iota : !lane_BC
    %K_1 = reshape %K : !int -> !int_1
    %K_wide = broadcast %K_1 : !int_1 -> !lane_BC
    %squares = for %j in (%zero to %wide_steps, step %one) : !int iter_values(%acc = %nothing) -> (!f32_1xBC) {
      %tile, %t0 = load_view_tko weak %x_wide[%m, %j] : !x_part_1xBC, !int -> !row_1xBC, token
      %value = ftof %tile : !row_1xBC -> !f32_1xBC
      %deviation = subf %value, %mean_wide : !f32_1xBC
      // Columns past the width were padded with zeros, which deviate from the mean: they must not count.
      %first = muli %j, %BC : !int
      %first_1 = reshape %first : !int -> !int_1
      %first_wide = broadcast %first_1 : !int_1 -> !lane_BC
      %column = addi %first_wide, %lane : !lane_BC
      %within = cmpi less_than %column, %K_wide, signed : !lane_BC -> !mask_BC
      %inside = reshape %within : !mask_BC -> !mask_1xBC
      %counted = select %inside, %deviation, %nothing : !mask_1xBC, !f32_1xBC
      %next = fma %counted, %counted, %acc : !f32_1xBC
      continue %next : !f32_1xBC
    }
    %spread = reduce %squares dim=1 identities=[0.0 : f32] : !f32_1xBC -> !stat_1
    (%square_a: !real, %square_b: !real) {
      %square_ab = addf %square_a, %square_b : !real
      yield %square_ab : !real
    }
    %spread_1x1 = reshape %spread : !stat_1 -> !stat_1x1
    %variance = divf %spread_1x1, %width_1x1 : !stat_1x1
    %eps_1x1 = reshape %eps : !real -> !stat_1x1
    %shifted = addf %variance, %eps_1x1 : !stat_1x1
    %inverse = rsqrt %shifted : !stat_1x1
    %mean_line = broadcast %mean : !stat_1x1 -> !f32_1xBK
    %inverse_line = broadcast %inverse : !stat_1x1 -> !f32_1xBK

    %empty = constant <f32: 0.0> : !f32_BKxBN
    %products = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!f32_BKxBN) {
      %x_tile, %t0 = load_view_tko weak %x_tiles[%m, %k] : !x_part_1xBK, !int -> !row_1xBK, token
      %g_tile, %t1 = load_view_tko weak %g_tiles[%k] : !norm_part_BK, !int -> !norm_BK, token
      %h_tile, %t2 = load_view_tko weak %h_tiles[%k] : !norm_part_BK, !int -> !norm_BK, token
      %w_tile, %t3 = load_view_tko weak %w_tiles[%k, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token
      %value = ftof %x_tile : !row_1xBK -> !f32_1xBK
      %g_f32 = ftof %g_tile : !norm_BK -> !f32_BK
      %h_f32 = ftof %h_tile : !norm_BK -> !f32_BK
      %w_f32 = ftof %w_tile : !w_BKxBN -> !f32_BKxBN
      %g_line = reshape %g_f32 : !f32_BK -> !f32_1xBK
      %h_line = reshape %h_f32 : !f32_BK -> !f32_1xBK
      %deviation = subf %value, %mean_line : !f32_1xBK
      %normal = mulf %deviation, %inverse_line : !f32_1xBK
      %normed = fma %normal, %g_line, %h_line : !f32_1xBK
      %rounded = ftof %normed : !f32_1xBK -> !row_1xBK
      %widened = ftof %rounded : !row_1xBK -> !f32_1xBK
      %column = reshape %widened : !f32_1xBK -> !f32_BKx1
      %x_full = broadcast %column : !f32_BKx1 -> !f32_BKxBN
      %next = fma %x_full, %w_f32, %acc : !f32_BKxBN
      continue %next : !f32_BKxBN
    }
    %product = reduce %products dim=0 identities=[0.0 : f32] : !f32_BKxBN -> !f32_BN
    (%part_a: !real, %part_b: !real) {
      %part_ab = addf %part_a, %part_b : !real
      yield %part_ab : !real
    }
    %bias_tile, %bias_token = load_view_tko weak %b_tiles[%n] : !bias_part_BN, !int -> !bias_BN, token
    %bias_f32 = ftof %bias_tile : !bias_BN -> !f32_BN
    %biased_line = addf %product, %bias_f32 : !f32_BN
    %biased = reshape %biased_line : !f32_BN -> !f32_1xBN
    %result = ftof %biased : !f32_1xBN -> !line_1xBN
    %stored = store_view_tko weak %result, %out_tiles[%m, %n] : !line_1xBN, !out_part_1xBN, !int -> token
    return
  }
}
