// One block makes one row of at most 1024 columns: grid (rows).
!int = !cuda_tile.tile<i32>
!bf16 = !cuda_tile.tile<ptr<bf16>>
!matrix = !cuda_tile.tensor_view<?x?xbf16, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?xbf16, strides=[1]>
!rows = !cuda_tile.partition_view<tile=(1x1024), padding_value = zero, !matrix>
!parts = !cuda_tile.partition_view<tile=(1024), padding_value = zero, !vector>
!row = !cuda_tile.tile<1x1024xf32>
!stored = !cuda_tile.tile<1x1024xbf16>
!part = !cuda_tile.tile<1024xbf16>
!flags = !cuda_tile.tile<1x1024xi1>
!lanes = !cuda_tile.tile<1x1024xi32>
!sum = !cuda_tile.tile<1xf32>
!one = !cuda_tile.tile<1x1xf32>

entry @layernorm(
  %x: !bf16, %x_m: !int, %x_n: !int, %x_row: !int, %x_unit: !int,
  %weight: !bf16, %weight_n: !int, %weight_unit: !int, %bias: !bf16, %bias_n: !int, %bias_unit: !int,
  %out: !bf16, %out_m: !int, %out_n: !int, %out_row: !int, %out_unit: !int, %eps: tile<f32>
) {
  %m, %y, %z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %x_aligned = assume div_by<16>, %x : !bf16
  %x_step = assume div_by<8>, %x_row : !int
  %out_aligned = assume div_by<16>, %out : !bf16
  %out_step = assume div_by<8>, %out_row : !int
  %x_view = make_tensor_view %x_aligned, shape = [%x_m, %x_n], strides = [%x_step, 1] : !int -> !matrix
  %x_rows = make_partition_view %x_view : !rows
  %read, %x_read = load_view_tko weak %x_rows[%m, %zero] : !rows, !int -> !stored, token
  %value = ftof %read : !stored -> !row

  %width = itof %x_n signed : !int -> tile<f32>
  %width_1 = reshape %width : tile<f32> -> !sum
  %total = reduce %value dim=1 identities=[0.0 : f32] : !row -> !sum
  (%a: tile<f32>, %b: tile<f32>) {
    %both = addf %a, %b : tile<f32>
    yield %both : tile<f32>
  }
  %mean = divf %total, %width_1 : !sum
  %mean_1 = reshape %mean : !sum -> !one
  %means = broadcast %mean_1 : !one -> !row
  %from_mean = subf %value, %means : !row
  %flat = iota : tile<1024xi32>
  %columns = reshape %flat : tile<1024xi32> -> !lanes
  %end = reshape %x_n : !int -> tile<1x1xi32>
  %ends = broadcast %end : tile<1x1xi32> -> !lanes
  %inside = cmpi less_than %columns, %ends, signed : !lanes -> !flags
  %nothing = constant <f32: 0.0> : !row
  %deviation = select %inside, %from_mean, %nothing : !flags, !row
  %squares = mulf %deviation, %deviation : !row
  %square_sum = reduce %squares dim=1 identities=[0.0 : f32] : !row -> !sum
  (%c: tile<f32>, %d: tile<f32>) {
    %sum = addf %c, %d : tile<f32>
    yield %sum : tile<f32>
  }
  %variance = divf %square_sum, %width_1 : !sum
  %eps_1 = reshape %eps : tile<f32> -> !sum
  %safe = addf %variance, %eps_1 : !sum
  %scale = rsqrt %safe : !sum
  %scale_1 = reshape %scale : !sum -> !one
  %scales = broadcast %scale_1 : !one -> !row

  %weight_view = make_tensor_view %weight, shape = [%weight_n], strides = [1] : !int -> !vector
  %weight_parts = make_partition_view %weight_view : !parts
  %weight_read, %w_read = load_view_tko weak %weight_parts[%zero] : !parts, !int -> !part, token
  %weight_row = reshape %weight_read : !part -> !stored
  %gain = ftof %weight_row : !stored -> !row
  %bias_view = make_tensor_view %bias, shape = [%bias_n], strides = [1] : !int -> !vector
  %bias_parts = make_partition_view %bias_view : !parts
  %bias_read, %b_read = load_view_tko weak %bias_parts[%zero] : !parts, !int -> !part, token
  %bias_row = reshape %bias_read : !part -> !stored
  %shift = ftof %bias_row : !stored -> !row
  %normed = mulf %deviation, %scales : !row
  %result = fma %normed, %gain, %shift : !row
  %rounded = ftof %result : !row -> !stored
  %out_view = make_tensor_view %out_aligned, shape = [%out_m, %out_n], strides = [%out_step, 1] : !int -> !matrix
  %out_rows = make_partition_view %out_view : !rows
  %done = store_view_tko weak %rounded, %out_rows[%m, %zero] : !stored, !rows, !int -> token
  return
}
