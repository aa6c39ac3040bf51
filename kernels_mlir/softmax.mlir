// out = softmax(x) over the rows of x. Columns past N are padded with -inf, whose exponential is 0; results of exp2 below
// 2^-126 are 0 too.

include "rows.mlir"

sizes BN = 1024

!in_part = !cuda_tile.partition_view<tile=(RxBC), padding_value = neg_inf, !matrix>
!row_in = !cuda_tile.partition_view<tile=(1xBC), padding_value = neg_inf, !matrix>
!ptr = !cuda_tile.tile<ptr<T>>
!ptr_1 = !cuda_tile.tile<1xptr<T>>
!ptr_line = !cuda_tile.tile<BCxptr<T>>
!index_line = !cuda_tile.tile<BCxi32>
!mask_line = !cuda_tile.tile<BCxi1>
!edge = !cuda_tile.tile<8xT>
!edge_f32 = !cuda_tile.tile<8xf32>
!edge_index = !cuda_tile.tile<8xi32>
!edge_mask = !cuda_tile.tile<8xi1>
!edge_ptr = !cuda_tile.tile<8xptr<T>>

fragment @load(%tiles: !in_part, %m: !int, %j: !int) -> !rows {
  %tile, %token = load_view_tko weak %tiles[%m, %j] optimization_hints = <default = {allow_tma = false}>
      : !in_part, !int -> !rows, token
  yield %tile : !rows
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
  %column = call @max_in_rows(%value)
  %all = broadcast %column : !stat_1 -> !f32
  yield %all : !f32
}

// 1 / the sum of each row, for each of its elements
fragment @inverse_sum(%value: !f32) -> !f32 {
  %column = call @sum_in_rows(%value)
  %unit = constant <f32: 1.0> : !stat_1
  %inverse = divf %unit, %column : !stat_1
  %all = broadcast %inverse : !stat_1 -> !f32
  yield %all : !f32
}

// Rows of any width: one block makes one row, in tiles of BC columns, in two passes. The first takes the largest value and the
// sum of the exponentials per lane, and rescales a lane's sum when its largest value rises.
kernel @softmax op = softmax, BC = BN {
  %x_tiles = make_partition_view %x_view : !row_in
  %out_tiles = make_partition_view %out_view : !row_out
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BC = constant <i32: BC> : !int
  %steps = divi %N, %BC signed rounding<positive_inf> : !int
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
    call @store_rows<R = 1>(%share, %out_tiles, %m, %j)
    continue
  }
  return
}

// Register-resident: one block makes R rows of at most BC columns; x is read once.
kernel @softmax_rows op = softmax, BC = BN {
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
  call @store_rows(%share, %out_tiles, %m, %zero)
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
  call @store_rows(%share, %tiles, %m, %j)
}

// Register-resident, for rows of at most seven tiles: one block makes one row, which stays in registers in its storage type.
// x is read once, the exponentials are taken twice.
kernel @softmax_resident op = softmax, BC = BN {
  %x_tiles = make_partition_view %x_view : !row_in
  %out_tiles = make_partition_view %out_view : !row_out
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  repeat I = 0 to 6 {
    %j.I = constant <i32: I> : !int
  }
  repeat I = 0 to 6 {
    %tile.I = call @load<R = 1>(%x_tiles, %m, %j.I)
  }
  %max.1 = maxf %tile.0, %tile.1 : !row
  repeat I = 2 to 6 {
    %max.I = maxf %max.I-1, %tile.I : !row
  }
  %max_f32 = ftof %max.6 : !row -> !row_f32
  %largest = call @largest<R = 1>(%max_f32)
  %sum.0 = call @tile_exponential<R = 1>(%tile.0, %largest)
  repeat I = 1 to 6 {
    %power.I = call @tile_exponential<R = 1>(%tile.I, %largest)
    %sum.I = addf %sum.I-1, %power.I : !row_f32
  }
  %inverse = call @inverse_sum<R = 1>(%sum.6)
  repeat I = 0 to 6 {
    call @store_share<R = 1>(%tile.I, %largest, %inverse, %out_tiles, %m, %j.I)
  }
  return
}

// The contiguous kernel reads and writes vectors of 8 elements through pointers. A line is BC elements from %at on, masked
// where it passes %last; -inf stands for what is not there.
fragment @load_vectors(%at: !int, %x: !ptr_line, %last: !index_line, %lane: !index_line) -> (!line, !index_line, !mask_line) {
  %lowest_f32 = constant <f32: 0xFF800000> : !line_f32
  %lowest = ftof %lowest_f32 : !line_f32 -> !line
  %ats = call @index_line(%at)
  %index = addi %ats, %lane : !index_line
  %inside = cmpi less_than %index, %last, signed : !index_line -> !mask_line
  %from = offset %x, %index : !ptr_line, !index_line -> !ptr_line
  %tile, %token = load_ptr_tko weak %from, %inside, %lowest : !ptr_line, !mask_line, !line -> !line, token
  yield %tile, %index, %inside : !line, !index_line, !mask_line
}

// log2 e (value - largest), and its power
fragment @line_scaled(%tile: !line, %largest: !line_f32) -> !line_f32 {
  %log2e = constant <f32: 1.4426950408889634> : !line_f32
  %value = ftof %tile : !line -> !line_f32
  %below = subf %value, %largest : !line_f32
  %scaled = mulf %below, %log2e : !line_f32
  yield %scaled : !line_f32
}

fragment @line_exponential(%tile: !line, %largest: !line_f32) -> !line_f32 {
  %scaled = call @line_scaled(%tile, %largest)
  %power = exp2 %scaled flush_to_zero : !line_f32
  yield %power : !line_f32
}

// 2^(scaled - scale), stored
fragment @store_line(%scaled: !line_f32, %scale: !line_f32, %out: !ptr_line, %index: !index_line, %mask: !mask_line) {
  %less = subf %scaled, %scale : !line_f32
  %share = exp2 %less flush_to_zero : !line_f32
  %result = ftof %share : !line_f32 -> !line
  %to = offset %out, %index : !ptr_line, !index_line -> !ptr_line
  %stored = store_ptr_tko weak %to, %result, %mask : !ptr_line, !line, !mask_line -> token
}

// Adding 0 makes the tile another value: else the compiler keeps what it computed from it before, in f32, which takes twice
// the registers.
fragment @store_vectors(%tile: !line, %largest: !line_f32, %scale: !line_f32, %out: !ptr_line, %index: !index_line,
    %inside: !mask_line) {
  %log2e = constant <f32: 1.4426950408889634> : !line_f32
  %nothing = constant <T: 0.0> : !line
  %again = addf %tile, %nothing : !line
  %value = ftof %again : !line -> !line_f32
  %below = subf %value, %largest : !line_f32
  %scaled = mulf %below, %log2e : !line_f32
  call @store_line(%scaled, %scale, %out, %index, %inside)
}

// An integer for each element
fragment @index_line(%scalar: !int) -> !index_line {
  %scalar_1 = reshape %scalar : !int -> !int_1
  %all = broadcast %scalar_1 : !int_1 -> !index_line
  yield %all : !index_line
}

// The vectors that a row begins and ends in: their other elements belong to the rows beside.
fragment @load_edge(%index: !index_line, %mask: !mask_line, %x: !ptr_line) -> !line {
  %lowest_f32 = constant <f32: 0xFF800000> : !line_f32
  %lowest = ftof %lowest_f32 : !line_f32 -> !line
  %from = offset %x, %index : !ptr_line, !index_line -> !ptr_line
  %read, %token = load_ptr_tko weak %from, %mask, %lowest : !ptr_line, !mask_line, !line -> !line, token
  yield %read : !line
}

// Contiguous: as softmax_resident, for arrays without gaps whose rows begin at any element, of at most thirteen tiles. Two
// blocks share a multiprocessor.
kernel @softmax_contiguous op = softmax, BC = BN {
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %BC = constant <i32: BC> : !int
  %vector = constant <i32: 8> : !int
  %start = muli %m, %N : !int
  %end = addi %start, %N : !int
  %first_vector = divi %start, %vector signed : !int
  %first = muli %first_vector, %vector : !int
  %last_vector = divi %end, %vector signed : !int
  %last = muli %last_vector, %vector : !int
  %last_line = call @index_line(%last)
  %start_8 = call @index_line<BC = 8>(%start)
  %end_8 = call @index_line<BC = 8>(%end)
  %first_8 = call @index_line<BC = 8>(%first)
  %last_8 = call @index_line<BC = 8>(%last)
  %x_1 = reshape %x_ptr : !ptr -> !ptr_1
  %x_line = broadcast %x_1 : !ptr_1 -> !ptr_line
  %x_8 = broadcast %x_1 : !ptr_1 -> !edge_ptr
  %out_1 = reshape %out_ptr : !ptr -> !ptr_1
  %out_line = broadcast %out_1 : !ptr_1 -> !ptr_line
  %out_8 = broadcast %out_1 : !ptr_1 -> !edge_ptr
  %lane = iota : !index_line
  %lane_8 = iota : !edge_index
  %head_index = addi %first_8, %lane_8 : !edge_index
  %head_mask = cmpi greater_than_or_equal %head_index, %start_8, signed : !edge_index -> !edge_mask
  %head = call @load_edge<BC = 8>(%head_index, %head_mask, %x_8)
  %tail_index = addi %last_8, %lane_8 : !edge_index
  %tail_mask = cmpi less_than %tail_index, %end_8, signed : !edge_index -> !edge_mask
  %tail = call @load_edge<BC = 8>(%tail_index, %tail_mask, %x_8)
  %at.0 = addi %first, %vector : !int
  %tile.0, %index.0, %inside.0 = call @load_vectors(%at.0, %x_line, %last_line, %lane)
  repeat I = 1 to 12 {
    %at.I = addi %at.I-1, %BC : !int
    %tile.I, %index.I, %inside.I = call @load_vectors(%at.I, %x_line, %last_line, %lane)
  }
  %max.1 = maxf %tile.0, %tile.1 : !line
  repeat I = 2 to 12 {
    %max.I = maxf %max.I-1, %tile.I : !line
  }
  %max_f32 = ftof %max.12 : !line -> !line_f32
  %maximum = call @line_maximum(%max_f32)
  %edges = maxf %head, %tail : !edge
  %edges_f32 = ftof %edges : !edge -> !edge_f32
  %edge_maximum = call @line_maximum<BC = 8>(%edges_f32)
  %largest = maxf %maximum, %edge_maximum : !real
  %largest_1 = reshape %largest : !real -> !real_1
  %largest_line = broadcast %largest_1 : !real_1 -> !line_f32
  %largest_8 = broadcast %largest_1 : !real_1 -> !edge_f32
  %sum.0 = call @line_exponential(%tile.0, %largest_line)
  repeat I = 1 to 12 {
    %power.I = call @line_exponential(%tile.I, %largest_line)
    %sum.I = addf %sum.I-1, %power.I : !line_f32
  }
  %sum = call @line_sum(%sum.12)
  %head_scaled = call @line_scaled<BC = 8>(%head, %largest_8)
  %head_power = exp2 %head_scaled flush_to_zero : !edge_f32
  %tail_scaled = call @line_scaled<BC = 8>(%tail, %largest_8)
  %tail_power = exp2 %tail_scaled flush_to_zero : !edge_f32
  %edge_power = addf %head_power, %tail_power : !edge_f32
  %edge_sum = call @line_sum<BC = 8>(%edge_power)
  %total = addf %sum, %edge_sum : !real
  %scale = log2 %total : !real
  %scale_1 = reshape %scale : !real -> !real_1
  %scale_line = broadcast %scale_1 : !real_1 -> !line_f32
  %scale_8 = broadcast %scale_1 : !real_1 -> !edge_f32
  repeat I = 0 to 12 {
    call @store_vectors(%tile.I, %largest_line, %scale_line, %out_line, %index.I, %inside.I)
  }
  call @store_line<BC = 8>(%head_scaled, %scale_8, %out_8, %head_index, %head_mask)
  call @store_line<BC = 8>(%tail_scaled, %scale_8, %out_8, %tail_index, %tail_mask)
  return
}
