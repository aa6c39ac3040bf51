// Memory of several GPUs
// A multicast pointer stands for the same place in the memory of several GPUs, which NVSwitch reaches at once: for
// targets sm_100, sm_103 and sm_107. The interpreter has one GPU, so such a place is one place here.

global @numbers <f32: [10.0, 20.0, 30.0, 40.0]> : tile<4xf32>

entry @multimem_load_reduce_view_tko() {
  %start = get_global @numbers : tile<ptr<f32, <multicast>>>
  %array = make_tensor_view %start, shape = [4], strides = [1] : tile<ptr<f32, <multicast>>> -> tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>
  %tiles = make_partition_view %array : partition_view<tile=(4), tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>>
  %first = constant <i32: 0> : tile<i32>
  %sum, %read = multimem_load_reduce_view_tko relaxed sys %tiles[%first] : partition_view<tile=(4), tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>>, tile<i32> -> tile<4xf32>, token
  print_tko "%g\0A", %sum : tile<4xf32> -> token
}

entry @multimem_reduce_view_tko() {
  %start = get_global @numbers : tile<ptr<f32, <multicast>>>
  %array = make_tensor_view %start, shape = [4], strides = [1] : tile<ptr<f32, <multicast>>> -> tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>
  %tiles = make_partition_view %array : partition_view<tile=(4), tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>>
  %first = constant <i32: 0> : tile<i32>
  %ones = constant <f32: 1.0> : tile<4xf32>
  %added = multimem_reduce_view_tko relaxed sys %tiles, %ones[%first] : partition_view<tile=(4), tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>>, tile<4xf32>, tile<i32> -> token
  %sum, %read = multimem_load_reduce_view_tko relaxed sys %tiles[%first] token = %added : partition_view<tile=(4), tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>>, tile<i32>, token -> tile<4xf32>, token
  print_tko "%g\0A", %sum : tile<4xf32> -> token
}

entry @multimem_store_view_tko() {
  %start = get_global @numbers : tile<ptr<f32, <multicast>>>
  %array = make_tensor_view %start, shape = [4], strides = [1] : tile<ptr<f32, <multicast>>> -> tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>
  %tiles = make_partition_view %array : partition_view<tile=(4), tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>>
  %first = constant <i32: 0> : tile<i32>
  %ones = constant <f32: 1.0> : tile<4xf32>
  %stored = multimem_store_view_tko weak %tiles, %ones[%first] : partition_view<tile=(4), tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>>, tile<4xf32>, tile<i32> -> token
  %sum, %read = multimem_load_reduce_view_tko weak %tiles[%first] token = %stored : partition_view<tile=(4), tensor_view<4xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>>, tile<i32>, token -> tile<4xf32>, token
  print_tko "%g\0A", %sum : tile<4xf32> -> token
}
