// out = softmax(x) over the rows of x. Columns past N are padded with -inf, whose exponential is 0; results of exp2 below
// 2^-126 are 0 too.

sizes R = 2, BN = 1024

!int = !cuda_tile.tile<i32>
!int_1 = !cuda_tile.tile<1xi32>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!in_part = !cuda_tile.partition_view<tile=(RxBN), padding_value = neg_inf, !matrix>
!out_part = !cuda_tile.partition_view<tile=(RxBN), !matrix>
!rows = !cuda_tile.tile<RxBNxT>
!f32 = !cuda_tile.tile<RxBNxf32>
!stat = !cuda_tile.tile<Rxf32>
!stat_1 = !cuda_tile.tile<Rx1xf32>
!row_in = !cuda_tile.partition_view<tile=(1xBN), padding_value = neg_inf, !matrix>
!row_out = !cuda_tile.partition_view<tile=(1xBN), !matrix>
!row = !cuda_tile.tile<1xBNxT>
!row_f32 = !cuda_tile.tile<1xBNxf32>
!ptr = !cuda_tile.tile<ptr<T>>
!ptr_1 = !cuda_tile.tile<1xptr<T>>
!ptr_line = !cuda_tile.tile<BNxptr<T>>
!index_line = !cuda_tile.tile<BNxi32>
!mask_line = !cuda_tile.tile<BNxi1>
!line = !cuda_tile.tile<BNxT>
!line_f32 = !cuda_tile.tile<BNxf32>
!ptr_8 = !cuda_tile.tile<8xptr<T>>
!index_8 = !cuda_tile.tile<8xi32>
!mask_8 = !cuda_tile.tile<8xi1>
!line_8 = !cuda_tile.tile<8xT>
!line_8_f32 = !cuda_tile.tile<8xf32>

fragment @load(%tiles: !in_part, %m: !int, %j: !int) -> !rows {
  %tile, %token = load_view_tko weak %tiles[%m, %j] optimization_hints = <default = {allow_tma = false}>
      : !in_part, !int -> !rows, token
  yield %tile : !rows
}

fragment @store(%value: !f32, %tiles: !out_part, %m: !int, %j: !int) {
  %result = ftof %value : !f32 -> !rows
  %stored = store_view_tko weak %result, %tiles[%m, %j] optimization_hints = <default = {allow_tma = false}>
      : !rows, !out_part, !int -> token
}

// e^(value - largest)
fragment @exponential(%value: !f32, %largest: !f32) -> !f32 {
  %log2e = constant <f32: 1.4426950408889634> : !f32
  %below = subf %value, %largest : !f32
  %scaled = mulf %below, %log2e : !f32
  %power = exp2 %scaled flush_to_zero : !f32
  yield %power : !f32
}

// The largest value of each row, for each of its elements
fragment @largest(%value: !f32) -> !f32 {
  %maximum = reduce %value dim=1 identities=[0xFF800000 : f32] : !f32 -> !stat
  (%a: !real, %b: !real) {
    %larger = maxf %a, %b : !real
    yield %larger : !real
  }
  %column = reshape %maximum : !stat -> !stat_1
  %all = broadcast %column : !stat_1 -> !f32
  yield %all : !f32
}

// 1 / the sum of each row, for each of its elements
fragment @inverse_sum(%value: !f32) -> !f32 {
  %sum = reduce %value dim=1 identities=[0.0 : f32] : !f32 -> !stat
  (%a: !real, %b: !real) {
    %ab = addf %a, %b : !real
    yield %ab : !real
  }
  %column = reshape %sum : !stat -> !stat_1
  %unit = constant <f32: 1.0> : !stat_1
  %inverse = divf %unit, %column : !stat_1
  %all = broadcast %inverse : !stat_1 -> !f32
  yield %all : !f32
}

// Rows of any width: one block makes one row, in tiles of BN columns, in two passes. The first takes the largest value and the
// sum of the exponentials per lane, and rescales a lane's sum when its largest value rises.
kernel @softmax op = softmax {
  %x_tiles = make_partition_view %x_view : !row_in
  %out_tiles = make_partition_view %out_view : !row_out
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BN = constant <i32: BN> : !int
  %steps = divi %N, %BN signed rounding<positive_inf> : !int
  // The least f32: it is above no value, and the difference of two of them is 0, not NaN.
  %least = constant <f32: -3.4028234663852886e38> : !row_f32
  %nothing = constant <f32: 0.0> : !row_f32
  %maxima, %sums = for %j in (%zero to %steps, step %one) : !int
      iter_values(%max_old = %least, %sum_old = %nothing) -> (!row_f32, !row_f32) {
    %tile = call @load<R = 1>(%x_tiles, %m, %j)
    %value = ftof %tile : !row -> !row_f32
    %max_new = maxf %max_old, %value : !row_f32
    %rescale = call @exponential<R = 1>(%max_old, %max_new)
    %power = call @exponential<R = 1>(%value, %max_new)
    %sum_new = fma %sum_old, %rescale, %power : !row_f32
    continue %max_new, %sum_new : !row_f32, !row_f32
  }
  %largest = call @largest<R = 1>(%maxima)
  %lane_rescale = call @exponential<R = 1>(%maxima, %largest)
  %lanes = mulf %sums, %lane_rescale : !row_f32
  %inverse = call @inverse_sum<R = 1>(%lanes)
  for %j in (%zero to %steps, step %one) : !int {
    %tile = call @load<R = 1>(%x_tiles, %m, %j)
    %value = ftof %tile : !row -> !row_f32
    %power = call @exponential<R = 1>(%value, %largest)
    %share = mulf %power, %inverse : !row_f32
    call @store<R = 1>(%share, %out_tiles, %m, %j)
    continue
  }
  return
}

// Register-resident: one block makes R rows of at most BN columns; x is read once.
kernel @softmax_rows op = softmax {
  %x_tiles = make_partition_view %x_view : !in_part
  %out_tiles = make_partition_view %out_view : !out_part
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %tile = call @load(%x_tiles, %m, %zero)
  %value = ftof %tile : !rows -> !f32
  %largest = call @largest(%value)
  %power = call @exponential(%value, %largest)
  %inverse = call @inverse_sum(%power)
  %share = mulf %power, %inverse : !f32
  call @store(%share, %out_tiles, %m, %zero)
  return
}

// The exponential of a tile in its storage type
fragment @tile_exponential(%tile: !rows, %largest: !f32) -> !f32 {
  %value = ftof %tile : !rows -> !f32
  %power = call @exponential(%value, %largest)
  yield %power : !f32
}

fragment @store_share(%tile: !rows, %largest: !f32, %inverse: !f32, %tiles: !out_part, %m: !int, %j: !int) {
  %power = call @tile_exponential(%tile, %largest)
  %share = mulf %power, %inverse : !f32
  call @store(%share, %tiles, %m, %j)
}

// Register-resident, for rows of at most seven tiles: one block makes one row, which stays in registers in its storage type.
// x is read once, the exponentials are taken twice.
kernel @softmax_resident op = softmax {
  %x_tiles = make_partition_view %x_view : !row_in
  %out_tiles = make_partition_view %out_view : !row_out
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %j0 = constant <i32: 0> : !int
  %j1 = constant <i32: 1> : !int
  %j2 = constant <i32: 2> : !int
  %j3 = constant <i32: 3> : !int
  %j4 = constant <i32: 4> : !int
  %j5 = constant <i32: 5> : !int
  %j6 = constant <i32: 6> : !int
  %tile0 = call @load<R = 1>(%x_tiles, %m, %j0)
  %tile1 = call @load<R = 1>(%x_tiles, %m, %j1)
  %tile2 = call @load<R = 1>(%x_tiles, %m, %j2)
  %tile3 = call @load<R = 1>(%x_tiles, %m, %j3)
  %tile4 = call @load<R = 1>(%x_tiles, %m, %j4)
  %tile5 = call @load<R = 1>(%x_tiles, %m, %j5)
  %tile6 = call @load<R = 1>(%x_tiles, %m, %j6)
  %max1 = maxf %tile0, %tile1 : !row
  %max2 = maxf %max1, %tile2 : !row
  %max3 = maxf %max2, %tile3 : !row
  %max4 = maxf %max3, %tile4 : !row
  %max5 = maxf %max4, %tile5 : !row
  %max6 = maxf %max5, %tile6 : !row
  %max_f32 = ftof %max6 : !row -> !row_f32
  %largest = call @largest<R = 1>(%max_f32)
  %sum0 = call @tile_exponential<R = 1>(%tile0, %largest)
  %power1 = call @tile_exponential<R = 1>(%tile1, %largest)
  %sum1 = addf %sum0, %power1 : !row_f32
  %power2 = call @tile_exponential<R = 1>(%tile2, %largest)
  %sum2 = addf %sum1, %power2 : !row_f32
  %power3 = call @tile_exponential<R = 1>(%tile3, %largest)
  %sum3 = addf %sum2, %power3 : !row_f32
  %power4 = call @tile_exponential<R = 1>(%tile4, %largest)
  %sum4 = addf %sum3, %power4 : !row_f32
  %power5 = call @tile_exponential<R = 1>(%tile5, %largest)
  %sum5 = addf %sum4, %power5 : !row_f32
  %power6 = call @tile_exponential<R = 1>(%tile6, %largest)
  %sum6 = addf %sum5, %power6 : !row_f32
  %inverse = call @inverse_sum<R = 1>(%sum6)
  call @store_share<R = 1>(%tile0, %largest, %inverse, %out_tiles, %m, %j0)
  call @store_share<R = 1>(%tile1, %largest, %inverse, %out_tiles, %m, %j1)
  call @store_share<R = 1>(%tile2, %largest, %inverse, %out_tiles, %m, %j2)
  call @store_share<R = 1>(%tile3, %largest, %inverse, %out_tiles, %m, %j3)
  call @store_share<R = 1>(%tile4, %largest, %inverse, %out_tiles, %m, %j4)
  call @store_share<R = 1>(%tile5, %largest, %inverse, %out_tiles, %m, %j5)
  call @store_share<R = 1>(%tile6, %largest, %inverse, %out_tiles, %m, %j6)
  return
}

// The contiguous kernel reads and writes vectors of 8 elements through pointers. A line is BN elements from %at on, masked
// where it passes %last; -inf stands for what is not there.
fragment @load_vectors(%at: !int, %x: !ptr_line, %last: !index_line, %lane: !index_line) -> (!line, !index_line, !mask_line) {
  %lowest_f32 = constant <f32: 0xFF800000> : !line_f32
  %lowest = ftof %lowest_f32 : !line_f32 -> !line
  %at_1 = reshape %at : !int -> !int_1
  %ats = broadcast %at_1 : !int_1 -> !index_line
  %index = addi %ats, %lane : !index_line
  %inside = cmpi less_than %index, %last, signed : !index_line -> !mask_line
  %from = offset %x, %index : !ptr_line, !index_line -> !ptr_line
  %tile, %token = load_ptr_tko weak %from, %inside, %lowest : !ptr_line, !mask_line, !line -> !line, token
  yield %tile, %index, %inside : !line, !index_line, !mask_line
}

fragment @line_exponential(%tile: !line, %largest: !line_f32) -> !line_f32 {
  %log2e = constant <f32: 1.4426950408889634> : !line_f32
  %value = ftof %tile : !line -> !line_f32
  %below = subf %value, %largest : !line_f32
  %scaled = mulf %below, %log2e : !line_f32
  %power = exp2 %scaled flush_to_zero : !line_f32
  yield %power : !line_f32
}

// 2^(log2 e (value - largest) - scale), stored. Adding 0 makes the tile another value: else the compiler keeps what it
// computed from it before, in f32, which takes twice the registers.
fragment @store_vectors(%tile: !line, %largest: !line_f32, %scale: !line_f32, %out: !ptr_line, %index: !index_line,
    %inside: !mask_line) {
  %log2e = constant <f32: 1.4426950408889634> : !line_f32
  %nothing = constant <T: 0.0> : !line
  %again = addf %tile, %nothing : !line
  %value = ftof %again : !line -> !line_f32
  %below = subf %value, %largest : !line_f32
  %scaled = mulf %below, %log2e : !line_f32
  %less = subf %scaled, %scale : !line_f32
  %share = exp2 %less flush_to_zero : !line_f32
  %result = ftof %share : !line_f32 -> !line
  %to = offset %out, %index : !ptr_line, !index_line -> !ptr_line
  %stored = store_ptr_tko weak %to, %result, %inside : !ptr_line, !line, !mask_line -> token
}

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

// The vector that a row begins or ends in: its other elements belong to the rows beside
fragment @load_edge(%index: !index_8, %mask: !mask_8, %x: !ptr_8) -> !line_8 {
  %lowest_f32 = constant <f32: 0xFF800000> : !line_8_f32
  %lowest = ftof %lowest_f32 : !line_8_f32 -> !line_8
  %from = offset %x, %index : !ptr_8, !index_8 -> !ptr_8
  %read, %token = load_ptr_tko weak %from, %mask, %lowest : !ptr_8, !mask_8, !line_8 -> !line_8, token
  yield %read : !line_8
}

fragment @edge_scaled(%read: !line_8, %largest: !line_8_f32) -> !line_8_f32 {
  %log2e = constant <f32: 1.4426950408889634> : !line_8_f32
  %value = ftof %read : !line_8 -> !line_8_f32
  %below = subf %value, %largest : !line_8_f32
  %scaled = mulf %below, %log2e : !line_8_f32
  yield %scaled : !line_8_f32
}

fragment @store_edge(%scaled: !line_8_f32, %scale: !line_8_f32, %out: !ptr_8, %index: !index_8, %mask: !mask_8) {
  %less = subf %scaled, %scale : !line_8_f32
  %share = exp2 %less flush_to_zero : !line_8_f32
  %result = ftof %share : !line_8_f32 -> !line_8
  %to = offset %out, %index : !ptr_8, !index_8 -> !ptr_8
  %stored = store_ptr_tko weak %to, %result, %mask : !ptr_8, !line_8, !mask_8 -> token
}

fragment @for_8(%scalar: !int) -> !index_8 {
  %scalar_1 = reshape %scalar : !int -> !int_1
  %all = broadcast %scalar_1 : !int_1 -> !index_8
  yield %all : !index_8
}

// Contiguous: as softmax_resident, for arrays without gaps whose rows begin at any element, of at most thirteen tiles. Two
// blocks share a multiprocessor.
kernel @softmax_contiguous op = softmax {
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %BN = constant <i32: BN> : !int
  %vector = constant <i32: 8> : !int
  %start = muli %m, %N : !int
  %end = addi %start, %N : !int
  %first_vector = divi %start, %vector signed : !int
  %first = muli %first_vector, %vector : !int
  %last_vector = divi %end, %vector signed : !int
  %last = muli %last_vector, %vector : !int
  %last_1 = reshape %last : !int -> !int_1
  %last_line = broadcast %last_1 : !int_1 -> !index_line
  %start_8 = call @for_8(%start)
  %end_8 = call @for_8(%end)
  %first_8 = call @for_8(%first)
  %last_8 = call @for_8(%last)
  %x_1 = reshape %x_ptr : !ptr -> !ptr_1
  %x_line = broadcast %x_1 : !ptr_1 -> !ptr_line
  %x_8 = broadcast %x_1 : !ptr_1 -> !ptr_8
  %out_1 = reshape %out_ptr : !ptr -> !ptr_1
  %out_line = broadcast %out_1 : !ptr_1 -> !ptr_line
  %out_8 = broadcast %out_1 : !ptr_1 -> !ptr_8
  %lane = iota : !index_line
  %lane_8 = iota : !index_8
  %head_index = addi %first_8, %lane_8 : !index_8
  %head_mask = cmpi greater_than_or_equal %head_index, %start_8, signed : !index_8 -> !mask_8
  %head = call @load_edge(%head_index, %head_mask, %x_8)
  %tail_index = addi %last_8, %lane_8 : !index_8
  %tail_mask = cmpi less_than %tail_index, %end_8, signed : !index_8 -> !mask_8
  %tail = call @load_edge(%tail_index, %tail_mask, %x_8)
  %at0 = addi %first, %vector : !int
  %tile0, %index0, %inside0 = call @load_vectors(%at0, %x_line, %last_line, %lane)
  %at1 = addi %at0, %BN : !int
  %tile1, %index1, %inside1 = call @load_vectors(%at1, %x_line, %last_line, %lane)
  %at2 = addi %at1, %BN : !int
  %tile2, %index2, %inside2 = call @load_vectors(%at2, %x_line, %last_line, %lane)
  %at3 = addi %at2, %BN : !int
  %tile3, %index3, %inside3 = call @load_vectors(%at3, %x_line, %last_line, %lane)
  %at4 = addi %at3, %BN : !int
  %tile4, %index4, %inside4 = call @load_vectors(%at4, %x_line, %last_line, %lane)
  %at5 = addi %at4, %BN : !int
  %tile5, %index5, %inside5 = call @load_vectors(%at5, %x_line, %last_line, %lane)
  %at6 = addi %at5, %BN : !int
  %tile6, %index6, %inside6 = call @load_vectors(%at6, %x_line, %last_line, %lane)
  %at7 = addi %at6, %BN : !int
  %tile7, %index7, %inside7 = call @load_vectors(%at7, %x_line, %last_line, %lane)
  %at8 = addi %at7, %BN : !int
  %tile8, %index8, %inside8 = call @load_vectors(%at8, %x_line, %last_line, %lane)
  %at9 = addi %at8, %BN : !int
  %tile9, %index9, %inside9 = call @load_vectors(%at9, %x_line, %last_line, %lane)
  %at10 = addi %at9, %BN : !int
  %tile10, %index10, %inside10 = call @load_vectors(%at10, %x_line, %last_line, %lane)
  %at11 = addi %at10, %BN : !int
  %tile11, %index11, %inside11 = call @load_vectors(%at11, %x_line, %last_line, %lane)
  %at12 = addi %at11, %BN : !int
  %tile12, %index12, %inside12 = call @load_vectors(%at12, %x_line, %last_line, %lane)
  %max1 = maxf %tile0, %tile1 : !line
  %max2 = maxf %max1, %tile2 : !line
  %max3 = maxf %max2, %tile3 : !line
  %max4 = maxf %max3, %tile4 : !line
  %max5 = maxf %max4, %tile5 : !line
  %max6 = maxf %max5, %tile6 : !line
  %max7 = maxf %max6, %tile7 : !line
  %max8 = maxf %max7, %tile8 : !line
  %max9 = maxf %max8, %tile9 : !line
  %max10 = maxf %max9, %tile10 : !line
  %max11 = maxf %max10, %tile11 : !line
  %max12 = maxf %max11, %tile12 : !line
  %max_f32 = ftof %max12 : !line -> !line_f32
  %maximum = call @line_maximum(%max_f32)
  %edges = maxf %head, %tail : !line_8
  %edges_f32 = ftof %edges : !line_8 -> !line_8_f32
  %edge_maximum = call @line_maximum<BN = 8>(%edges_f32)
  %largest = maxf %maximum, %edge_maximum : !real
  %largest_1 = reshape %largest : !real -> !real_1
  %largest_line = broadcast %largest_1 : !real_1 -> !line_f32
  %largest_8 = broadcast %largest_1 : !real_1 -> !line_8_f32
  %sum0 = call @line_exponential(%tile0, %largest_line)
  %power1 = call @line_exponential(%tile1, %largest_line)
  %sum1 = addf %sum0, %power1 : !line_f32
  %power2 = call @line_exponential(%tile2, %largest_line)
  %sum2 = addf %sum1, %power2 : !line_f32
  %power3 = call @line_exponential(%tile3, %largest_line)
  %sum3 = addf %sum2, %power3 : !line_f32
  %power4 = call @line_exponential(%tile4, %largest_line)
  %sum4 = addf %sum3, %power4 : !line_f32
  %power5 = call @line_exponential(%tile5, %largest_line)
  %sum5 = addf %sum4, %power5 : !line_f32
  %power6 = call @line_exponential(%tile6, %largest_line)
  %sum6 = addf %sum5, %power6 : !line_f32
  %power7 = call @line_exponential(%tile7, %largest_line)
  %sum7 = addf %sum6, %power7 : !line_f32
  %power8 = call @line_exponential(%tile8, %largest_line)
  %sum8 = addf %sum7, %power8 : !line_f32
  %power9 = call @line_exponential(%tile9, %largest_line)
  %sum9 = addf %sum8, %power9 : !line_f32
  %power10 = call @line_exponential(%tile10, %largest_line)
  %sum10 = addf %sum9, %power10 : !line_f32
  %power11 = call @line_exponential(%tile11, %largest_line)
  %sum11 = addf %sum10, %power11 : !line_f32
  %power12 = call @line_exponential(%tile12, %largest_line)
  %sum12 = addf %sum11, %power12 : !line_f32
  %sum = call @line_sum(%sum12)
  %head_scaled = call @edge_scaled(%head, %largest_8)
  %head_power = exp2 %head_scaled flush_to_zero : !line_8_f32
  %tail_scaled = call @edge_scaled(%tail, %largest_8)
  %tail_power = exp2 %tail_scaled flush_to_zero : !line_8_f32
  %edge_power = addf %head_power, %tail_power : !line_8_f32
  %edge_sum = call @line_sum<BN = 8>(%edge_power)
  %total = addf %sum, %edge_sum : !real
  %scale = log2 %total : !real
  %scale_1 = reshape %scale : !real -> !real_1
  %scale_line = broadcast %scale_1 : !real_1 -> !line_f32
  %scale_8 = broadcast %scale_1 : !real_1 -> !line_8_f32
  call @store_vectors(%tile0, %largest_line, %scale_line, %out_line, %index0, %inside0)
  call @store_vectors(%tile1, %largest_line, %scale_line, %out_line, %index1, %inside1)
  call @store_vectors(%tile2, %largest_line, %scale_line, %out_line, %index2, %inside2)
  call @store_vectors(%tile3, %largest_line, %scale_line, %out_line, %index3, %inside3)
  call @store_vectors(%tile4, %largest_line, %scale_line, %out_line, %index4, %inside4)
  call @store_vectors(%tile5, %largest_line, %scale_line, %out_line, %index5, %inside5)
  call @store_vectors(%tile6, %largest_line, %scale_line, %out_line, %index6, %inside6)
  call @store_vectors(%tile7, %largest_line, %scale_line, %out_line, %index7, %inside7)
  call @store_vectors(%tile8, %largest_line, %scale_line, %out_line, %index8, %inside8)
  call @store_vectors(%tile9, %largest_line, %scale_line, %out_line, %index9, %inside9)
  call @store_vectors(%tile10, %largest_line, %scale_line, %out_line, %index10, %inside10)
  call @store_vectors(%tile11, %largest_line, %scale_line, %out_line, %index11, %inside11)
  call @store_vectors(%tile12, %largest_line, %scale_line, %out_line, %index12, %inside12)
  call @store_edge(%head_scaled, %scale_8, %out_8, %head_index, %head_mask)
  call @store_edge(%tail_scaled, %scale_8, %out_8, %tail_index, %tail_mask)
  return
}
