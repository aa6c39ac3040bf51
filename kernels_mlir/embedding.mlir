// out[n] = wte[tokens[n]] + wpe[positions[n]]; `centred`: less the mean of the row, and with the row's sum of squares. The
// caller has checked that tokens and positions are in range.

include "rows.mlir"

!ptr = !cuda_tile.tile<ptr<T>>
!ptr_1x1 = !cuda_tile.tile<1x1xptr<T>>
!place = !cuda_tile.tile<RxBCxptr<T>>
!long = !cuda_tile.tile<i64>
!long_1x1 = !cuda_tile.tile<1x1xi64>
!start = !cuda_tile.tile<Rx1xi64>
!offset = !cuda_tile.tile<RxBCxi64>
!column_wide = !cuda_tile.tile<1xBCxi64>
!indices_part = !cuda_tile.partition_view<tile=(R), padding_value = zero, !indices>
!index = !cuda_tile.tile<Rxi32>
!index_column = !cuda_tile.tile<Rx1xi32>
!squares_part = !cuda_tile.partition_view<tile=(1xR), !reals>
!squares_row = !cuda_tile.tile<1xRxf32>
!square_part = !cuda_tile.partition_view<tile=(1x1), !reals>

// The sum of two embeddings in f32
fragment @add(%word: !rows, %place: !rows) -> !f32 {
  %word_f32 = ftof %word : !rows -> !f32
  %place_f32 = ftof %place : !rows -> !f32
  %sum = addf %word_f32, %place_f32 : !f32
  yield %sum : !f32
}

// The token and the position of one row
fragment @lookup(%tokens: !index_part, %positions: !index_part, %n: !int) -> (!int, !int) {
  %token_tile, %t0 = load_view_tko weak %tokens[%n] : !index_part, !int -> !int_1, token
  %position_tile, %t1 = load_view_tko weak %positions[%n] : !index_part, !int -> !int_1, token
  %token = reshape %token_tile : !int_1 -> !int
  %position = reshape %position_tile : !int_1 -> !int
  yield %token, %position : !int, !int
}

// The sum of tile %j of a token's and a position's row
fragment @add_tiles(%wte: !row_in, %wpe: !row_in, %token: !int, %position: !int, %j: !int) -> !row_f32 {
  %word, %t0 = load_view_tko weak %wte[%token, %j] : !row_in, !int -> !row, token
  %place, %t1 = load_view_tko weak %wpe[%position, %j] : !row_in, !int -> !row, token
  %sum = call @add<R = 1>(%word, %place)
  yield %sum : !row_f32
}

// R rows of a table, gathered through pointers: offsets have 64 bits, for a vocabulary's table can have more than 2^31
// elements.
fragment @gather(%table: !ptr, %row_step: !int, %index: !index, %columns: !column, %mask: !inside) -> !rows {
  %columns_wide = exti %columns signed : !column -> !column_wide
  %column_offset = broadcast %columns_wide : !column_wide -> !offset
  %nothing = constant <T: 0.0> : !rows
  %index_column = reshape %index : !index -> !index_column
  %index_wide = exti %index_column signed : !index_column -> !start
  %step = exti %row_step signed : !int -> !long
  %step_1x1 = reshape %step : !long -> !long_1x1
  %steps = broadcast %step_1x1 : !long_1x1 -> !start
  %start = muli %index_wide, %steps : !start
  %starts = broadcast %start : !start -> !offset
  %offsets = addi %starts, %column_offset : !offset
  %table_1x1 = reshape %table : !ptr -> !ptr_1x1
  %tables = broadcast %table_1x1 : !ptr_1x1 -> !place
  %pointers = offset %tables, %offsets : !place, !offset -> !place
  %rows, %token = load_ptr_tko weak %pointers, %mask, %nothing : !place, !inside, !rows -> !rows, token
  yield %rows : !rows
}

// One block makes BC columns of one row.
kernel @embedding op = embedding {
  %token_tiles = make_partition_view %tokens_view : !index_part
  %position_tiles = make_partition_view %positions_view : !index_part
  %wte_tiles = make_partition_view %wte_view : !row_in
  %wpe_tiles = make_partition_view %wpe_view : !row_in
  %out_tiles = make_partition_view %out_view : !row_out
  %n, %j, %unused = get_tile_block_id : !int
  %token, %position = call @lookup(%token_tiles, %position_tiles, %n)
  %sum = call @add_tiles(%wte_tiles, %wpe_tiles, %token, %position, %j)
  %result = ftof %sum : !row_f32 -> !row
  %stored = store_view_tko weak %result, %out_tiles[%n, %j] : !row, !row_out, !int -> token
  return
}

// One block makes BC columns of R rows. Behind the last token it reads row 0, and stores nothing.
kernel @embedding_rows op = embedding {
  %token_tiles = make_partition_view %tokens_view : !indices_part
  %position_tiles = make_partition_view %positions_view : !indices_part
  %out_tiles = make_partition_view %out_view : !out_part
  %n, %j, %unused = get_tile_block_id : !int
  %token, %t0 = load_view_tko weak %token_tiles[%n] : !indices_part, !int -> !index, token
  %position, %t1 = load_view_tko weak %position_tiles[%n] : !indices_part, !int -> !index, token
  %BC = constant <i32: BC> : !int
  %first = muli %j, %BC : !int
  %columns = call @columns_from(%first)
  %mask = call @inside(%columns, %C)
  %word = call @gather(%wte_ptr, %wte_row, %token, %columns, %mask)
  %place = call @gather(%wpe_ptr, %wpe_row, %position, %columns, %mask)
  %sum = call @add(%word, %place)
  call @store_rows(%sum, %out_tiles, %n, %j)
  return
}

// One block makes one row in tiles of BC columns, in two passes.
kernel @embedding_centred op = embedding_centred {
  %square_tiles = make_partition_view %squares_view : !square_part
  %token_tiles = make_partition_view %tokens_view : !index_part
  %position_tiles = make_partition_view %positions_view : !index_part
  %wte_tiles = make_partition_view %wte_view : !row_in
  %wpe_tiles = make_partition_view %wpe_view : !row_in
  %out_tiles = make_partition_view %out_view : !row_out
  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %token, %position = call @lookup(%token_tiles, %position_tiles, %n)
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BC = constant <i32: BC> : !int
  %steps = divi %C, %BC signed rounding<positive_inf> : !int
  %nothing = constant <f32: 0.0> : !row_f32
  %sums = for %j in (%zero to %steps, step %one) : !int iter_values(%acc = %nothing) -> (!row_f32) {
    %both = call @add_tiles(%wte_tiles, %wpe_tiles, %token, %position, %j)
    %next = addf %acc, %both : !row_f32
    continue %next : !row_f32
  }
  %sum = call @sum_in_rows<R = 1>(%sums)
  %width = call @width_of<R = 1>(%C)
  %mean = divf %sum, %width : !real_1x1
  %means = broadcast %mean : !real_1x1 -> !row_f32
  // Columns past C were padded with zeros, which are off the mean: they must not count.
  %total = for %j in (%zero to %steps, step %one) : !int iter_values(%squares_acc = %nothing) -> (!row_f32) {
    %both = call @add_tiles(%wte_tiles, %wpe_tiles, %token, %position, %j)
    %first = muli %j, %BC : !int
    %columns = call @columns_from(%first)
    %inside = call @inside<R = 1>(%columns, %C)
    %deviation = subf %both, %means : !row_f32
    %centred = select %inside, %deviation, %nothing : !inside_1, !row_f32
    %squares_next = fma %centred, %centred, %squares_acc : !row_f32
    %result = ftof %centred : !row_f32 -> !row
    %stored = store_view_tko weak %result, %out_tiles[%n, %j] : !row, !row_out, !int -> token
    continue %squares_next : !row_f32
  }
  %square = call @sum_in_rows<R = 1>(%total)
  // All of a row's squares are its first part.
  %first_stored = store_view_tko weak %square, %square_tiles[%zero, %n] : !real_1x1, !square_part, !int -> token
  %none = constant <f32: 0.0> : !real_1x1
  for %z in (%one to %Z, step %one) : !int {
    %rest_stored = store_view_tko weak %none, %square_tiles[%z, %n] : !real_1x1, !square_part, !int -> token
    continue
  }
  return
}

fragment @store_part(%part: !squares_row, %tiles: !squares_part, %z: !int, %n: !int) {
  %stored = store_view_tko weak %part, %tiles[%z, %n] optimization_hints = <default = {allow_tma = false}>
      : !squares_row, !squares_part, !int -> token
}

// Register-resident: one block makes R rows of at most BC columns.
kernel @embedding_centred_rows op = embedding_centred {
  %square_tiles = make_partition_view %squares_view : !squares_part
  %token_tiles = make_partition_view %tokens_view : !indices_part
  %position_tiles = make_partition_view %positions_view : !indices_part
  %out_tiles = make_partition_view %out_view : !out_part
  %n, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %token, %t0 = load_view_tko weak %token_tiles[%n] : !indices_part, !int -> !index, token
  %position, %t1 = load_view_tko weak %position_tiles[%n] : !indices_part, !int -> !index, token
  %columns = call @first_columns()
  %mask = call @inside(%columns, %C)
  %word = call @gather(%wte_ptr, %wte_row, %token, %columns, %mask)
  %place = call @gather(%wpe_ptr, %wpe_row, %position, %columns, %mask)
  %sum = call @add(%word, %place)
  %row_sum = call @sum_in_rows(%sum)
  %width = call @width_of(%C)
  %mean = divf %row_sum, %width : !stat_1
  %means = broadcast %mean : !stat_1 -> !f32
  %deviation = subf %sum, %means : !f32
  %zeros = constant <f32: 0.0> : !f32
  %centred = select %mask, %deviation, %zeros : !inside, !f32
  %square = mulf %centred, %centred : !f32
  %square_sum = call @row_sums(%square)
  call @store_rows(%centred, %out_tiles, %n, %zero)
  // All of a row's squares are its first part.
  %square_line = reshape %square_sum : !stat -> !squares_row
  call @store_part(%square_line, %square_tiles, %zero, %n)
  %one = constant <i32: 1> : !int
  %none = constant <f32: 0.0> : !squares_row
  for %z in (%one to %Z, step %one) : !int {
    call @store_part(%none, %square_tiles, %z, %n)
    continue
  }
  return
}
