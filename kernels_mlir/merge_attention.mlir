// The end of a split-KV attention: out = sum of partial[z] 2^(max[z] - maximum), by the sum of sum[z] 2^(max[z] - maximum),
// over the spans z. `decode_attention` makes partial[z] and stats[z] = (max[z], sum[z]). A block makes one head of one
// sequence, BZ spans at a time: grid (H, B). The head size D is a constant of the entry.

include "common.mlir"

sizes BZ = 8, D = 64

!partial_part = !cuda_tile.partition_view<tile=(1x1xBZxD), padding_value = zero, !spans>
!stat_part = !cuda_tile.partition_view<tile=(1x1xBZx1), padding_value = zero, !spans>
!head_part = !cuda_tile.partition_view<tile=(1x1xD), !heads>
!partial_tile = !cuda_tile.tile<1x1xBZxDxf32>
!stat_tile = !cuda_tile.tile<1x1xBZx1xf32>
!head_tile = !cuda_tile.tile<1x1xDxT>
!partial = !cuda_tile.tile<BZxDxf32>
!stat = !cuda_tile.tile<BZx1xf32>
!lanes = !cuda_tile.tile<BZxi32>
!lane_mask = !cuda_tile.tile<BZxi1>
!mask = !cuda_tile.tile<BZx1xi1>
!acc = !cuda_tile.tile<1xDxf32>
!head = !cuda_tile.tile<1xDxT>

// The hole: `combine` makes the sum of all weights and the weighted sum of the partial results.
skeleton @merge {
  // D as a size at run time: as a constant it makes the code longer, and slower.
  %partial_D = assume bounded<0, ?>, %partial_d : !int
  %out_D = assume bounded<0, ?>, %out_d : !int
  %sized_partial = make_tensor_view %partial_ptr, shape = [%B, %H, %Z, %partial_D],
      strides = [%partial_stride0, %partial_stride1, %partial_stride2, 1] : !int -> !spans
  %sized_out = make_tensor_view %out_ptr, shape = [%B, %H, %out_D], strides = [%out_stride0, %out_stride1, 1]
      : !int -> !heads
  %partial_tiles = make_partition_view %sized_partial : !partial_part
  %stat_tiles = make_partition_view %stats_view : !stat_part
  %out_tiles = make_partition_view %sized_out : !head_part
  %h, %b, %unused = get_tile_block_id : !int
  %sum, %acc = hole @combine(%partial_tiles, %stat_tiles, %b, %h) -> (!real_1x1, !acc)
  %zero = constant <i32: 0> : !int
  %unit = constant <f32: 1.0> : !real_1x1
  %inverse = divf %unit, %sum : !real_1x1
  %inverse_full = broadcast %inverse : !real_1x1 -> !acc
  %mean = mulf %acc, %inverse_full : !acc
  %result = ftof %mean : !acc -> !head
  %tile = reshape %result : !head -> !head_tile
  %stored = store_view_tko weak %tile, %out_tiles[%b, %h, %zero] optimization_hints = <default = {allow_tma = false}>
      : !head_tile, !head_part, !int -> token
  return
}

// The maxima, sums and partial results of spans BZ * j and on; zeros past the last span
fragment @load_spans(%stats: !stat_part, %partials: !partial_part, %b: !int, %h: !int, %j: !int) -> (!stat, !stat, !partial) {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %max_tile, %t0 = load_view_tko weak %stats[%b, %h, %j, %zero] optimization_hints = <default = {allow_tma = false}>
      : !stat_part, !int -> !stat_tile, token
  %sum_tile, %t1 = load_view_tko weak %stats[%b, %h, %j, %one] optimization_hints = <default = {allow_tma = false}>
      : !stat_part, !int -> !stat_tile, token
  %partial_tile, %t2 = load_view_tko weak %partials[%b, %h, %j, %zero] optimization_hints = <default = {allow_tma = false}>
      : !partial_part, !int -> !partial_tile, token
  %max = reshape %max_tile : !stat_tile -> !stat
  %sum = reshape %sum_tile : !stat_tile -> !stat
  %partial = reshape %partial_tile : !partial_tile -> !partial
  yield %max, %sum, %partial : !stat, !stat, !partial
}

// The maxima of spans below %behind, and their maximum. What stands for the others is below every score, and finite: the
// difference of two of them is 0 and not NaN.
fragment @maximum(%maxima: !stat, %lanes: !lanes, %behind: !lanes) -> (!stat, !real_1x1) {
  %within = cmpi less_than %lanes, %behind, signed : !lanes -> !lane_mask
  %there = reshape %within : !lane_mask -> !mask
  %least = constant <f32: -1.0e30> : !stat
  %tops = select %there, %maxima, %least : !mask, !stat
  %top = call @max_in_columns<R = BZ, BC = 1>(%tops)
  yield %tops, %top : !stat, !real_1x1
}

// The sum of these spans' weights and the weighted sum of their partial results, with weights 2^(top - max)
fragment @weighted(%tops: !stat, %max: !real_1x1, %sums: !stat, %partials: !partial) -> (!real_1x1, !acc) {
  %max_full = broadcast %max : !real_1x1 -> !stat
  %below = subf %tops, %max_full : !stat
  %weights = exp2 %below : !stat
  %sums_weighted = mulf %sums, %weights : !stat
  %sum = call @sum_in_columns<R = BZ, BC = 1>(%sums_weighted)
  %weights_full = broadcast %weights : !stat -> !partial
  %partials_weighted = mulf %partials, %weights_full : !partial
  %acc = call @sum_in_columns<R = BZ, BC = D>(%partials_weighted)
  yield %sum, %acc : !real_1x1, !acc
}

fragment @in_all_lanes(%value: !int) -> !lanes {
  %value_1 = reshape %value : !int -> !int_1
  %lanes = broadcast %value_1 : !int_1 -> !lanes
  yield %lanes : !lanes
}

// At most BZ spans, all at once
kernel @merge_attention_single_pass op = merge_attention, skeleton = @merge {
  @combine(%partial_tiles, %stat_tiles, %b, %h) {
    %zero = constant <i32: 0> : !int
    %maxima, %sums, %partials = call @load_spans(%stat_tiles, %partial_tiles, %b, %h, %zero)
    %lanes = iota : !lanes
    %behind = call @in_all_lanes(%Z)
    %tops, %max = call @maximum(%maxima, %lanes, %behind)
    %sum, %acc = call @weighted(%tops, %max, %sums, %partials)
    yield %sum, %acc : !real_1x1, !acc
  }
}

// Any number of spans, with the online softmax
kernel @merge_attention op = merge_attention, skeleton = @merge {
  @combine(%partial_tiles, %stat_tiles, %b, %h) {
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BZ = constant <i32: BZ> : !int
    %steps = divi %Z, %BZ signed rounding<positive_inf> : !int
    %lanes = iota : !lanes
    %behind = call @in_all_lanes(%Z)
    %max_start = constant <f32: -1.0e30> : !real_1x1
    %sum_start = constant <f32: 0.0> : !real_1x1
    %acc_start = constant <f32: 0.0> : !acc
    %max, %sum, %acc = for %j in (%zero to %steps, step %one) : !int
        iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start) -> (!real_1x1, !real_1x1, !acc) {
      %j_first = muli %j, %BZ : !int
      %first = call @in_all_lanes(%j_first)
      %spans = addi %first, %lanes : !lanes
      %maxima, %sums, %partials = call @load_spans(%stat_tiles, %partial_tiles, %b, %h, %j)
      %tops, %top = call @maximum(%maxima, %spans, %behind)
      %max_new = maxf %max_old, %top : !real_1x1
      %fall = subf %max_old, %max_new : !real_1x1
      %rescale = exp2 %fall : !real_1x1
      %tile_sum, %tile_acc = call @weighted(%tops, %max_new, %sums, %partials)
      %sum_new = fma %sum_old, %rescale, %tile_sum : !real_1x1
      %rescale_full = broadcast %rescale : !real_1x1 -> !acc
      %acc_new = fma %acc_old, %rescale_full, %tile_acc : !acc
      continue %max_new, %sum_new, %acc_new : !real_1x1, !real_1x1, !acc
    }
    yield %sum, %acc : !real_1x1, !acc
  }
}
