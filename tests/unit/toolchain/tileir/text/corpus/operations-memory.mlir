// form: operations on memory
entry @k(%p: tile<ptr<f32>>, %n: tile<i32>) {
  // CHECK: %a = offset %p, %n : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
  %a = offset %p, %n : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
  // CHECK: %b = ptr_to_int %a : tile<ptr<f32>> -> tile<i64>
  %b = ptr_to_int %a : tile<ptr<f32>> -> tile<i64>
  // CHECK: %c = int_to_ptr %b : tile<i64> -> tile<ptr<f32>>
  %c = int_to_ptr %b : tile<i64> -> tile<ptr<f32>>
  // CHECK: %d = ptr_to_ptr %c : tile<ptr<f32>> -> tile<ptr<i32>>
  %d = ptr_to_ptr %c : tile<ptr<f32>> -> tile<ptr<i32>>
  return
}
// -----
entry @k() {
  // CHECK: %a = alloca num_elem = 4, alignment = 16 : tile<ptr<f32>>
  %a = alloca num_elem = 4, alignment = 16 : tile<ptr<f32>>
  // CHECK: %b = alloca num_elem = 4, alignment = 4 global : tile<ptr<f32>>
  %b = alloca num_elem = 4, alignment = 4 global : tile<ptr<f32>>
  return
}
// -----
entry @k() {
  // CHECK: %a = make_token : token
  %a = make_token : token
  // CHECK: %b = join_tokens %a, %a : token
  %b = join_tokens %a, %a : token
  // CHECK: %c = memory_fence_alias_tko %b
  %c = memory_fence_alias_tko %b
  return
}
// -----
entry @k() {
  // CHECK: %a = make_token : token
  %a = make_token : token
  // CHECK: %b = gdc_wait_tko token = %a -> token
  %b = gdc_wait_tko token = %a -> token
  // CHECK: %c = gdc_wait_tko -> token
  %c = gdc_wait_tko -> token
  // CHECK: %d = gdc_launch_dependents_tko token = %b -> token
  %d = gdc_launch_dependents_tko token = %b -> token
  // CHECK: %e = gdc_launch_dependents_tko -> token
  %e = gdc_launch_dependents_tko -> token
  return
}
// -----
entry @k(%p: tile<ptr<f32>>, %n: tile<i32>) {
  // CHECK: %v = make_tensor_view %p, shape = [%n, 8], strides = [8, 1] : tile<i32> -> tensor_view<?x8xf32, strides=[8,1]>
  %v = make_tensor_view %p, shape = [%n, 8], strides = [8, 1] : tile<i32> -> tensor_view<?x8xf32, strides=[8,1]>
  // CHECK: %a, %b = get_tensor_shape %v : tensor_view<?x8xf32, strides=[8,1]> -> tile<i32>
  %a, %b = get_tensor_shape %v : tensor_view<?x8xf32, strides=[8,1]> -> tile<i32>
  return
}
// -----
entry @k(%p: tile<ptr<f32>>) {
  %v = make_tensor_view %p, shape = [16, 32], strides = [32, 1] : tensor_view<16x32xf32, strides=[32,1]>
  // CHECK: %w = make_partition_view %v : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>
  %w = make_partition_view %v : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>
  // CHECK: %a, %b = get_index_space_shape %w : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]> -> tile<i32>
  %a, %b = get_index_space_shape %w : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]> -> tile<i32>
  return
}
// -----
entry @k(%p: tile<ptr<f32>>) {
  %v = make_tensor_view %p, shape = [16, 32], strides = [32, 1] : tensor_view<16x32xf32, strides=[32,1]>
  // CHECK: %w = make_strided_view %v : strided_view<tile=(4x8), traversal_strides=[2,8], padding_value = nan, tensor_view<16x32xf32, strides=[32,1]>>
  %w = make_strided_view %v : strided_view<tile=(4x8), traversal_strides=[2,8], padding_value = nan, tensor_view<16x32xf32, strides=[32,1]>>
  return
}
// -----
entry @k(%p: tile<ptr<f32>>, %n: tile<i32>) {
  %v = make_tensor_view %p, shape = [16, 32], strides = [32, 1] : tensor_view<16x32xf32, strides=[32,1]>
  // CHECK: %w = make_gather_scatter_view %v : gather_scatter_view<tile=(4x8), tensor_view<16x32xf32, strides=[32,1]>, sparse_dim=0>
  %w = make_gather_scatter_view %v : gather_scatter_view<tile=(4x8), tensor_view<16x32xf32, strides=[32,1]>, sparse_dim=0>
  %i = iota : tile<4xi32>
  // CHECK: %a, %b = load_view_tko weak %w[%i, %n] : gather_scatter_view<tile=(4x8), tensor_view<16x32xf32, strides=[32,1]>, sparse_dim=0>, tile<4xi32>, tile<i32> -> tile<4x8xf32>, token
  %a, %b = load_view_tko weak %w[%i, %n] : gather_scatter_view<tile=(4x8), tensor_view<16x32xf32, strides=[32,1]>, sparse_dim=0>, tile<4xi32>, tile<i32> -> tile<4x8xf32>, token
  return
}
// -----
entry @k(%p: tile<ptr<f32>>, %n: tile<i32>) {
  %v = make_tensor_view %p, shape = [16, 32], strides = [32, 1] : tensor_view<16x32xf32, strides=[32,1]>
  %w = make_partition_view %v : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>
  // CHECK: %a, %b = load_view_tko weak %w[%n, %n] : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>, tile<i32> -> tile<4x8xf32>, token
  %a, %b = load_view_tko weak %w[%n, %n] : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>, tile<i32> -> tile<4x8xf32>, token
  // CHECK: %c, %d = load_view_tko acquire sys %w[%n, %n] token = %b optimization_hints = <sm_90 = {allow_tma = false, latency = 3}> inbounds = [true, false] : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>, tile<i32> -> tile<4x8xf32>, token
  %c, %d = load_view_tko acquire sys %w[%n, %n] token = %b optimization_hints = <sm_90 = {allow_tma = false, latency = 3}> inbounds = [true, false] : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>, tile<i32> -> tile<4x8xf32>, token
  return
}
// -----
entry @k(%p: tile<ptr<f32>>, %n: tile<i32>) {
  %v = make_tensor_view %p, shape = [16, 32], strides = [32, 1] : tensor_view<16x32xf32, strides=[32,1]>
  %w = make_partition_view %v : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>
  %t = constant <f32: 0.0> : tile<4x8xf32>
  // CHECK: %a = store_view_tko weak %t, %w[%n, %n] : tile<4x8xf32>, partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>, tile<i32> -> token
  %a = store_view_tko weak %t, %w[%n, %n] : tile<4x8xf32>, partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>, tile<i32> -> token
  // CHECK: %b = store_view_tko release device %t, %w[%n, %n] token = %a optimization_hints = <sm_90 = {allow_tma = false, latency = 3}> : tile<4x8xf32>, partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>, tile<i32> -> token
  %b = store_view_tko release device %t, %w[%n, %n] token = %a optimization_hints = <sm_90 = {allow_tma = false, latency = 3}> : tile<4x8xf32>, partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>, tile<i32> -> token
  return
}
// -----
entry @k(%p: tile<ptr<f32>>, %n: tile<i32>) {
  %v = make_tensor_view %p, shape = [16, 32], strides = [32, 1] : tensor_view<16x32xf32, strides=[32,1]>
  %w = make_partition_view %v : partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>
  %t = constant <f32: 0.0> : tile<4x8xf32>
  // CHECK: %a = atomic_red_view_tko relaxed device %w[%n, %n], addf, %t : tile<4x8xf32>, partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>, tile<i32> -> token
  %a = atomic_red_view_tko relaxed device %w[%n, %n], addf, %t : tile<4x8xf32>, partition_view<tile=(4x8), padding_value = zero, tensor_view<16x32xf32, strides=[32,1]>, dim_map=[1, 0]>, tile<i32> -> token
  return
}
// -----
entry @k(%p: tile<ptr<f32>>, %c: tile<i1>, %x: tile<f32>) {
  // CHECK: %a, %b = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
  %a, %b = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
  // CHECK: %d, %e = load_ptr_tko relaxed tl_blk %p, %c, %x token = %b optimization_hints = <default = {latency = 2}> : tile<ptr<f32>>, tile<i1>, tile<f32> -> tile<f32>, token
  %d, %e = load_ptr_tko relaxed tl_blk %p, %c, %x token = %b optimization_hints = <default = {latency = 2}> : tile<ptr<f32>>, tile<i1>, tile<f32> -> tile<f32>, token
  // CHECK: %f, %g = load_ptr_tko weak %p, %x : tile<ptr<f32>>, tile<f32> -> tile<f32>, token
  %f, %g = load_ptr_tko weak %p, %x : tile<ptr<f32>>, tile<f32> -> tile<f32>, token
  return
}
// -----
entry @k(%p: tile<ptr<f32>>, %c: tile<i1>, %x: tile<f32>) {
  // CHECK: %a = store_ptr_tko weak %p, %x : tile<ptr<f32>>, tile<f32> -> token
  %a = store_ptr_tko weak %p, %x : tile<ptr<f32>>, tile<f32> -> token
  // CHECK: %b = store_ptr_tko relaxed device %p, %x, %c token = %a : tile<ptr<f32>>, tile<f32>, tile<i1> -> token
  %b = store_ptr_tko relaxed device %p, %x, %c token = %a : tile<ptr<f32>>, tile<f32>, tile<i1> -> token
  return
}
// -----
entry @k(%q: tile<ptr<i32>>, %c: tile<i1>, %n: tile<i32>) {
  // CHECK: %a0, %t0 = atomic_rmw_tko relaxed device %q, and, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %a0, %t0 = atomic_rmw_tko relaxed device %q, and, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  // CHECK: %a1, %t1 = atomic_rmw_tko relaxed device %q, or, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %a1, %t1 = atomic_rmw_tko relaxed device %q, or, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  // CHECK: %a2, %t2 = atomic_rmw_tko relaxed device %q, xor, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %a2, %t2 = atomic_rmw_tko relaxed device %q, xor, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  // CHECK: %a3, %t3 = atomic_rmw_tko relaxed device %q, add, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %a3, %t3 = atomic_rmw_tko relaxed device %q, add, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  // CHECK: %a4, %t4 = atomic_rmw_tko relaxed device %q, max, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %a4, %t4 = atomic_rmw_tko relaxed device %q, max, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  // CHECK: %a5, %t5 = atomic_rmw_tko relaxed device %q, min, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %a5, %t5 = atomic_rmw_tko relaxed device %q, min, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  // CHECK: %a6, %t6 = atomic_rmw_tko relaxed device %q, umax, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %a6, %t6 = atomic_rmw_tko relaxed device %q, umax, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  // CHECK: %a7, %t7 = atomic_rmw_tko relaxed device %q, umin, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %a7, %t7 = atomic_rmw_tko relaxed device %q, umin, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  // CHECK: %a8, %t8 = atomic_rmw_tko relaxed device %q, xchg, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %a8, %t8 = atomic_rmw_tko relaxed device %q, xchg, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  // CHECK: %a, %t = atomic_rmw_tko acq_rel sys %q, add, %n, %c token = %t0 : tile<ptr<i32>>, tile<i32>, tile<i1> -> tile<i32>, token
  %a, %t = atomic_rmw_tko acq_rel sys %q, add, %n, %c token = %t0 : tile<ptr<i32>>, tile<i32>, tile<i1> -> tile<i32>, token
  return
}
// -----
entry @k(%q: tile<ptr<i32>>, %c: tile<i1>, %m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a, %t = atomic_cas_tko relaxed device %q, %m, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %a, %t = atomic_cas_tko relaxed device %q, %m, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  // CHECK: %b, %u = atomic_cas_tko acquire tl_blk %q, %m, %n, %c token = %t : tile<ptr<i32>>, tile<i32>, tile<i1> -> tile<i32>, token
  %b, %u = atomic_cas_tko acquire tl_blk %q, %m, %n, %c token = %t : tile<ptr<i32>>, tile<i32>, tile<i1> -> tile<i32>, token
  return
}
// -----
global @g <i32: [1, 2]> : tile<2xi32>
entry @k() {
  // CHECK: %a = get_global @g : tile<ptr<i32>>
  %a = get_global @g : tile<ptr<i32>>
  return
}
