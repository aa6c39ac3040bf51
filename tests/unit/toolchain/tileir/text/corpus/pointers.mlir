// form: pointers that say what an address stands for, and what accesses multicast ones
// CHECK: entry @k(%p: tile<ptr<f16, <multicast>>>, %q: tile<ptr<i32, <unicast>>>, %r: tile<ptr<i32, <none>>>, %n: tile<i32>) {
entry @k(%p: tile<ptr<f16, <multicast>>>, %q: tile<ptr<i32, <unicast>>>, %r: tile<ptr<i32, <none>>>, %n: tile<i32>) {
  // CHECK: %v = make_tensor_view %p, shape = [%n], strides = [1] : tile<ptr<f16, <multicast>>>, tile<i32> -> tensor_view<?xf16, strides=[1], #cuda_tile.ptr_attr<multicast>>
  %v = make_tensor_view %p, shape = [%n], strides = [1] : tile<ptr<f16, <multicast>>>, tile<i32> -> tensor_view<?xf16, strides=[1], #cuda_tile.ptr_attr<multicast>>
  %w = make_partition_view %v : partition_view<tile=(8), tensor_view<?xf16, strides=[1], #cuda_tile.ptr_attr<multicast>>>
  // CHECK: %x, %t = multimem_load_reduce_view_tko relaxed sys %w[%n] attributes {reduction = #cuda_tile.multimem_reduction_kind<min>} : partition_view
  %x, %t = multimem_load_reduce_view_tko relaxed sys %w[%n] attributes {reduction = #cuda_tile.multimem_reduction_kind<min>} : partition_view<tile=(8), tensor_view<?xf16, strides=[1], #cuda_tile.ptr_attr<multicast>>>, tile<i32> -> tile<8xf16>, token
  // CHECK: multimem_reduce_view_tko release sys %w, %x[%n] token = %t inbounds = [true] : partition_view
  %u = multimem_reduce_view_tko release sys %w, %x[%n] token = %t inbounds = [true] attributes {reduction = #cuda_tile.multimem_reduction_kind<add>} : partition_view<tile=(8), tensor_view<?xf16, strides=[1], #cuda_tile.ptr_attr<multicast>>>, tile<8xf16>, tile<i32>, token -> token
  // CHECK: multimem_store_view_tko weak %w, %x[%n] token = %u : partition_view
  %s = multimem_store_view_tko weak %w, %x[%n] token = %u : partition_view<tile=(8), tensor_view<?xf16, strides=[1], #cuda_tile.ptr_attr<multicast>>>, tile<8xf16>, tile<i32>, token -> token
  return
}
