// out[n] = wte[tokens[n]]. The caller has checked that tokens are in range. One block copies BC columns of one row.

include "rows.mlir"

kernel @token_embedding op = token_embedding {
  %token_tiles = make_partition_view %tokens_view : !index_part
  %wte_tiles = make_partition_view %wte_view : !row_in
  %out_tiles = make_partition_view %out_view : !row_out
  %n, %j, %unused = get_tile_block_id : !int
  %token_tile, %t0 = load_view_tko weak %token_tiles[%n] : !index_part, !int -> !int_1, token
  %token = reshape %token_tile : !int_1 -> !int
  %word, %t1 = load_view_tko weak %wte_tiles[%token, %j] : !row_in, !int -> !row, token
  %stored = store_view_tko weak %word, %out_tiles[%n, %j] : !row, !row_out, !int -> token
  return
}
