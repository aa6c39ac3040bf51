sizes R = 2, BN = 512

!int = !cuda_tile.tile<i32>
!ptr = !cuda_tile.tile<ptr<T>>
!matrix = !cuda_tile.tensor_view<?x?xT, strides=[?,1]>
!x_part_RxBN = !cuda_tile.partition_view<tile=(RxBN), padding_value = zero, !matrix>
!out_part_RxBN = !cuda_tile.partition_view<tile=(RxBN), !matrix>
!tile_RxBN = !cuda_tile.tile<RxBNxT>
!f32_RxBN = !cuda_tile.tile<RxBNxf32>

// out = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = h + h tanh(x (linear + cubic x^2)), h = x/2, computed in f32
//
// One block makes BN columns of R rows: grid (columns, rows). Where the result is stored in 16 bits, the GPU's own tanh (to
// 2^-11) does; entries of f32 get the full one: see toolchain/tileir/specialize.py.
kernel @gelu op = gelu {
  %x_tiles = make_partition_view %x_view : !x_part_RxBN
  %out_tiles = make_partition_view %out_view : !out_part_RxBN

  %n, %m, %unused = get_tile_block_id : !int
  %tile, %token = load_view_tko weak %x_tiles[%m, %n] : !x_part_RxBN, !int -> !tile_RxBN, token
  %value = ftof %tile : !tile_RxBN -> !f32_RxBN
  %cubic = constant <f32: 0.035677408136300125> : !f32_RxBN
  %linear = constant <f32: 0.7978845608028654> : !f32_RxBN
  %half = constant <f32: 0.5> : !f32_RxBN
  %halved = mulf %half, %value : !f32_RxBN
  %square = mulf %value, %value : !f32_RxBN
  %slope = fma %cubic, %square, %linear : !f32_RxBN
  %inner = mulf %value, %slope : !f32_RxBN
  %tanh = tanh %inner rounding<approx> : !f32_RxBN
  %gelu = fma %halved, %tanh, %halved : !f32_RxBN
  %result = ftof %gelu : !f32_RxBN -> !tile_RxBN
  %stored = store_view_tko weak %result, %out_tiles[%m, %n] : !tile_RxBN, !out_part_RxBN, !int -> token
  return
}
