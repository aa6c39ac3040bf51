// What bytecode 13.4 adds, and mmaf_scaled, whose scales can be of its new type. As the printer spells it.
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
    %16 = extract %6[%arg0, %arg0] : tile<4x8xf32> -> tile<2x8xf32>
    %17 = insert %16, %6[%arg0, %arg0] : tile<2x8xf32>, tile<4x8xf32>
    %18 = reshape %arg0 : tile<i32> -> tile<i32>
    %19 = insert %18, %arg0[] : tile<i32>, tile<i32>
    %20 = fpowi %6, %14 : tile<4x8xf32>, tile<4x8xi32>
    %21 = memory_fence_alias_tko %13
    return
  }
  entry @scaled() {
    %0 = constant <fnv8E5M3FNU: 1.250000e+00> : tile<16x4xfnv8E5M3FNU>
    %1 = constant <fnv8E5M3FNU: 7.629395e-06> : tile<4x16xfnv8E5M3FNU>
    %2 = constant <fnv8E5M3FNU: [1.146880e+05, 0xFF]> : tile<2xfnv8E5M3FNU>
    %3 = constant <f4E2M1FN: 1.000000e+00> : tile<16x64xf4E2M1FN>
    %4 = constant <f4E2M1FN: 1.000000e+00> : tile<64x16xf4E2M1FN>
    %5 = constant <f32: 0.000000e+00> : tile<16x16xf32>
    %6 = mmaf_scaled %3, %4, %5, %0, %1 : tile<16x64xf4E2M1FN>, tile<64x16xf4E2M1FN>, tile<16x16xf32>, tile<16x4xfnv8E5M3FNU>, tile<4x16xfnv8E5M3FNU>
    return
  }
}
