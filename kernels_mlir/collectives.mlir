// Collectives over peer memory: sums, copies and norms of what several GPUs hold. See docs/several-gpus.md. Each block first
// meets the blocks of its number on all other ranks. After that it may read what their earlier launches have written, and what
// it writes itself may not be overwritten before the next meeting.

include "rows.mlir"
include "meet.mlir"

sizes BN = 2048, ROWS = 4

!pair_part = !cuda_tile.partition_view<tile=(2xBN), padding_value = zero, !matrix>
!pair_out = !cuda_tile.partition_view<tile=(2xBN), !matrix>
!pair = !cuda_tile.tile<2xBNxT>
!row_out_part = !cuda_tile.partition_view<tile=(1xBN), !matrix>
!row_in_part = !cuda_tile.partition_view<tile=(1xBN), padding_value = zero, !matrix>
!piece = !cuda_tile.tile<1xBNxT>
!out_line = !cuda_tile.partition_view<tile=(BN), !vector>
!out_tile = !cuda_tile.tile<BNxT>
!sum = !cuda_tile.tile<BNxf32>
!planes = !cuda_tile.tensor_view<?x?x?xT, strides=[?,?,1]>
!some_in = !cuda_tile.partition_view<tile=(ROWSxBC), padding_value = zero, !matrix>
!some_out = !cuda_tile.partition_view<tile=(ROWSxBC), !matrix>
!some = !cuda_tile.tile<ROWSxBCxT>
!some_f32 = !cuda_tile.tile<ROWSxBCxf32>
!both_in = !cuda_tile.partition_view<tile=(2xROWSxBC), padding_value = zero, !planes>
!both = !cuda_tile.tile<2xROWSxBCxT>
!both_f32 = !cuda_tile.tile<2xROWSxBCxf32>
!pair_planes = !cuda_tile.partition_view<tile=(2x1xBN), padding_value = zero, !planes>
!pair_plane = !cuda_tile.tile<2x1xBNxT>

// The number of pairs of ranks
fragment @pairs(%R: !int) -> !int {
  %two = constant <i32: 2> : !int
  %pairs = divi %R, %two signed rounding<positive_inf> : !int
  yield %pairs : !int
}

fragment @sum_of_two(%both: !pair) -> !sum {
  %value = ftof %both : !pair -> !cuda_tile.tile<2xBNxf32>
  %sum = call @column_sums<R = 2, BC = BN>(%value)
  yield %sum : !sum
}

// Tile %j of the sum of the parts: of pairs of ranks, which are read at once, and of these in their order. Read after %met.
fragment @sum_of(%parts: !pair_part, %pairs: !int, %j: !int, %met: token) -> (!sum, token) {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %nothing = constant <f32: 0.0> : !sum
  %sum, %read = for %p in (%zero to %pairs, step %one) : !int iter_values(%so_far = %nothing, %t = %met) -> (!sum, token) {
    %both, %read = load_view_tko weak %parts[%p, %j] token = %met optimization_hints = <default = {allow_tma = false}>
        : !pair_part, !int -> !pair, token
    %two = call @sum_of_two(%both)
    %next = addf %so_far, %two : !sum
    %all = join_tokens %t, %read : token
    continue %next, %all : !sum, token
  }
  yield %sum, %read : !sum, token
}

// One meeting, then every B-th of the tiles of N elements, which `tile` makes after %met.
skeleton @collective {
  hole @views
  %zero = constant <i32: 0> : !int
  %BN = constant <i32: BN> : !int
  %ready = gdc_wait_tko -> token
  %met = call @meet(%flags_ptr, %flags_stride0, %flags_stride1, %state_view, %R, %rank, %ready)
  %b, %unused_y, %unused_z = get_tile_block_id : !int
  %blocks, %unused_by, %unused_bz = get_num_tile_blocks : !int
  %tiles = divi %N, %BN signed rounding<positive_inf> : !int
  for %j in (%b to %tiles, step %blocks) : !int {
    hole @tile(%j, %met)
    continue
  }
  return
}

fragment @store_sum(%sum: !sum, %out: !out_line, %j: !int, %met: token) {
  %result = ftof %sum : !sum -> !out_tile
  %stored = store_view_tko weak %result, %out[%j] token = %met optimization_hints = <default = {allow_tma = false}>
      : !out_tile, !out_line, !int -> token
}

kernel @all_reduce op = all_reduce, skeleton = @collective {
  @views {
    %parts = make_partition_view %parts_view : !pair_part
    %outs = make_partition_view %out_view : !out_line
    %pairs = call @pairs(%R)
  }
  @tile(%j, %met) {
    %sum, %read = call @sum_of(%parts, %pairs, %j, %met)
    call @store_sum(%sum, %outs, %j, %met)
  }
}

// Tile j is added by rank j mod R, and stored to all. The second meeting is after all ranks have stored what this one gets.
kernel @all_reduce_two_shot op = all_reduce_two_shot {
  %parts = make_partition_view %parts_view : !pair_part
  %outs = make_partition_view %out_view : !row_out_part
  %pairs = call @pairs(%R)
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BN = constant <i32: BN> : !int
  %ready = gdc_wait_tko -> token
  %met = call @meet(%flags_ptr, %flags_stride0, %flags_stride1, %state_view, %R, %rank, %ready)
  %b, %unused_y, %unused_z = get_tile_block_id : !int
  %blocks, %unused_by, %unused_bz = get_num_tile_blocks : !int
  %tiles = divi %N, %BN signed rounding<positive_inf> : !int
  %of_b = muli %b, %R : !int
  %first = addi %of_b, %rank : !int
  %step = muli %blocks, %R : !int
  %stored = for %j in (%first to %tiles, step %step) : !int iter_values(%t = %met) -> (token) {
    %sum, %read = call @sum_of(%parts, %pairs, %j, %met)
    %result = ftof %sum : !sum -> !out_tile
    %row = reshape %result : !out_tile -> !piece
    %all = for %r in (%zero to %R, step %one) : !int iter_values(%u = %t) -> (token) {
      %kept = store_view_tko weak %row, %outs[%r, %j] token = %met optimization_hints = <default = {allow_tma = false}>
          : !piece, !row_out_part, !int -> token
      %next = join_tokens %u, %kept : token
      continue %next : token
    }
    %with_reads = join_tokens %all, %read : token
    continue %with_reads : token
  }
  %met_again = call @meet(%flags_ptr, %flags_stride0, %flags_stride1, %state_view, %R, %rank, %stored)
  return
}

kernel @all_gather op = all_gather, skeleton = @collective {
  @views {
    %parts = make_partition_view %parts_view : !pair_part
    %outs = make_partition_view %out_view : !pair_out
    %pairs = call @pairs(%R)
    %no_pair = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
  }
  @tile(%j, %met) {
    for %p in (%no_pair to %pairs, step %one) : !int {
      %both, %read = load_view_tko weak %parts[%p, %j] token = %met optimization_hints = <default = {allow_tma = false}>
          : !pair_part, !int -> !pair, token
      %stored = store_view_tko weak %both, %outs[%p, %j] token = %met optimization_hints = <default = {allow_tma = false}>
          : !pair, !pair_out, !int -> token
      continue
    }
  }
}

kernel @reduce_scatter op = reduce_scatter, skeleton = @collective {
  @views {
    %parts = make_partition_view %parts_view : !pair_planes
    %outs = make_partition_view %out_view : !out_line
    %pairs = call @pairs(%R)
    %no_pair = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %nothing = constant <f32: 0.0> : !sum
  }
  @tile(%j, %met) {
    %sum = for %p in (%no_pair to %pairs, step %one) : !int iter_values(%so_far = %nothing) -> (!sum) {
      %plane, %read = load_view_tko weak %parts[%p, %rank, %j] token = %met
          optimization_hints = <default = {allow_tma = false}> : !pair_planes, !int -> !pair_plane, token
      %both = reshape %plane : !pair_plane -> !pair
      %two = call @sum_of_two(%both)
      %next = addf %so_far, %two : !sum
      continue %next : !sum
    }
    call @store_sum(%sum, %outs, %j, %met)
  }
}

kernel @broadcast op = broadcast, skeleton = @collective {
  @views {
    %parts = make_partition_view %parts_view : !row_in_part
    %outs = make_partition_view %out_view : !out_line
  }
  @tile(%j, %met) {
    %row, %read = load_view_tko weak %parts[%root, %j] token = %met optimization_hints = <default = {allow_tma = false}>
        : !row_in_part, !int -> !piece, token
    %line = reshape %row : !piece -> !out_tile
    %stored = store_view_tko weak %line, %outs[%j] token = %met optimization_hints = <default = {allow_tma = false}>
        : !out_tile, !out_line, !int -> token
  }
}

// x = `added` of x, and the sum of the parts, and out = `norm` of what was stored there. One block makes every B-th tile of
// ROWS rows, of at most BC columns, which stay in registers. `vectors` yields the token of its reads.
skeleton @add_and_norm {
  %parts = make_partition_view %parts_view : !both_in
  %x_tiles = make_partition_view %x_view : !some_in
  %x_stores = make_partition_view %x_view : !some_out
  %out_tiles = make_partition_view %out_view : !some_out
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %ROWS = constant <i32: ROWS> : !int
  %pairs = call @pairs(%R)
  %tiles = divi %N, %ROWS signed rounding<positive_inf> : !int
  %w_tiles = make_partition_view %norm_weight_view : !vector_part
  %w, %w_read = call @load_line(%w_tiles, %zero)
  %norm_weight = call @for_each_row<R = ROWS>(%w)
  %read = hole @vectors(%w_read, %zero) -> token
  // The wait comes after these reads by their tokens: else the compiler may put it first.
  %ready = gdc_wait_tko token = %read -> token
  %met = call @meet(%flags_ptr, %flags_stride0, %flags_stride1, %state_view, %R, %rank, %ready)
  %block, %unused_y, %unused_z = get_tile_block_id : !int
  %blocks, %unused_by, %unused_bz = get_num_tile_blocks : !int
  for %n in (%block to %tiles, step %blocks) : !int {
    %x_tile, %x_read = load_view_tko weak %x_tiles[%n, %zero] token = %ready
        optimization_hints = <default = {allow_tma = false}> : !some_in, !int -> !some, token
    %x_f32 = ftof %x_tile : !some -> !some_f32
    %added = hole @added(%x_f32) -> !some_f32
    %nothing = constant <f32: 0.0> : !some_f32
    %sum = for %p in (%zero to %pairs, step %one) : !int iter_values(%so_far = %nothing) -> (!some_f32) {
      %both, %part_read = load_view_tko weak %parts[%p, %n, %zero] token = %met
          optimization_hints = <default = {allow_tma = false}> : !both_in, !int -> !both, token
      %value = ftof %both : !both -> !both_f32
      %two = reduce %value dim=0 identities=[0.0 : f32] : !both_f32 -> !some_f32
      (%a: !real, %b: !real) {
        %ab = addf %a, %b : !real
        yield %ab : !real
      }
      %next = addf %so_far, %two : !some_f32
      continue %next : !some_f32
    }
    %whole = addf %added, %sum : !some_f32
    %rounded = ftof %whole : !some_f32 -> !some
    %x_stored = store_view_tko weak %rounded, %x_stores[%n, %zero] token = %x_read
        optimization_hints = <default = {allow_tma = false}> : !some, !some_out, !int -> token
    %value = ftof %rounded : !some -> !some_f32
    %normed = hole @norm(%value, %norm_weight) -> !some_f32
    call @store_rows<R = ROWS>(%normed, %out_tiles, %n, %zero)
    continue
  }
  return
}

kernel @all_reduce_layernorm op = all_reduce_layernorm, skeleton = @add_and_norm {
  @vectors(%w_read, %zero) {
    %bias_tiles = make_partition_view %bias_view : !vector_part
    %b_tiles = make_partition_view %norm_bias_view : !vector_part
    %bias_line, %bias_read = call @load_line(%bias_tiles, %zero)
    %b, %b_read = call @load_line(%b_tiles, %zero)
    %bias = call @for_each_row<R = ROWS>(%bias_line)
    %norm_bias = call @for_each_row<R = ROWS>(%b)
    %read = join_tokens %w_read, %bias_read, %b_read : token
    yield %read : token
  }
  @added(%x) {
    %biased = addf %x, %bias : !some_f32
    yield %biased : !some_f32
  }
  @norm(%value, %norm_weight) {
    %deviation, %inverse = call @two_pass<R = ROWS>(%value, %C, %eps)
    %scaled = call @normed<R = ROWS>(%deviation, %inverse, %norm_weight, %norm_bias)
    yield %scaled : !some_f32
  }
}

kernel @all_reduce_rmsnorm op = all_reduce_rmsnorm, skeleton = @add_and_norm {
  @vectors(%w_read, %zero) { yield %w_read : token }
  @added(%x) { yield %x : !some_f32 }
  @norm(%value, %norm_weight) {
    %square = mulf %value, %value : !some_f32
    %square_sum = call @sum_in_rows<R = ROWS>(%square)
    %inverse = call @inverse_root<R = ROWS>(%square_sum, %C, %eps)
    %scaled = call @scaled<R = ROWS>(%value, %inverse, %norm_weight)
    yield %scaled : !some_f32
  }
}
