// partial[z] = x[:, part z] @ weight[part z], of at most 16 rows, in parts of 3 BK columns
//
// Transposed: the tensor cores of Hopper make 64 rows at a time, and the weight's columns are that many where the rows of x
// are not. One block makes BM rows of BN columns. Reading the weight is most of the work, so a block reads all that it needs
// of it, three tiles of BK rows, before it waits for the launches before this one: they arrive while those still run.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!ptr = !cuda_tile.tile<ptr<!elem>>
!result = !cuda_tile.tile<ptr<f32>>
!matrix = !cuda_tile.tensor_view<?x?x!elem, strides=[?,1]>
!parts = !cuda_tile.tensor_view<?x?x?xf32, strides=[?,?,1]>
!x_part_BMxBK = !cuda_tile.partition_view<tile=(16x256), padding_value = zero, !matrix>
!w_part_BKxBN = !cuda_tile.partition_view<tile=(256x32), padding_value = zero, !matrix>
!out_part_1xBMxBN = !cuda_tile.partition_view<tile=(1x16x32), !parts>
!x_BMxBK = !cuda_tile.tile<16x256x!elem>
!w_BKxBN = !cuda_tile.tile<256x32x!elem>
!x_BKxBM = !cuda_tile.tile<256x16x!elem>
!w_BNxBK = !cuda_tile.tile<32x256x!elem>
!acc_BMxBN = !cuda_tile.tile<16x32xf32>
!acc_BNxBM = !cuda_tile.tile<32x16xf32>
!out_1xBMxBN = !cuda_tile.tile<1x16x32xf32>

cuda_tile.module @linear_parts_thin {
  entry @linear_parts_thin(%x: !ptr, %x_m: !int, %x_k: !int, %x_stride: !int, %x_unit: !int,
      %w: !ptr, %w_k: !int, %w_n: !int, %w_stride: !int, %w_unit: !int,
      %p: !result, %p_z: !int, %p_m: !int, %p_n: !int, %p_s0: !int, %p_s1: !int, %p_unit: !int) {
    %M = assume bounded<0, ?>, %x_m : !int
    %K = assume bounded<0, ?>, %x_k : !int
    %N = assume bounded<0, ?>, %w_n : !int
    %Z = assume bounded<0, ?>, %p_z : !int
    %x_row = assume bounded<0, ?>, %x_stride : !int
    %w_row = assume bounded<0, ?>, %w_stride : !int
    %p0 = assume bounded<0, ?>, %p_s0 : !int
    %p1 = assume bounded<0, ?>, %p_s1 : !int
    %x_view = make_tensor_view %x, shape = [%M, %K], strides = [%x_row, 1] : !int -> !matrix
    %w_view = make_tensor_view %w, shape = [%K, %N], strides = [%w_row, 1] : !int -> !matrix
    %p_view = make_tensor_view %p, shape = [%Z, %M, %N], strides = [%p0, %p1, 1] : !int -> !parts
    %x_tiles = make_partition_view %x_view : !x_part_BMxBK
    %w_tiles = make_partition_view %w_view : !w_part_BKxBN
    %p_tiles = make_partition_view %p_view : !out_part_1xBMxBN

    %n, %m, %z = get_tile_block_id : !int
    %one = constant <i32: 1> : !int
    %two = constant <i32: 2> : !int
    %three = constant <i32: 3> : !int
    %k_0 = muli %z, %three : !int
    %k_1 = addi %k_0, %one : !int
    %k_2 = addi %k_0, %two : !int
    %empty = constant <f32: 0.0> : !acc_BNxBM

    %w_tile_0, %t0 = load_view_tko weak %w_tiles[%k_0, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token
    %w_tile_1, %t1 = load_view_tko weak %w_tiles[%k_1, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token
    %w_tile_2, %t2 = load_view_tko weak %w_tiles[%k_2, %n] : !w_part_BKxBN, !int -> !w_BKxBN, token

    // The wait comes after these reads by the last one's token: else the compiler may put it first. With a token of each
    // they would be made one after the other.
    %ready = gdc_wait_tko token = %t2 -> token
    %x_tile_0, %t3 = load_view_tko weak %x_tiles[%m, %k_0] : !x_part_BMxBK, !int -> !x_BMxBK, token
    %x_turned_0 = permute %x_tile_0 [1, 0] : !x_BMxBK -> !x_BKxBM
    %w_turned_0 = permute %w_tile_0 [1, 0] : !w_BKxBN -> !w_BNxBK
    %acc_0 = mmaf %w_turned_0, %x_turned_0, %empty : !w_BNxBK, !x_BKxBM, !acc_BNxBM
    %x_tile_1, %t4 = load_view_tko weak %x_tiles[%m, %k_1] : !x_part_BMxBK, !int -> !x_BMxBK, token
    %x_turned_1 = permute %x_tile_1 [1, 0] : !x_BMxBK -> !x_BKxBM
    %w_turned_1 = permute %w_tile_1 [1, 0] : !w_BKxBN -> !w_BNxBK
    %acc_1 = mmaf %w_turned_1, %x_turned_1, %acc_0 : !w_BNxBK, !x_BKxBM, !acc_BNxBM
    %x_tile_2, %t5 = load_view_tko weak %x_tiles[%m, %k_2] : !x_part_BMxBK, !int -> !x_BMxBK, token
    %x_turned_2 = permute %x_tile_2 [1, 0] : !x_BMxBK -> !x_BKxBM
    %w_turned_2 = permute %w_tile_2 [1, 0] : !w_BKxBN -> !w_BNxBK
    %columns = mmaf %w_turned_2, %x_turned_2, %acc_1 : !w_BNxBK, !x_BKxBM, !acc_BNxBM
    %product = permute %columns [1, 0] : !acc_BNxBM -> !acc_BMxBN
    %result = reshape %product : !acc_BMxBN -> !out_1xBMxBN
    %stored = store_view_tko weak %result, %p_tiles[%z, %m, %n] optimization_hints = <default = {allow_tma = false}>
        : !out_1xBMxBN, !out_part_1xBMxBN, !int -> token
    return
  }
}
