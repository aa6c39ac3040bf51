// What bytecode 13.4 adds, as the printer spells it.
cuda_tile.module @kernels {
  entry @later(%arg: tile<ptr<f32>>, %arg0: tile<i32>) {
    %0 = make_tensor_view %arg, shape = [%arg0, 8], strides = [8, 1] : tile<i32> -> tensor_view<?x8xf32, strides=[8,1]>
    %1 = make_partition_view %0 : partition_view<tile=(4x8), tensor_view<?x8xf32, strides=[8,1]>>
    %2 = gdc_wait_tko -> token
    %3 = gdc_launch_dependents_tko token = %2 -> token
    %4 = gdc_wait_tko token = %3 -> token
    %5 = gdc_launch_dependents_tko -> token
    %6, %7 = load_view_tko weak %1[%arg0, %arg0] token = %4 optimization_hints = <sm_90 = {latency = 3}> inbounds = [true, false] : partition_view<tile=(4x8), tensor_view<?x8xf32, strides=[8,1]>>, tile<i32> -> tile<4x8xf32>, token
    %8, %9 = load_view_tko weak %1[%arg0, %arg0] inbounds = [false, true] : partition_view<tile=(4x8), tensor_view<?x8xf32, strides=[8,1]>>, tile<i32> -> tile<4x8xf32>, token
    %10, %11 = load_view_tko weak %1[%arg0, %arg0] : partition_view<tile=(4x8), tensor_view<?x8xf32, strides=[8,1]>>, tile<i32> -> tile<4x8xf32>, token
    %12 = store_view_tko weak %6, %1[%arg0, %arg0] token = %7 inbounds = [true, true] : tile<4x8xf32>, partition_view<tile=(4x8), tensor_view<?x8xf32, strides=[8,1]>>, tile<i32> -> token
    %13 = store_view_tko weak %6, %1[%arg0, %arg0] token = %12 : tile<4x8xf32>, partition_view<tile=(4x8), tensor_view<?x8xf32, strides=[8,1]>>, tile<i32> -> token
    %14 = ftoi %6 signed saturating : tile<4x8xf32> -> tile<4x8xi32>
    %15 = ftoi %6 unsigned : tile<4x8xf32> -> tile<4x8xi32>
    return
  }
}
