// linear_residual_squares of what merge_attention makes: the product behind a split-KV attention merges the spans itself, in
// place of a launch of its own. Every block merges all heads of its row, so it is for few spans. Merged heads are rounded to T
// before the product, as merge_attention stores them: the result is that of the two launches.

include "small_m.mlir"

sizes BM = 1, BN = 32, BK = 256, BH = 4, D = 64  // BK = BH D: a step of K is BH heads

!real_ptr = !cuda_tile.tile<ptr<f32>>
!real_ptr_1x1 = !cuda_tile.tile<1x1xptr<f32>>
!stat_ptrs = !cuda_tile.tile<BHx1xptr<f32>>
!head_ptrs = !cuda_tile.tile<BHxDxptr<f32>>
!long = !cuda_tile.tile<i64>
!head_lanes = !cuda_tile.tile<BHxi32>
!head_column = !cuda_tile.tile<BHx1xi32>
!head_places = !cuda_tile.tile<BHxDxi32>
!lanes_D = !cuda_tile.tile<Dxi32>
!lanes_1xD = !cuda_tile.tile<1xDxi32>
!flag_1x1 = !cuda_tile.tile<1x1xi1>
!stat_mask = !cuda_tile.tile<BHx1xi1>
!head_mask = !cuda_tile.tile<BHxDxi1>
!head_stat = !cuda_tile.tile<BHx1xf32>
!head_acc = !cuda_tile.tile<BHxDxf32>
!head_rows = !cuda_tile.tile<BHxDxT>

// The maxima, sums and weighted sums to begin with. The maximum is below every score, and finite, as in merge_attention
fragment @no_spans() -> (!head_stat, !head_stat, !head_acc) {
  %max = constant <f32: -1.0e30> : !head_stat
  %sum = constant <f32: 0.0> : !head_stat
  %acc = constant <f32: 0.0> : !head_acc
  yield %max, %sum, %acc : !head_stat, !head_stat, !head_acc
}

// Where row b of an array of spans begins
fragment @row_of_spans(%array: !real_ptr, %stride: !int, %b: !int) -> !real_ptr {
  %b_wide = exti %b signed : !int -> !long
  %stride_wide = exti %stride signed : !int -> !long
  %offset = muli %b_wide, %stride_wide : !long
  %row = offset %array, %offset : !real_ptr, !long -> !real_ptr
  yield %row : !real_ptr
}

fragment @load_stats_of_heads(%base: !real_ptr, %offsets: !head_column, %there: !stat_mask, %nothing: !head_stat) -> !head_stat {
  %base_1x1 = reshape %base : !real_ptr -> !real_ptr_1x1
  %bases = broadcast %base_1x1 : !real_ptr_1x1 -> !stat_ptrs
  %places = offset %bases, %offsets : !stat_ptrs, !head_column -> !stat_ptrs
  %stats, %token = load_ptr_tko weak %places, %there, %nothing : !stat_ptrs, !stat_mask, !head_stat -> !head_stat, token
  yield %stats : !head_stat
}

fragment @load_part_of_heads(%base: !real_ptr, %offsets: !head_places, %there: !stat_mask) -> !head_acc {
  %base_1x1 = reshape %base : !real_ptr -> !real_ptr_1x1
  %bases = broadcast %base_1x1 : !real_ptr_1x1 -> !head_ptrs
  %places = offset %bases, %offsets : !head_ptrs, !head_places -> !head_ptrs
  %mask = broadcast %there : !stat_mask -> !head_mask
  %nothing = constant <f32: 0.0> : !head_acc
  %partial, %token = load_ptr_tko weak %places, %mask, %nothing : !head_ptrs, !head_mask, !head_acc -> !head_acc, token
  yield %partial : !head_acc
}

// The heads of tile h with the spans 8 j and on: their maximum, the sum of their weights, and the weighted sum of their
// partial results. Written out, and by addresses: each thread then gets what it adds up, and waits for no other. What is not
// there has no weight, and the sum of a head that is not there is not 0. `stats`, `partial`: a row's.
fragment @merge_spans(%stats: !real_ptr, %stats_head: !int, %stats_span: !int, %partial: !real_ptr, %partial_head: !int,
    %partial_span: !int, %h: !int, %j: !int, %H: !int, %Z: !int, %max_old: !head_stat, %sum_old: !head_stat,
    %acc_old: !head_acc) -> (!head_stat, !head_stat, !head_acc) {
  %one = constant <i32: 1> : !int
  %BH = constant <i32: BH> : !int
  %SPANS = constant <i32: 8> : !int
  %least = constant <f32: -1.0e30> : !head_stat
  %unit = constant <f32: 1.0> : !head_stat

  %first = muli %h, %BH : !int
  %first_1x1 = reshape %first : !int -> !int_1x1
  %firsts = broadcast %first_1x1 : !int_1x1 -> !head_column
  %lanes = iota : !head_lanes
  %lane_column = reshape %lanes : !head_lanes -> !head_column
  %heads = addi %firsts, %lane_column : !head_column
  %H_1x1 = reshape %H : !int -> !int_1x1
  %behind = broadcast %H_1x1 : !int_1x1 -> !head_column
  %known = cmpi less_than %heads, %behind, signed : !head_column -> !stat_mask

  %stats_head_1x1 = reshape %stats_head : !int -> !int_1x1
  %stats_heads = broadcast %stats_head_1x1 : !int_1x1 -> !head_column
  %stat_offsets = muli %heads, %stats_heads : !head_column
  %partial_head_1x1 = reshape %partial_head : !int -> !int_1x1
  %partial_heads = broadcast %partial_head_1x1 : !int_1x1 -> !head_column
  %head_offsets = muli %heads, %partial_heads : !head_column
  %head_offsets_full = broadcast %head_offsets : !head_column -> !head_places
  %columns = iota : !lanes_D
  %columns_row = reshape %columns : !lanes_D -> !lanes_1xD
  %columns_full = broadcast %columns_row : !lanes_1xD -> !head_places
  %partial_offsets = addi %head_offsets_full, %columns_full : !head_places

  %span_first = muli %j, %SPANS : !int
  repeat I = 0 to 7 {
    %i.I = constant <i32: I> : !int
    %z.I = addi %span_first, %i.I : !int
    %within.I = cmpi less_than %z.I, %Z, signed : !int -> !flag
    %within_1x1.I = reshape %within.I : !flag -> !flag_1x1
    %within_full.I = broadcast %within_1x1.I : !flag_1x1 -> !stat_mask
    %there.I = andi %known, %within_full.I : !stat_mask
    %stats_step.I = muli %z.I, %stats_span : !int
    %maxima_at.I = offset %stats, %stats_step.I : !real_ptr, !int -> !real_ptr
    %sums_at.I = offset %maxima_at.I, %one : !real_ptr, !int -> !real_ptr
    %partial_step.I = muli %z.I, %partial_span : !int
    %partial_at.I = offset %partial, %partial_step.I : !real_ptr, !int -> !real_ptr
    %top.I = call @load_stats_of_heads(%maxima_at.I, %stat_offsets, %there.I, %least)
    %total.I = call @load_stats_of_heads(%sums_at.I, %stat_offsets, %there.I, %unit)
    %part.I = call @load_part_of_heads(%partial_at.I, %partial_offsets, %there.I)
  }
  %max.0 = maxf %max_old, %top.0 : !head_stat
  repeat I = 1 to 7 {
    %max.I = maxf %max.I-1, %top.I : !head_stat
  }
  %fall = subf %max_old, %max.7 : !head_stat
  %rescale = exp2 %fall : !head_stat
  %rescale_full = broadcast %rescale : !head_stat -> !head_acc
  repeat I = 0 to 7 {
    %below.I = subf %top.I, %max.7 : !head_stat
    %weight.I = exp2 %below.I : !head_stat
    %weight_full.I = broadcast %weight.I : !head_stat -> !head_acc
  }
  %sum_here.0 = mulf %total.0, %weight.0 : !head_stat
  %acc_here.0 = mulf %part.0, %weight_full.0 : !head_acc
  repeat I = 1 to 7 {
    %sum_here.I = fma %total.I, %weight.I, %sum_here.I-1 : !head_stat
    %acc_here.I = fma %part.I, %weight_full.I, %acc_here.I-1 : !head_acc
  }
  %sum = fma %sum_old, %rescale, %sum_here.7 : !head_stat
  %acc = fma %acc_old, %rescale_full, %acc_here.7 : !head_acc
  yield %max.7, %sum, %acc : !head_stat, !head_stat, !head_acc
}

// Heads, rounded to T, as a column in f32
fragment @merged_heads(%sum: !head_stat, %acc: !head_acc) -> !x_column {
  %unit = constant <f32: 1.0> : !head_stat
  %inverse = divf %unit, %sum : !head_stat
  %inverse_full = broadcast %inverse : !head_stat -> !head_acc
  %mean = mulf %acc, %inverse_full : !head_acc
  %stored = ftof %mean : !head_acc -> !head_rows
  %rows = ftof %stored : !head_rows -> !head_acc
  %column = reshape %rows : !head_acc -> !x_column
  yield %column : !x_column
}

fragment @span_steps(%Z: !int) -> !int {
  %SPANS = constant <i32: 8> : !int
  %steps = divi %Z, %SPANS signed rounding<positive_inf> : !int
  yield %steps : !int
}

// At most three steps of heads, whose weights are read before the wait. A part of the squares is one tile wide.
kernel @merge_linear_residual_squares_gemv op = merge_linear_residual_squares {
  %w_tiles = make_partition_view %weight_view : !w_part
  %bias_tiles = make_partition_view %bias_view : !bias_part
  %residual_tiles = make_partition_view %residual_view : !residual_part
  %squares_tiles = make_partition_view %squares_view : !squares_out_part
  %out_tiles = make_partition_view %out_view : !out_part
  %n, %b, %unused = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %two = constant <i32: 2> : !int
  %steps = call @span_steps(%Z)
  %stats = call @row_of_spans(%stats_ptr, %stats_stride0, %b)
  %partial = call @row_of_spans(%partial_ptr, %partial_stride0, %b)
  %w0, %w1, %w2, %t0, %t1, %t2 = call @load_weight_directly(%w_tiles, %zero, %one, %two, %n)
  %bias, %bias_read = call @load_bias_directly(%bias_tiles, %n)
  %bias_rows = call @bias_rows(%bias)
  %read = call @after_all(%t0, %t1, %t2, %bias_read)
  %ready = gdc_wait_tko token = %read -> token
  %residual, %residual_read = call @load_residual_directly(%residual_tiles, %b, %n)
  %max_start, %sum_start, %acc_start = call @no_spans()
  %max0, %sum0, %acc0, %max1, %sum1, %acc1, %max2, %sum2, %acc2 = for %j in (%zero to %steps, step %one) : !int
      iter_values(%max0_old = %max_start, %sum0_old = %sum_start, %acc0_old = %acc_start,
          %max1_old = %max_start, %sum1_old = %sum_start, %acc1_old = %acc_start,
          %max2_old = %max_start, %sum2_old = %sum_start, %acc2_old = %acc_start)
      -> (!head_stat, !head_stat, !head_acc, !head_stat, !head_stat, !head_acc, !head_stat, !head_stat, !head_acc) {
    %max0_new, %sum0_new, %acc0_new = call @merge_spans(%stats, %stats_stride1, %stats_stride2, %partial, %partial_stride1,
        %partial_stride2, %zero, %j, %H, %Z, %max0_old, %sum0_old, %acc0_old)
    %max1_new, %sum1_new, %acc1_new = call @merge_spans(%stats, %stats_stride1, %stats_stride2, %partial, %partial_stride1,
        %partial_stride2, %one, %j, %H, %Z, %max1_old, %sum1_old, %acc1_old)
    %max2_new, %sum2_new, %acc2_new = call @merge_spans(%stats, %stats_stride1, %stats_stride2, %partial, %partial_stride1,
        %partial_stride2, %two, %j, %H, %Z, %max2_old, %sum2_old, %acc2_old)
    continue %max0_new, %sum0_new, %acc0_new, %max1_new, %sum1_new, %acc1_new, %max2_new, %sum2_new, %acc2_new
        : !head_stat, !head_stat, !head_acc, !head_stat, !head_stat, !head_acc, !head_stat, !head_stat, !head_acc
  }
  %none = constant <f32: 0.0> : !w_f32
  %x0 = call @merged_heads(%sum0, %acc0)
  %total0 = call @gemv_step(%x0, %w0, %none)
  %x1 = call @merged_heads(%sum1, %acc1)
  %total1 = call @gemv_step(%x1, %w1, %total0)
  %x2 = call @merged_heads(%sum2, %acc2)
  %total2 = call @gemv_step(%x2, %w2, %total1)
  %product = call @sum_of_steps(%total2)
  %biased = addf %product, %bias_rows : !acc
  %value = call @add_residual(%biased, %residual)
  %stored = call @store_directly(%value, %out_tiles, %b, %n, %residual_read)
  %squares_stored = call @store_squares(%value, %squares_tiles, %b, %n)
  return
}

// Any number of heads and parts: one block walks the tiles of a part of one row, and merges the heads for each again.
kernel @merge_linear_residual_squares op = merge_linear_residual_squares {
  %w_tiles = make_partition_view %weight_view : !w_part
  %bias_tiles = make_partition_view %bias_view : !bias_part
  %residual_tiles = make_partition_view %residual_view : !residual_part
  %squares_tiles = make_partition_view %squares_view : !squares_out_part
  %out_tiles = make_partition_view %out_view : !out_part
  %p, %b, %unused = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BN = constant <i32: BN> : !int
  %BH = constant <i32: BH> : !int
  %n_tiles = divi %N, %BN signed rounding<positive_inf> : !int
  %part_tiles = divi %n_tiles, %P signed rounding<positive_inf> : !int
  %first = muli %p, %part_tiles : !int
  %behind = addi %first, %part_tiles : !int
  %last = mini %behind, %n_tiles signed : !int
  %head_tiles = divi %H, %BH signed rounding<positive_inf> : !int
  %steps = call @span_steps(%Z)
  %stats = call @row_of_spans(%stats_ptr, %stats_stride0, %b)
  %partial = call @row_of_spans(%partial_ptr, %partial_stride0, %b)
  %max_start, %sum_start, %acc_start = call @no_spans()
  %none = constant <f32: 0.0> : !w_f32
  %no_squares = constant <f32: 0.0> : !column
  %start = make_token : token
  %end, %row_sum = for %n in (%first to %last, step %one) : !int iter_values(%before = %start, %squares_so_far = %no_squares)
      -> (token, !column) {
    %total = for %h in (%zero to %head_tiles, step %one) : !int iter_values(%total_old = %none) -> (!w_f32) {
      %max, %sum, %acc = for %j in (%zero to %steps, step %one) : !int
          iter_values(%max_old = %max_start, %sum_old = %sum_start, %acc_old = %acc_start)
          -> (!head_stat, !head_stat, !head_acc) {
        %max_new, %sum_new, %acc_new = call @merge_spans(%stats, %stats_stride1, %stats_stride2, %partial, %partial_stride1,
            %partial_stride2, %h, %j, %H, %Z, %max_old, %sum_old, %acc_old)
        continue %max_new, %sum_new, %acc_new : !head_stat, !head_stat, !head_acc
      }
      %x = call @merged_heads(%sum, %acc)
      %w, %w_read = load_view_tko weak %w_tiles[%h, %n] optimization_hints = <default = {allow_tma = false}>
          : !w_part, !int -> !w, token
      %total_new = call @gemv_step(%x, %w, %total_old)
      continue %total_new : !w_f32
    }
    %product = call @sum_of_steps(%total)
    %bias, %bias_read = call @load_bias_directly(%bias_tiles, %n)
    %bias_rows = call @bias_rows(%bias)
    %biased = addf %product, %bias_rows : !acc
    %residual, %read = load_view_tko weak %residual_tiles[%b, %n] token = %before
        optimization_hints = <default = {allow_tma = false}> : !residual_part, !int -> !out, token
    %value = call @add_residual(%biased, %residual)
    %stored = call @store_directly(%value, %out_tiles, %b, %n, %read)
    %squares_here = call @row_squares_alone(%value)
    %squares_next = addf %squares_so_far, %squares_here : !column
    continue %stored, %squares_next : token, !column
  }
  %row = reshape %row_sum : !column -> !square_1
  %squares_stored = store_view_tko weak %row, %squares_tiles[%p, %b] optimization_hints = <default = {allow_tma = false}>
      : !square_1, !squares_out_part, !int -> token
  return
}
