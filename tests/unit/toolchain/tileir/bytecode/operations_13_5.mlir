// What bytecode 13.5 adds. As the printer spells it.
cuda_tile.module @kernels {
  entry @latest(%arg: tile<ptr<f32, <multicast>>> {nv.align = 16 : i32, nv.name = "x", nv.parts = [true, f32]}, %arg0: tile<i32>) {
    %0 = make_tensor_view %arg, shape = [%arg0, 8], strides = [8, 1] : tile<ptr<f32, <multicast>>>, tile<i32> -> tensor_view<?x8xf32, strides=[8,1], #cuda_tile.ptr_attr<multicast>>
    %1 = make_partition_view %0 : partition_view<tile=(4x8), tensor_view<?x8xf32, strides=[8,1], #cuda_tile.ptr_attr<multicast>>>
    %2, %3 = multimem_load_reduce_view_tko acquire sys %1[%arg0, %arg0] inbounds = [true, false] : partition_view<tile=(4x8), tensor_view<?x8xf32, strides=[8,1], #cuda_tile.ptr_attr<multicast>>>, tile<i32> -> tile<4x8xf32>, token
    %4 = multimem_store_view_tko weak %1, %2[%arg0, %arg0] token = %3 inbounds = [true, true] : partition_view<tile=(4x8), tensor_view<?x8xf32, strides=[8,1], #cuda_tile.ptr_attr<multicast>>>, tile<4x8xf32>, tile<i32>, token -> token
    %5 = multimem_reduce_view_tko release device %1, %2[%arg0, %arg0] token = %4 : partition_view<tile=(4x8), tensor_view<?x8xf32, strides=[8,1], #cuda_tile.ptr_attr<multicast>>>, tile<4x8xf32>, tile<i32>, token -> token
    return
  }
  entry @halves(%arg: tile<ptr<bf16, <multicast>>>, %arg0: tile<ptr<i64, <none>>>, %arg1: tile<ptr<f32, <unicast>>>) optimization_hints=<default = {num_worker_warps_per_cta = 16}> {
    %0 = constant <i32: 0> : tile<i32>
    %1 = make_tensor_view %arg, shape = [8], strides = [1] : tile<ptr<bf16, <multicast>>> -> tensor_view<8xbf16, strides=[1], #cuda_tile.ptr_attr<multicast>>
    %2 = make_partition_view %1 : partition_view<tile=(8), padding_value = neg_inf, tensor_view<8xbf16, strides=[1], #cuda_tile.ptr_attr<multicast>>>
    %3, %4 = multimem_load_reduce_view_tko weak %2[%0] attributes {reduction = #cuda_tile.multimem_reduction_kind<max>} : partition_view<tile=(8), padding_value = neg_inf, tensor_view<8xbf16, strides=[1], #cuda_tile.ptr_attr<multicast>>>, tile<i32> -> tile<8xbf16>, token
    %5 = make_tensor_view %arg1, shape = [8], strides = [1] : tile<ptr<f32, <unicast>>> -> tensor_view<8xf32, strides=[1], #cuda_tile.ptr_attr<unicast>>
    %6 = make_partition_view %5 : partition_view<tile=(8), tensor_view<8xf32, strides=[1], #cuda_tile.ptr_attr<unicast>>>
    %7 = constant <f32: 1.000000e+00> : tile<8xf32>
    %8 = atomic_red_view_tko relaxed device %6[%0], addf, %7 inbounds = [true] : tile<8xf32>, partition_view<tile=(8), tensor_view<8xf32, strides=[1], #cuda_tile.ptr_attr<unicast>>>, tile<i32> -> token
    return
  }
}
