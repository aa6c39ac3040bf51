// form: names of operations and types with the dialect's prefix
cuda_tile.module @m {
  // CHECK: entry @k(%p: tile<ptr<f32>>) {
  cuda_tile.entry @k(%p: !cuda_tile.tile<!cuda_tile.ptr<f32>>) {
    // CHECK: %a, %b = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
    %a, %b = cuda_tile.load_ptr_tko weak %p : !cuda_tile.tile<ptr<f32>> -> !cuda_tile.tile<f32>, !cuda_tile.token
    cuda_tile.return
  }
}
