// form: an operation whose results have no names
entry @k(%x: tile<f32>, %p: tile<ptr<f32>>) {
  // CHECK: %0 = addf %x, %x : tile<f32>
  addf %x, %x : tile<f32>
  // CHECK: %1, %2, %3 = get_tile_block_id : tile<i32>
  get_tile_block_id : tile<i32>
  // CHECK: %4 = make_tensor_view %p, shape = [4, 8], strides = [8, 1] : tensor_view<4x8xf32, strides=[8,1]>
  make_tensor_view %p, shape = [4, 8], strides = [8, 1] : tensor_view<4x8xf32, strides=[8,1]>
  %v = make_tensor_view %p, shape = [4, 8], strides = [8, 1] : tensor_view<4x8xf32, strides=[8,1]>
  // CHECK: %5, %6 = get_tensor_shape %v : tensor_view<4x8xf32, strides=[8,1]> -> tile<i32>
  get_tensor_shape %v : tensor_view<4x8xf32, strides=[8,1]> -> tile<i32>
  return
}
