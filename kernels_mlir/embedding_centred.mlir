// out[n] = wte[tokens[n]] + wpe[positions[n]], less the mean of the row
//
// One block makes one token's row in tiles of BC columns, in two passes. The caller has checked that tokens and positions are in
// range.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!index = !cuda_tile.tile<1xi32>
!ptr = !cuda_tile.tile<ptr<!elem>>
!int_ptr = !cuda_tile.tile<ptr<i32>>
!matrix = !cuda_tile.tensor_view<?x?x!elem, strides=[?,1]>
!indices = !cuda_tile.tensor_view<?xi32, strides=[1]>
!index_part = !cuda_tile.partition_view<tile=(1), !indices>
!in_part_1xBC = !cuda_tile.partition_view<tile=(1x1024), padding_value = zero, !matrix>
!out_part_1xBC = !cuda_tile.partition_view<tile=(1x1024), !matrix>
!row_1xBC = !cuda_tile.tile<1x1024x!elem>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!real_1x1 = !cuda_tile.tile<1x1xf32>
!f32_1xBC = !cuda_tile.tile<1x1024xf32>

cuda_tile.module @embedding_centred {
  entry @embedding_centred(%tokens: !int_ptr, %tokens_n: !int, %tokens_unit: !int,
      %positions: !int_ptr, %positions_n: !int, %positions_unit: !int,
      %wte: !ptr, %wte_v: !int, %wte_c: !int, %wte_stride: !int, %wte_unit: !int,
      %wpe: !ptr, %wpe_p: !int, %wpe_c: !int, %wpe_stride: !int, %wpe_unit: !int,
      %out: !ptr, %out_n: !int, %out_c: !int, %out_stride: !int, %out_unit: !int) {
    %N = assume bounded<0, ?>, %out_n : !int
    %C = assume bounded<0, ?>, %out_c : !int
    %V = assume bounded<0, ?>, %wte_v : !int
    %P = assume bounded<0, ?>, %wpe_p : !int
    %wte_row = assume bounded<0, ?>, %wte_stride : !int
    %wpe_row = assume bounded<0, ?>, %wpe_stride : !int
    %out_row = assume bounded<0, ?>, %out_stride : !int
    %tokens_view = make_tensor_view %tokens, shape = [%N], strides = [1] : !int -> !indices
    %positions_view = make_tensor_view %positions, shape = [%N], strides = [1] : !int -> !indices
    %wte_view = make_tensor_view %wte, shape = [%V, %C], strides = [%wte_row, 1] : !int -> !matrix
    %wpe_view = make_tensor_view %wpe, shape = [%P, %C], strides = [%wpe_row, 1] : !int -> !matrix
    %out_view = make_tensor_view %out, shape = [%N, %C], strides = [%out_row, 1] : !int -> !matrix
    %token_tiles = make_partition_view %tokens_view : !index_part
    %position_tiles = make_partition_view %positions_view : !index_part
    %wte_tiles = make_partition_view %wte_view : !in_part_1xBC
    %wpe_tiles = make_partition_view %wpe_view : !in_part_1xBC
    %out_tiles = make_partition_view %out_view : !out_part_1xBC

    %n, %unused_y, %unused_z = get_tile_block_id : !int
    %token_tile, %t0 = load_view_tko weak %token_tiles[%n] : !index_part, !int -> !index, token
    %position_tile, %t1 = load_view_tko weak %position_tiles[%n] : !index_part, !int -> !index, token
    %token = reshape %token_tile : !index -> !int
    %position = reshape %position_tile : !index -> !int
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BC = constant <i32: 1024> : !int
    %steps = divi %C, %BC signed rounding<positive_inf> : !int
    %nothing = constant <f32: 0.0> : !f32_1xBC
    %sums = for %j in (%zero to %steps, step %one) : !int iter_values(%acc = %nothing) -> (!f32_1xBC) {
      %word, %t2 = load_view_tko weak %wte_tiles[%token, %j] : !in_part_1xBC, !int -> !row_1xBC, token
      %place, %t3 = load_view_tko weak %wpe_tiles[%position, %j] : !in_part_1xBC, !int -> !row_1xBC, token
      %word_f32 = ftof %word : !row_1xBC -> !f32_1xBC
      %place_f32 = ftof %place : !row_1xBC -> !f32_1xBC
      %both = addf %word_f32, %place_f32 : !f32_1xBC
      %next = addf %acc, %both : !f32_1xBC
      continue %next : !f32_1xBC
    }
    %sum = reduce %sums dim=1 identities=[0.0 : f32] : !f32_1xBC -> !real_1
    (%sum_a: !real, %sum_b: !real) {
      %sum_ab = addf %sum_a, %sum_b : !real
      yield %sum_ab : !real
    }
    %sum_scalar = reshape %sum : !real_1 -> !real
    %width = itof %C signed : !int -> !real
    %mean = divf %sum_scalar, %width : !real
    %mean_1x1 = reshape %mean : !real -> !real_1x1
    %mean_full = broadcast %mean_1x1 : !real_1x1 -> !f32_1xBC
    for %j in (%zero to %steps, step %one) : !int {
      %word, %t4 = load_view_tko weak %wte_tiles[%token, %j] : !in_part_1xBC, !int -> !row_1xBC, token
      %place, %t5 = load_view_tko weak %wpe_tiles[%position, %j] : !in_part_1xBC, !int -> !row_1xBC, token
      %word_f32 = ftof %word : !row_1xBC -> !f32_1xBC
      %place_f32 = ftof %place : !row_1xBC -> !f32_1xBC
      %both = addf %word_f32, %place_f32 : !f32_1xBC
      %centred = subf %both, %mean_full : !f32_1xBC
      %result = ftof %centred : !f32_1xBC -> !row_1xBC
      %stored = store_view_tko weak %result, %out_tiles[%n, %j] : !row_1xBC, !out_part_1xBC, !int -> token
      continue
    }
    return
  }
}
