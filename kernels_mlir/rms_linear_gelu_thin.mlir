// out = gelu((x @ weight) / sqrt(mean square + eps) + bias), the tanh form, of at most 16 rows and 3 BK columns
//
// Transposed: the tensor cores of Hopper make 64 rows at a time, and the weight's columns are that many where the rows of x
// are not. One block makes BM rows of BN columns. Reading the weight is most of the work, so a block reads all that it needs
// of it, three tiles of BK rows, before it waits for the launches before this one: they arrive while those still run. Past
// the end of K x and the weight are zeros, so that a shorter K costs no branch.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!ptr = !cuda_tile.tile<ptr<!elem>>
!real = !cuda_tile.tile<f32>
!square_ptr = !cuda_tile.tile<ptr<f32>>
!squares = !cuda_tile.tensor_view<?x?xf32, strides=[?,1]>
!square_part_16xBM = !cuda_tile.partition_view<tile=(16x16), padding_value = zero, !squares>
!square_16xBM = !cuda_tile.tile<16x16xf32>
!column_BM = !cuda_tile.tile<16xf32>
!column_BMx1 = !cuda_tile.tile<16x1xf32>
!real_1 = !cuda_tile.tile<1xf32>
!matrix = !cuda_tile.tensor_view<?x?x!elem, strides=[?,1]>
!vector = !cuda_tile.tensor_view<?x!elem, strides=[1]>
!x_part_BMxBK = !cuda_tile.partition_view<tile=(16x256), padding_value = zero, !matrix>
!w_part_BKxBN = !cuda_tile.partition_view<tile=(256x32), padding_value = zero, !matrix>
!bias_part_BN = !cuda_tile.partition_view<tile=(32), padding_value = zero, !vector>
!out_part_BMxBN = !cuda_tile.partition_view<tile=(16x32), !matrix>
!x_BMxBK = !cuda_tile.tile<16x256x!elem>
!w_BKxBN = !cuda_tile.tile<256x32x!elem>
!bias_BN = !cuda_tile.tile<32x!elem>
!bias_f32_BN = !cuda_tile.tile<32xf32>
!bias_f32_1xBN = !cuda_tile.tile<1x32xf32>
!x_BKxBM = !cuda_tile.tile<256x16x!elem>
!w_BNxBK = !cuda_tile.tile<32x256x!elem>
!acc_BMxBN = !cuda_tile.tile<16x32xf32>
!acc_BNxBM = !cuda_tile.tile<32x16xf32>
!out_BMxBN = !cuda_tile.tile<16x32x!elem>

cuda_tile.module @rms_linear_gelu_thin {
  entry @rms_linear_gelu_thin(%x: !ptr, %x_m: !int, %x_k: !int, %x_stride: !int, %x_unit: !int,
      %squares: !square_ptr, %squares_z: !int, %squares_l: !int, %squares_stride: !int, %squares_unit: !int,
      %w: !ptr, %w_k: !int, %w_n: !int, %w_stride: !int, %w_unit: !int,
      %bias: !ptr, %bias_n: !int, %bias_unit: !int,
      %out: !ptr, %out_m: !int, %out_n: !int, %out_stride: !int, %out_unit: !int,
      %eps: !real) {
    %M = assume bounded<0, ?>, %x_m : !int
    %K = assume bounded<0, ?>, %x_k : !int
    %N = assume bounded<0, ?>, %w_n : !int
    %Z = assume bounded<0, ?>, %squares_z : !int
    %L = assume bounded<0, ?>, %squares_l : !int
    %squares_row = assume bounded<0, ?>, %squares_stride : !int
    %x_row = assume bounded<0, ?>, %x_stride : !int
    %w_row = assume bounded<0, ?>, %w_stride : !int
    %out_row = assume bounded<0, ?>, %out_stride : !int
    %x_view = make_tensor_view %x, shape = [%M, %K], strides = [%x_row, 1] : !int -> !matrix
    %squares_view = make_tensor_view %squares, shape = [%Z, %L], strides = [%squares_row, 1] : !int -> !squares
    %w_view = make_tensor_view %w, shape = [%K, %N], strides = [%w_row, 1] : !int -> !matrix
    %bias_view = make_tensor_view %bias, shape = [%N], strides = [1] : !int -> !vector
    %out_view = make_tensor_view %out, shape = [%M, %N], strides = [%out_row, 1] : !int -> !matrix
    %x_tiles = make_partition_view %x_view : !x_part_BMxBK
    %square_tiles = make_partition_view %squares_view : !square_part_16xBM
    %w_tiles = make_partition_view %w_view : !w_part_BKxBN
    %bias_tiles = make_partition_view %bias_view : !bias_part_BN
    %out_tiles = make_partition_view %out_view : !out_part_BMxBN

    %n, %m, %unused = get_tile_block_id : !int
    %zero = constant <i32: 0> : !int
    %one = constant <i32: 1> : !int
    %two = constant <i32: 2> : !int
    %empty = constant <f32: 0.0> : !acc_BNxBM
    %cubic = constant <f32: 0.285419265090401> : !acc_BMxBN
    %linear = constant <f32: 1.5957691216057308> : !acc_BMxBN
    %half_column = constant <f32: 0.5> : !column_BM
    %half_line = constant <f32: 0.5> : !bias_f32_BN
    %K_real = itof %K signed : !int -> !real
    %one_f32 = constant <f32: 1.0> : !real
    %unit_real = divf %one_f32, %K_real : !real
    %unit_1 = reshape %unit_real : !real -> !real_1
    %unit_column = broadcast %unit_1 : !real_1 -> !column_BM
    %eps_1 = reshape %eps : !real -> !real_1
    %eps_column = broadcast %eps_1 : !real_1 -> !column_BM

    %w_tile_0, %t0 = load_view_tko weak %w_tiles[%zero, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token
    %w_tile_1, %t1 = load_view_tko weak %w_tiles[%one, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token
    %w_tile_2, %t2 = load_view_tko weak %w_tiles[%two, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token
    %bias_tile, %bias_token = load_view_tko weak %bias_tiles[%n] optimization_hints = <default = {allow_tma = false}>
        : !bias_part_BN, !int -> !bias_BN, token
    %bias_f32 = ftof %bias_tile : !bias_BN -> !bias_f32_BN
    %half_bias = mulf %bias_f32, %half_line : !bias_f32_BN
    %bias_line = reshape %half_bias : !bias_f32_BN -> !bias_f32_1xBN
    %bias_full = broadcast %bias_line : !bias_f32_1xBN -> !acc_BMxBN

    // The wait comes after these reads by the last one's token: else the compiler may put it first. With a token of each
    // they would be made one after the other.
    %ahead = join_tokens %t2, %bias_token : token
    %ready = gdc_wait_tko token = %ahead -> token
    // All parts of the rows' squares are read at once: past the last one there are zeros.
    %parts, %parts_token = load_view_tko weak %square_tiles[%zero, %m] optimization_hints = <default = {allow_tma = false}>
        : !square_part_16xBM, !int -> !square_16xBM, token
    %total = reduce %parts dim=0 identities=[0.0 : f32] : !square_16xBM -> !column_BM
    (%sum_a: !real, %sum_b: !real) {
      %sum_ab = addf %sum_a, %sum_b : !real
      yield %sum_ab : !real
    }
    %mean_square = mulf %total, %unit_column : !column_BM
    %shifted = addf %mean_square, %eps_column : !column_BM
    %inverse = rsqrt %shifted : !column_BM
    %half_inverse = mulf %half_column, %inverse : !column_BM
    %inverse_column = reshape %half_inverse : !column_BM -> !column_BMx1
    %inverse_full = broadcast %inverse_column : !column_BMx1 -> !acc_BMxBN
    %x_tile_0, %t3 = load_view_tko weak %x_tiles[%m, %zero] : !x_part_BMxBK, !int -> !x_BMxBK, token
    %x_turned_0 = permute %x_tile_0 [1, 0] : !x_BMxBK -> !x_BKxBM
    %w_turned_0 = permute %w_tile_0 [1, 0] : !w_BKxBN -> !w_BNxBK
    %acc_0 = mmaf %w_turned_0, %x_turned_0, %empty : !w_BNxBK, !x_BKxBM, !acc_BNxBM
    %x_tile_1, %t4 = load_view_tko weak %x_tiles[%m, %one] : !x_part_BMxBK, !int -> !x_BMxBK, token
    %x_turned_1 = permute %x_tile_1 [1, 0] : !x_BMxBK -> !x_BKxBM
    %w_turned_1 = permute %w_tile_1 [1, 0] : !w_BKxBN -> !w_BNxBK
    %acc_1 = mmaf %w_turned_1, %x_turned_1, %acc_0 : !w_BNxBK, !x_BKxBM, !acc_BNxBM
    %x_tile_2, %t5 = load_view_tko weak %x_tiles[%m, %two] : !x_part_BMxBK, !int -> !x_BMxBK, token
    %x_turned_2 = permute %x_tile_2 [1, 0] : !x_BMxBK -> !x_BKxBM
    %w_turned_2 = permute %w_tile_2 [1, 0] : !w_BKxBN -> !w_BNxBK
    %columns = mmaf %w_turned_2, %x_turned_2, %acc_1 : !w_BNxBK, !x_BKxBM, !acc_BNxBM
    %product = permute %columns [1, 0] : !acc_BNxBM -> !acc_BMxBN
    %halved = fma %product, %inverse_full, %bias_full : !acc_BMxBN

    // gelu(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = h + h tanh(h (linear + cubic h^2)), h = x/2. The GPU's own
    // tanh (to 2^-11) does where the result is stored in 16 bits; entries of f32 get the full one: see
    // toolchain/tileir/specialize.py.
    %square = mulf %halved, %halved : !acc_BMxBN
    %slope = fma %cubic, %square, %linear : !acc_BMxBN
    %inner = mulf %halved, %slope : !acc_BMxBN
    %tanh = tanh %inner rounding<approx> : !acc_BMxBN
    %gelu = fma %halved, %tanh, %halved : !acc_BMxBN
    %result = ftof %gelu : !acc_BMxBN -> !out_BMxBN
    %stored = store_view_tko weak %result, %out_tiles[%m, %n] optimization_hints = <default = {allow_tma = false}>
        : !out_BMxBN, !out_part_BMxBN, !int -> token
    return
  }
}
