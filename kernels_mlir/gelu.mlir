include "products.mlir"

sizes R = 2, BN = 512

// out = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = h + h tanh(x (linear + cubic x^2)), h = x/2, computed in f32
//
// One block makes BN columns of R rows: grid (columns, rows). If the result is stored in 16 bits, the GPU's own tanh (to
// 2^-11) does; entries of f32 get the full one: see toolchain/tileir/passes/precision.py.
kernel @gelu op = gelu, BM = R {
  %x_tiles = make_partition_view %x_view : !residual_part
  %out_tiles = make_partition_view %out_view : !out_part

  %n, %m, %unused = get_tile_block_id : !int
  %tile, %token = call @load_residual(%x_tiles, %m, %n)
  %value = ftof %tile : !out -> !acc
  %cubic = constant <f32: 0.035677408136300125> : !acc
  %linear = constant <f32: 0.7978845608028654> : !acc
  %half = constant <f32: 0.5> : !acc
  %halved = mulf %half, %value : !acc
  %square = mulf %value, %value : !acc
  %slope = fma %cubic, %square, %linear : !acc
  %inner = mulf %value, %slope : !acc
  %tanh = tanh %inner rounding<approx> : !acc
  %gelu = fma %halved, %tanh, %halved : !acc
  call @store(%gelu, %out_tiles, %m, %n)
  return
}
