// Products over several GPUs whose tiles travel while the next ones are multiplied. See docs/several-gpus.md.
//
// matmul_reduce_scatter: each rank has a part of K. It makes the tiles of the other ranks first and stores each to the rank that
// adds it up; its own tiles come last, when the others' have long arrived. Block b of each rank makes the same tiles of a piece,
// so that it waits for block b of the others alone.
//
// all_gather_matmul: each rank has some rows and some columns. It sends its rows to the others, multiplies them itself, and then
// what has arrived. A row is sent by several blocks and read by several, so that all blocks wait for all.

include "products.mlir"
include "meet.mlir"

!planes = !cuda_tile.tensor_view<?x?x?xT, strides=[?,?,1]>
!x_pieces = !cuda_tile.partition_view<tile=(1xBMxBK), padding_value = zero, !planes>
!x_piece = !cuda_tile.tile<1xBMxBKxT>
!out_pieces = !cuda_tile.partition_view<tile=(1xBMxBN), !planes>
!out_piece = !cuda_tile.tile<1xBMxBNxT>
!arrived_in = !cuda_tile.partition_view<tile=(1x1xBMxBN), padding_value = zero, !batch>
!arrived_out = !cuda_tile.partition_view<tile=(1x1xBMxBN), !batch>
!arrived = !cuda_tile.tile<1x1xBMxBNxT>
!gathered_in = !cuda_tile.partition_view<tile=(1x1xBMxBK), padding_value = zero, !batch>
!gathered_out = !cuda_tile.partition_view<tile=(1x1xBMxBK), !batch>
!gathered = !cuda_tile.tile<1x1xBMxBKxT>

// The tile (%m, %n) of x[%r] @ weight, read after %ready
fragment @piece_product(%x_tiles: !x_pieces, %w_tiles: !w_part, %r: !int, %m: !int, %n: !int, %k_tiles: !int, %ready: token)
    -> !acc {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %empty = constant <f32: 0.0> : !acc
  %product = for %k in (%zero to %k_tiles, step %one) : !int iter_values(%acc = %empty) -> (!acc) {
    %piece, %x_read = load_view_tko weak %x_tiles[%r, %m, %k] token = %ready : !x_pieces, !int -> !x_piece, token
    %x_tile = reshape %piece : !x_piece -> !x
    %w_tile, %w_read = load_view_tko weak %w_tiles[%k, %n] token = %ready : !w_part, !int -> !w, token
    %next = mmaf %x_tile, %w_tile, %acc : !x, !w, !acc
    continue %next : !acc
  }
  yield %product : !acc
}

// The number of tiles of each dimension
fragment @tile_counts(%M: !int, %N: !int, %K: !int) -> (!int, !int, !int) {
  %BM = constant <i32: BM> : !int
  %BN = constant <i32: BN> : !int
  %BK = constant <i32: BK> : !int
  %m_tiles = divi %M, %BM signed rounding<positive_inf> : !int
  %n_tiles = divi %N, %BN signed rounding<positive_inf> : !int
  %k_tiles = divi %K, %BK signed rounding<positive_inf> : !int
  yield %m_tiles, %n_tiles, %k_tiles : !int, !int, !int
}

// out = the sum over the ranks of x[rank] @ weight: a rank's own product in f32, and the others' as they were rounded, in the
// order of the ranks.
kernel @matmul_reduce_scatter op = matmul_reduce_scatter {
  %x_tiles = make_partition_view %x_view : !x_pieces
  %w_tiles = make_partition_view %weight_view : !w_part
  %out_tiles = make_partition_view %out_view : !out_part
  %arrived_tiles = make_partition_view %arrived_view : !arrived_in
  %sent_tiles = make_partition_view %arrived_view : !arrived_out
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %m_tiles, %n_tiles, %k_tiles = call @tile_counts(%M, %N, %K)
  %tiles = muli %m_tiles, %n_tiles : !int
  %b, %unused_y, %unused_z = get_tile_block_id : !int
  %blocks, %unused_by, %unused_bz = get_num_tile_blocks : !int
  %ready = gdc_wait_tko -> token
  // All earlier launches have ended after it: nobody reads what is stored to him now.
  %met = call @meet(%flags_ptr, %flags_stride0, %flags_stride1, %state_view, %R, %rank, %ready)
  %sent = for %ahead in (%one to %R, step %one) : !int iter_values(%t = %met) -> (token) {
    %sum = addi %rank, %ahead : !int
    %r = remi %sum, %R signed : !int
    %stored = for %tile in (%b to %tiles, step %blocks) : !int iter_values(%u = %t) -> (token) {
      %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
      %product = call @piece_product(%x_tiles, %w_tiles, %r, %m, %n, %k_tiles, %ready)
      %rounded = ftof %product : !acc -> !out
      %made = reshape %rounded : !out -> !arrived
      %kept = store_view_tko weak %made, %sent_tiles[%r, %rank, %m, %n] token = %met
          optimization_hints = <default = {allow_tma = false}> : !arrived, !arrived_out, !int -> token
      %all = join_tokens %u, %kept : token
      continue %all : token
    }
    continue %stored : token
  }
  %met_again = call @meet(%flags_ptr, %flags_stride0, %flags_stride1, %state_view, %R, %rank, %sent)
  for %tile in (%b to %tiles, step %blocks) : !int {
    %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
    %product = call @piece_product(%x_tiles, %w_tiles, %rank, %m, %n, %k_tiles, %ready)
    %total = for %s in (%zero to %R, step %one) : !int iter_values(%so_far = %product) -> (!acc) {
      %other = cmpi not_equal %s, %rank, signed : !int -> !flag
      %next = if %other -> (!acc) {
        %part, %read = load_view_tko weak %arrived_tiles[%rank, %s, %m, %n] token = %met_again
            optimization_hints = <default = {allow_tma = false}> : !arrived_in, !int -> !arrived, token
        %tile_of_s = reshape %part : !arrived -> !out
        %added = call @add_residual(%so_far, %tile_of_s)
        yield %added : !acc
      } else {
        yield %so_far : !acc
      }
      continue %next : !acc
    }
    %written = call @store_after(%total, %out_tiles, %m, %n, %ready)
    continue
  }
  return
}

fragment @store_piece(%product: !acc, %out_tiles: !out_pieces, %r: !int, %m: !int, %n: !int, %ready: token) {
  %rounded = ftof %product : !acc -> !out
  %piece = reshape %rounded : !out -> !out_piece
  %stored = store_view_tko weak %piece, %out_tiles[%r, %m, %n] token = %ready : !out_piece, !out_pieces, !int -> token
}

// out[r] = the rows of rank r @ weight. The grid has as many blocks in every launch: the counts are of all of them.
kernel @all_gather_matmul op = all_gather_matmul {
  %x_tiles = make_partition_view %x_view : !x_part
  %w_tiles = make_partition_view %weight_view : !w_part
  %out_tiles = make_partition_view %out_view : !out_pieces
  %gathered_tiles = make_partition_view %gathered_view : !gathered_in
  %sent_tiles = make_partition_view %gathered_view : !gathered_out
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %two = constant <i32: 2> : !int
  %empty = constant <f32: 0.0> : !acc
  %m_tiles, %n_tiles, %k_tiles = call @tile_counts(%M, %N, %K)
  %tiles = muli %m_tiles, %n_tiles : !int
  %row_tiles = muli %m_tiles, %k_tiles : !int
  %b, %unused_y, %unused_z = get_tile_block_id : !int
  %blocks, %unused_by, %unused_bz = get_num_tile_blocks : !int
  %ready = gdc_wait_tko -> token
  %came, %gone_before, %recalled = call @recall(%turns_view, %b, %ready)
  %of_all = muli %came, %blocks : !int
  %begun = call @tell(%counts_ptr, %counts_row, %one, %R, %rank, %zero, %ready)
  %first_of_all = addi %of_all, %one : !int
  // A block that has come: its rank's earlier launches have ended, and nobody reads what is stored to him now.
  %gone_first, %met = call @wait(%counts_ptr, %counts_row, %one, %R, %rank, %zero, %first_of_all, %gone_before, %begun)
  %sent = for %ahead in (%one to %R, step %one) : !int iter_values(%t = %met) -> (token) {
    %sum = addi %rank, %ahead : !int
    %r = remi %sum, %R signed : !int
    %stored = for %tile in (%b to %row_tiles, step %blocks) : !int iter_values(%u = %t) -> (token) {
      %m = divi %tile, %k_tiles signed : !int
      %k = remi %tile, %k_tiles signed : !int
      %x_tile, %x_read = load_view_tko weak %x_tiles[%m, %k] token = %ready : !x_part, !int -> !x, token
      %row = reshape %x_tile : !x -> !gathered
      %kept = store_view_tko weak %row, %sent_tiles[%r, %rank, %m, %k] token = %met
          optimization_hints = <default = {allow_tma = false}> : !gathered, !gathered_out, !int -> token
      %all = join_tokens %u, %kept : token
      continue %all : token
    }
    continue %stored : token
  }
  %told = call @tell(%counts_ptr, %counts_row, %one, %R, %rank, %zero, %sent)
  for %tile in (%b to %tiles, step %blocks) : !int {
    %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
    %product = for %k in (%zero to %k_tiles, step %one) : !int iter_values(%acc = %empty) -> (!acc) {
      %x_tile, %x_read = load_view_tko weak %x_tiles[%m, %k] token = %ready : !x_part, !int -> !x, token
      %w_tile, %w_read = load_view_tko weak %w_tiles[%k, %n] token = %ready : !w_part, !int -> !w, token
      %next = mmaf %x_tile, %w_tile, %acc : !x, !w, !acc
      continue %next : !acc
    }
    call @store_piece(%product, %out_tiles, %rank, %m, %n, %ready)
    continue
  }
  %twice = muli %blocks, %two : !int
  %all_of_them = addi %of_all, %twice : !int
  %gone, %all_met = call @wait(%counts_ptr, %counts_row, %one, %R, %rank, %zero, %all_of_them, %gone_first, %told)
  for %ahead in (%one to %R, step %one) : !int {
    %sum = addi %rank, %ahead : !int
    %r = remi %sum, %R signed : !int
    for %tile in (%b to %tiles, step %blocks) : !int {
      %m, %n = call @tile_place(%tile, %m_tiles, %n_tiles)
      %product = for %k in (%zero to %k_tiles, step %one) : !int iter_values(%acc = %empty) -> (!acc) {
        %row, %x_read = load_view_tko weak %gathered_tiles[%rank, %r, %m, %k] token = %all_met
            : !gathered_in, !int -> !gathered, token
        %x_tile = reshape %row : !gathered -> !x
        %w_tile, %w_read = load_view_tko weak %w_tiles[%k, %n] token = %ready : !w_part, !int -> !w, token
        %next = mmaf %x_tile, %w_tile, %acc : !x, !w, !acc
        continue %next : !acc
      }
      call @store_piece(%product, %out_tiles, %r, %m, %n, %ready)
      continue
    }
    continue
  }
  %now = addi %came, %two : !int
  %noted = join_tokens %all_met, %recalled : token
  %after = call @note(%turns_view, %b, %now, %gone, %noted)
  return
}
