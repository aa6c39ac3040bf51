// out = gelu(x @ weight + bias), the tanh form of GELU
//
// Persistent: as many blocks as fit the GPU walk the output's BM x BN tiles, so that one tile's epilogue overlaps the next
// one's loads; with a grid as large as the number of tiles, each block makes one. A tile walks K in steps of BK,
// multiplying on the tensor cores and adding up in f32, then applies the epilogue to the accumulator while it is still
// in registers.
// The aliases below are this kernel's parameters: element types by name, tile shapes by the constants in their names.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!flag = !cuda_tile.tile<i1>
!ptr = !cuda_tile.tile<ptr<!elem>>
!matrix = !cuda_tile.tensor_view<?x?x!elem, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?x!elem, strides=[1]>
!x_part_BMxBK = !cuda_tile.partition_view<tile=(128x64), padding_value = zero, !matrix>
!w_part_BKxBN = !cuda_tile.partition_view<tile=(64x128), padding_value = zero, !matrix>
!bias_part_BN = !cuda_tile.partition_view<tile=(128), padding_value = zero, !vector>
!out_part_BMxBN = !cuda_tile.partition_view<tile=(128x128), !matrix>
!x_BMxBK = !cuda_tile.tile<128x64x!elem>
!w_BKxBN = !cuda_tile.tile<64x128x!elem>
!bias_BN = !cuda_tile.tile<128x!elem>
!bias_f32_BN = !cuda_tile.tile<128xf32>
!bias_f32_1xBN = !cuda_tile.tile<1x128xf32>
!acc_BMxBN = !cuda_tile.tile<128x128xf32>
!out_BMxBN = !cuda_tile.tile<128x128x!elem>

cuda_tile.module @linear_gelu {
  entry @linear_gelu(%x: !ptr, %x_m: !int, %x_k: !int, %x_stride: !int, %x_unit: !int,
      %w: !ptr, %w_k: !int, %w_n: !int, %w_stride: !int, %w_unit: !int,
      %bias: !ptr, %bias_n: !int, %bias_unit: !int,
      %out: !ptr, %out_m: !int, %out_n: !int, %out_stride: !int, %out_unit: !int) {
    %M = assume bounded<0, ?>, %x_m : !int
    %K = assume bounded<0, ?>, %x_k : !int
    %N = assume bounded<0, ?>, %w_n : !int
    %x_row = assume bounded<0, ?>, %x_stride : !int
    %w_row = assume bounded<0, ?>, %w_stride : !int
    %out_row = assume bounded<0, ?>, %out_stride : !int
    %x_view = make_tensor_view %x, shape = [%M, %K], strides = [%x_row, 1] : !int -> !matrix
    %w_view = make_tensor_view %w, shape = [%K, %N], strides = [%w_row, 1] : !int -> !matrix
    %bias_view = make_tensor_view %bias, shape = [%N], strides = [1] : !int -> !vector
    %out_view = make_tensor_view %out, shape = [%M, %N], strides = [%out_row, 1] : !int -> !matrix
    %x_tiles = make_partition_view %x_view : !x_part_BMxBK
    %w_tiles = make_partition_view %w_view : !w_part_BKxBN
    %bias_tiles = make_partition_view %bias_view : !bias_part_BN
    %out_tiles = make_partition_view %out_view : !out_part_BMxBN

    %block, %unused_y, %unused_z = get_tile_block_id : !int
    %blocks, %one_y, %one_z = get_num_tile_blocks : !int
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %BM = constant <i32: 128> : !int
    %BN = constant <i32: 128> : !int
    %BK = constant <i32: 64> : !int
    %GROUP = constant <i32: 8> : !int
    %m_tiles = divi %M, %BM signed rounding<positive_inf> : !int
    %n_tiles = divi %N, %BN signed rounding<positive_inf> : !int
    %tiles = muli %m_tiles, %n_tiles : !int
    %span = muli %GROUP, %n_tiles : !int
    // One division instead of three, which every block does before its first load. The compiler knows GROUP and keeps one way.
    %by_row = cmpi equal %GROUP, %one, signed : !int -> !flag
    %steps = divi %K, %BK signed rounding<positive_inf> : !int
    %empty = constant <f32: 0.0> : !acc_BMxBN
    %cubic = constant <f32: 0.285419265090401> : !acc_BMxBN
    %linear = constant <f32: 1.5957691216057308> : !acc_BMxBN
    %half = constant <f32: 0.5> : !acc_BMxBN
    %half_line = constant <f32: 0.5> : !bias_f32_BN

    for %tile in (%block to %tiles, step %blocks) : !int {
      // GROUP rows of tiles at a time, column by column: tiles made at the same time share their inputs in the L2 cache.
      %m, %n = if %by_row -> (!int, !int) {
        %m_in_rows = divi %tile, %n_tiles signed : !int
        %n_in_row = remi %tile, %n_tiles signed : !int
        yield %m_in_rows, %n_in_row : !int, !int
      } else {
        %group = divi %tile, %span signed : !int
        %in_group = remi %tile, %span signed : !int
        %m_first = muli %group, %GROUP : !int
        %m_left = subi %m_tiles, %m_first : !int
        %rows = mini %m_left, %GROUP signed : !int
        %row = remi %in_group, %rows signed : !int
        %m_in_group = addi %m_first, %row : !int
        %n_in_group = divi %in_group, %rows signed : !int
        yield %m_in_group, %n_in_group : !int, !int
      }

      %bias_tile, %bias_token = load_view_tko weak %bias_tiles[%n] : !bias_part_BN, !int -> !bias_BN, token
      %bias_f32 = ftof %bias_tile : !bias_BN -> !bias_f32_BN
      %half_bias = mulf %bias_f32, %half_line : !bias_f32_BN
      %bias_line = reshape %half_bias : !bias_f32_BN -> !bias_f32_1xBN
      %bias_full = broadcast %bias_line : !bias_f32_1xBN -> !acc_BMxBN
      %product = for %k in (%zero to %steps, step %one) : !int iter_values(%acc = %empty) -> (!acc_BMxBN) {
        %x_tile, %x_token = load_view_tko weak %x_tiles[%m, %k] : !x_part_BMxBK, !int -> !x_BMxBK, token
        %w_tile, %w_token = load_view_tko weak %w_tiles[%k, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token
        %next = mmaf %x_tile, %w_tile, %acc : !x_BMxBK, !w_BKxBN, !acc_BMxBN
        continue %next : !acc_BMxBN
      }
      %halved = fma %half, %product, %bias_full : !acc_BMxBN

      // gelu(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = h + h tanh(h (linear + cubic h^2)), h = x/2. The GPU's own
      // tanh (to 2^-11) does where the result is stored in 16 bits; entries of f32 get the full one: see
      // toolchain/tileir/specialize.py.
      %square = mulf %halved, %halved : !acc_BMxBN
      %slope = fma %cubic, %square, %linear : !acc_BMxBN
      %inner = mulf %halved, %slope : !acc_BMxBN
      %tanh = tanh %inner rounding<approx> : !acc_BMxBN
      %gelu = fma %halved, %tanh, %halved : !acc_BMxBN
      %result = ftof %gelu : !acc_BMxBN -> !out_BMxBN
      %stored = store_view_tko weak %result, %out_tiles[%m, %n] : !out_BMxBN, !out_part_BMxBN, !int -> token
      continue
    }
    return
  }
}
