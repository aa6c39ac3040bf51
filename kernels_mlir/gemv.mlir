sizes BN = 16, BK = 1024

!int = !cuda_tile.tile<i32>
!real = !cuda_tile.tile<f32>
!ptr = !cuda_tile.tile<ptr<T>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?xT, strides=[1]>
!x_part_1xBK = !cuda_tile.partition_view<tile=(1xBK), padding_value = zero, !matrix>
!w_part_BKxBN = !cuda_tile.partition_view<tile=(BKxBN), padding_value = zero, !matrix>
!r_part_1xBN = !cuda_tile.partition_view<tile=(1xBN), padding_value = zero, !matrix>
!out_part_1xBN = !cuda_tile.partition_view<tile=(1xBN), !matrix>
!bias_part_BN = !cuda_tile.partition_view<tile=(BN), padding_value = zero, !vector>
!row_1xBK = !cuda_tile.tile<1xBKxT>
!bias_BN = !cuda_tile.tile<BNxT>
!w_BKxBN = !cuda_tile.tile<BKxBNxT>
!line_1xBN = !cuda_tile.tile<1xBNxT>
!f32_1xBK = !cuda_tile.tile<1xBKxf32>
!f32_BKx1 = !cuda_tile.tile<BKx1xf32>
!f32_BKxBN = !cuda_tile.tile<BKxBNxf32>
!f32_BN = !cuda_tile.tile<BNxf32>
!f32_1xBN = !cuda_tile.tile<1xBNxf32>

// out = residual + x @ weight + bias, of few rows
//
// One block makes BN columns of one row, as decoding a single sequence wants it: the weights are read once and are all the
// work, so they are multiplied element by element. The first BK rows of them are read before the wait for the launches
// before this one: they arrive while those still run. The residual may be the output itself: each block reads just what it
// writes, and before it.
kernel @linear_residual_row op = linear_residual {
  %x_tiles = make_partition_view %x_view : !x_part_1xBK
  %w_tiles = make_partition_view %weight_view : !w_part_BKxBN
  %b_tiles = make_partition_view %bias_view : !bias_part_BN
  %r_tiles = make_partition_view %residual_view : !r_part_1xBN
  %out_tiles = make_partition_view %out_view : !out_part_1xBN

  %n, %m, %unused = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BK = constant <i32: BK> : !int
  %steps = divi %K, %BK signed rounding<positive_inf> : !int
  %bias_tile, %t0 = load_view_tko weak %b_tiles[%n] optimization_hints = <default = {allow_tma = false}>
      : !bias_part_BN, !int -> !bias_BN, token
  %w_ahead, %t1 = load_view_tko weak %w_tiles[%zero, %n] optimization_hints = <default = {allow_tma = false}>
      : !w_part_BKxBN, !int -> !w_BKxBN, token
  %bias_f32 = ftof %bias_tile : !bias_BN -> !f32_BN

  // The wait comes after these reads by their tokens: else the compiler may put it first.
  %ahead = join_tokens %t0, %t1 : token
  %ready = gdc_wait_tko token = %ahead -> token
  %r_tile, %r_token = load_view_tko weak %r_tiles[%m, %n] optimization_hints = <default = {allow_tma = false}>
      : !r_part_1xBN, !int -> !line_1xBN, token
  %r_f32 = ftof %r_tile : !line_1xBN -> !f32_1xBN
  %x_first, %t2 = load_view_tko weak %x_tiles[%m, %zero] optimization_hints = <default = {allow_tma = false}>
      : !x_part_1xBK, !int -> !row_1xBK, token
  %value_first = ftof %x_first : !row_1xBK -> !f32_1xBK
  %column_first = reshape %value_first : !f32_1xBK -> !f32_BKx1
  %w_first = ftof %w_ahead : !w_BKxBN -> !f32_BKxBN
  %x_first_full = broadcast %column_first : !f32_BKx1 -> !f32_BKxBN
  %products_first = mulf %x_first_full, %w_first : !f32_BKxBN
  %products = for %k in (%one to %steps, step %one) : !int iter_values(%acc = %products_first) -> (!f32_BKxBN) {
    %x_tile, %t3 = load_view_tko weak %x_tiles[%m, %k] : !x_part_1xBK, !int -> !row_1xBK, token
    %w_tile, %t4 = load_view_tko weak %w_tiles[%k, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token
    %value = ftof %x_tile : !row_1xBK -> !f32_1xBK
    %w_f32 = ftof %w_tile : !w_BKxBN -> !f32_BKxBN
    %column = reshape %value : !f32_1xBK -> !f32_BKx1
    %x_full = broadcast %column : !f32_BKx1 -> !f32_BKxBN
    %next = fma %x_full, %w_f32, %acc : !f32_BKxBN
    continue %next : !f32_BKxBN
  }
  %product = reduce %products dim=0 identities=[0.0 : f32] : !f32_BKxBN -> !f32_BN
  (%part_a: !real, %part_b: !real) {
    %part_ab = addf %part_a, %part_b : !real
    yield %part_ab : !real
  }
  %biased_line = addf %product, %bias_f32 : !f32_BN
  %biased = reshape %biased_line : !f32_BN -> !f32_1xBN
  %sum = addf %biased, %r_f32 : !f32_1xBN
  %result = ftof %sum : !f32_1xBN -> !line_1xBN
  %stored = store_view_tko weak %result, %out_tiles[%m, %n] token = %r_token
      optimization_hints = <default = {allow_tma = false}> : !line_1xBN, !out_part_1xBN, !int -> token
  return
}
