// Every operation of Tile IR 13.3 but mmaf_scaled, with each of its flags and optional operands somewhere.
// The printer's own output, so that parsing and printing it gives it back.
cuda_tile.module @kernels {
  global @numbers alignment = 16 <f32: [1.000000e+00, 2.000000e+00]> : tile<2xf32>
  entry @arithmetic(%arg: tile<i32>, %arg0: tile<ptr<f32>>, %arg1: tile<f32>, %arg2: tile<i1>) {
    %0 = constant <f32: 0.000000e+00> : tile<4x8xf32>
    %1 = constant <f32: 0.000000e+00> : tile<4x8xf32>
    %2 = constant <i32: 0> : tile<4x8xi32>
    %3 = constant <i32: 0> : tile<4x8xi32>
    %4 = constant <i1: false> : tile<4x8xi1>
    %5 = constant <i64: 0> : tile<4x8xi64>
    %6 = constant <f16: 0.000000e+00> : tile<4x8xf16>
    %7 = constant <i32: 0> : tile<8xi32>
    %8 = constant <i8: 0> : tile<4x8xi8>
    %9 = constant <i8: 0> : tile<8x16xi8>
    %10 = constant <i32: 0> : tile<4x16xi32>
    %11 = int_to_ptr %5 : tile<4x8xi64> -> tile<4x8xptr<f32>>
    %12 = addf %0, %1 rounding<zero> flush_to_zero : tile<4x8xf32>
    %13 = divf %0, %1 rounding<approx> : tile<4x8xf32>
    %14 = divf %0, %1 rounding<full> flush_to_zero : tile<4x8xf32>
    %15 = fma %0, %1, %0 rounding<zero> flush_to_zero : tile<4x8xf32>
    %16 = addi %2, %3 overflow<no_signed_wrap> : tile<4x8xi32>
    %17 = muli %2, %3 overflow<no_wrap> : tile<4x8xi32>
    %18 = shli %2, %3 overflow<no_unsigned_wrap> : tile<4x8xi32>
    %19 = shri %2, %3 signed : tile<4x8xi32>
    %20 = divi %2, %3 unsigned : tile<4x8xi32>
    %21 = divi %2, %3 signed rounding<negative_inf> : tile<4x8xi32>
    %22 = remi %2, %3 unsigned : tile<4x8xi32>
    %23 = negi %2 overflow<no_signed_wrap> : tile<4x8xi32>
    %24 = maxf %0, %1 flush_to_zero propagate_nan : tile<4x8xf32>
    %25 = cmpf equal unordered %0, %1 : tile<4x8xf32> -> tile<4x8xi1>
    %26 = sqrt %0 rounding<approx> flush_to_zero : tile<4x8xf32>
    %27 = sqrt %0 : tile<4x8xf32>
    %28 = tanh %0 rounding<approx> : tile<4x8xf32>
    %29 = tanh %0 : tile<4x8xf32>
    %30 = exp %0 : tile<4x8xf32>
    %31 = exp2 %0 flush_to_zero : tile<4x8xf32>
    %32 = rsqrt %0 flush_to_zero : tile<4x8xf32>
    %33 = absf %0 : tile<4x8xf32>
    %34 = ceil %0 : tile<4x8xf32>
    %35 = negf %0 : tile<4x8xf32>
    %36 = cosh %0 : tile<4x8xf32>
    %37 = log2 %0 : tile<4x8xf32>
    %38 = atan2 %0, %1 : tile<4x8xf32>
    %39 = pow %0, %1 : tile<4x8xf32>
    %40 = remf %0, %1 : tile<4x8xf32>
    %41 = mulhii %2, %3 : tile<4x8xi32>
    %42 = xori %2, %3 : tile<4x8xi32>
    return
  }
  entry @shaping(%arg: tile<i32>, %arg0: tile<ptr<f32>>, %arg1: tile<f32>, %arg2: tile<i1>) {
    %0 = constant <f32: 0.000000e+00> : tile<4x8xf32>
    %1 = constant <f32: 0.000000e+00> : tile<4x8xf32>
    %2 = constant <i32: 0> : tile<4x8xi32>
    %3 = constant <i32: 0> : tile<4x8xi32>
    %4 = constant <i1: false> : tile<4x8xi1>
    %5 = constant <i64: 0> : tile<4x8xi64>
    %6 = constant <f16: 0.000000e+00> : tile<4x8xf16>
    %7 = constant <i32: 0> : tile<8xi32>
    %8 = constant <i8: 0> : tile<4x8xi8>
    %9 = constant <i8: 0> : tile<8x16xi8>
    %10 = constant <i32: 0> : tile<4x16xi32>
    %11 = int_to_ptr %5 : tile<4x8xi64> -> tile<4x8xptr<f32>>
    %12 = ftof %0 : tile<4x8xf32> -> tile<4x8xf16>
    %13 = ftoi %0 signed : tile<4x8xf32> -> tile<4x8xi32>
    %14 = itof %2 unsigned : tile<4x8xi32> -> tile<4x8xf32>
    %15 = exti %2 unsigned : tile<4x8xi32> -> tile<4x8xi64>
    %16 = trunci %5 : tile<4x8xi64> -> tile<4x8xi32>
    %17 = trunci %5 overflow<no_signed_wrap> : tile<4x8xi64> -> tile<4x8xi32>
    %18 = bitcast %2 : tile<4x8xi32> -> tile<4x8xf32>
    %19 = permute %0 [1, 0] : tile<4x8xf32> -> tile<8x4xf32>
    %20 = cat %0, %1 dim = 0 : tile<4x8xf32>, tile<4x8xf32> -> tile<8x8xf32>
    %21 = extract %0[%arg, %arg] : tile<4x8xf32> -> tile<2x2xf32>
    %22 = ptr_to_int %11 : tile<4x8xptr<f32>> -> tile<4x8xi64>
    %23 = int_to_ptr %5 : tile<4x8xi64> -> tile<4x8xptr<f32>>
    %24 = ptr_to_ptr %11 : tile<4x8xptr<f32>> -> tile<4x8xptr<i32>>
    %25 = offset %11, %2 : tile<4x8xptr<f32>>, tile<4x8xi32> -> tile<4x8xptr<f32>>
    %26 = pack %7 : tile<8xi32> -> tile<32xi8>
    %27 = mmai %8, %9, %10 signed unsigned : tile<4x8xi8>, tile<8x16xi8>, tile<4x16xi32>
    %28 = constant <i32: [50462976, 117835012, 185207048, 252579084]> : tile<4xi32>
    %29 = constant <f32: [[1.000000e+00, 1.000000e+00], [1.000000e+00, 0x7FC00000]]> : tile<2x2xf32>
    %30 = constant <i1: true> : tile<i1>
    %31 = constant <i1: true> : tile<8xi1>
    %32 = constant <i64: -5> : tile<8xi64>
    %33 = constant <bf16: 1.007812e+00> : tile<8xbf16>
    %34 = constant <tf32: 1.000000e+00> : tile<8xtf32>
    %35 = constant <f8E4M3FN: 1.000000e+00> : tile<8xf8E4M3FN>
    %36 = assume div_by<16, every 4 along 1>, %2 : tile<4x8xi32>
    %37 = assume bounded<-3, ?>, %2 : tile<4x8xi32>
    %38 = assume same_elements<[4, 1]>, %2 : tile<4x8xi32>
    assert %4, "no \22x\22 \0A" : tile<4x8xi1>
    return
  }
  entry @memory(%arg: tile<i32>, %arg0: tile<ptr<f32>>, %arg1: tile<f32>, %arg2: tile<i1>) {
    %0 = constant <f32: 0.000000e+00> : tile<4x8xf32>
    %1 = constant <f32: 0.000000e+00> : tile<4x8xf32>
    %2 = constant <i32: 0> : tile<4x8xi32>
    %3 = constant <i32: 0> : tile<4x8xi32>
    %4 = constant <i1: false> : tile<4x8xi1>
    %5 = constant <i64: 0> : tile<4x8xi64>
    %6 = constant <f16: 0.000000e+00> : tile<4x8xf16>
    %7 = constant <i32: 0> : tile<8xi32>
    %8 = constant <i8: 0> : tile<4x8xi8>
    %9 = constant <i8: 0> : tile<8x16xi8>
    %10 = constant <i32: 0> : tile<4x16xi32>
    %11 = int_to_ptr %5 : tile<4x8xi64> -> tile<4x8xptr<f32>>
    %12 = make_token : token
    %13 = join_tokens %12, %12 : token
    %14, %15 = load_ptr_tko weak %11 : tile<4x8xptr<f32>> -> tile<4x8xf32>, token
    %16, %17 = load_ptr_tko relaxed device %11, %4, %0 token = %12 optimization_hints = <default = {}, sm_90 = {latency = 3}> : tile<4x8xptr<f32>>, tile<4x8xi1>, tile<4x8xf32> -> tile<4x8xf32>, token
    %18, %19 = load_ptr_tko relaxed device %11, %4 token = %12 : tile<4x8xptr<f32>>, tile<4x8xi1> -> tile<4x8xf32>, token
    %20 = store_ptr_tko weak %11, %0 : tile<4x8xptr<f32>>, tile<4x8xf32> -> token
    %21 = store_ptr_tko relaxed device %11, %0, %4 token = %12 optimization_hints = <default = {}, sm_90 = {latency = 3}> : tile<4x8xptr<f32>>, tile<4x8xf32>, tile<4x8xi1> -> token
    %22, %23 = atomic_rmw_tko relaxed device %11, addf, %0 : tile<4x8xptr<f32>>, tile<4x8xf32> -> tile<4x8xf32>, token
    %24, %25 = atomic_rmw_tko relaxed device %11, addf, %0, %4 token = %12 : tile<4x8xptr<f32>>, tile<4x8xf32>, tile<4x8xi1> -> tile<4x8xf32>, token
    %26 = ptr_to_ptr %11 : tile<4x8xptr<f32>> -> tile<4x8xptr<i32>>
    %27, %28 = atomic_cas_tko relaxed device %26, %2, %3, %4 token = %12 : tile<4x8xptr<i32>>, tile<4x8xi32>, tile<4x8xi1> -> tile<4x8xi32>, token
    %29, %30 = atomic_cas_tko relaxed device %26, %2, %3 : tile<4x8xptr<i32>>, tile<4x8xi32> -> tile<4x8xi32>, token
    %31 = make_tensor_view %arg0, shape = [%arg, %arg], strides = [%arg, 1] : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %32 = make_tensor_view %arg0, shape = [16, 32], strides = [32, 1] : tensor_view<16x32xf32, strides=[32,1]>
    %33, %34 = get_tensor_shape %31 : tensor_view<?x?xf32, strides=[?,1]> -> tile<i32>
    %35 = make_partition_view %31 : partition_view<tile=(4x8), padding_value = neg_inf, tensor_view<?x?xf32, strides=[?,1]>, dim_map=[1, 0]>
    %36, %37 = get_index_space_shape %35 : partition_view<tile=(4x8), padding_value = neg_inf, tensor_view<?x?xf32, strides=[?,1]>, dim_map=[1, 0]> -> tile<i32>
    %38 = make_strided_view %31 : strided_view<tile=(4x8), traversal_strides=[2,8], padding_value = nan, tensor_view<?x?xf32, strides=[?,1]>>
    %39 = make_gather_scatter_view %31 : gather_scatter_view<tile=(4x8), padding_value = zero, tensor_view<?x?xf32, strides=[?,1]>, sparse_dim=0>
    %40 = constant <i32: 0> : tile<4xi32>
    %41, %42 = load_view_tko weak %39[%40, %arg] : gather_scatter_view<tile=(4x8), padding_value = zero, tensor_view<?x?xf32, strides=[?,1]>, sparse_dim=0>, tile<4xi32>, tile<i32> -> tile<4x8xf32>, token
    %43, %44 = load_view_tko weak %35[%arg, %arg] token = %12 optimization_hints = <default = {}, sm_90 = {allow_tma = false, latency = 3}> : partition_view<tile=(4x8), padding_value = neg_inf, tensor_view<?x?xf32, strides=[?,1]>, dim_map=[1, 0]>, tile<i32> -> tile<4x8xf32>, token
    %45 = store_view_tko relaxed device %0, %35[%arg, %arg] token = %12 optimization_hints = <default = {}, sm_90 = {allow_tma = false, latency = 3}> : tile<4x8xf32>, partition_view<tile=(4x8), padding_value = neg_inf, tensor_view<?x?xf32, strides=[?,1]>, dim_map=[1, 0]>, tile<i32> -> token
    %46 = atomic_red_view_tko relaxed device %35[%arg, %arg], addf, %0 token = %12 : tile<4x8xf32>, partition_view<tile=(4x8), padding_value = neg_inf, tensor_view<?x?xf32, strides=[?,1]>, dim_map=[1, 0]>, tile<i32> -> token
    %47 = print_tko "hi %i\0A", %arg token = %12 : tile<i32> -> token
    %48 = print_tko "hi %i\0A", %arg : tile<i32> -> token
    %49 = alloca num_elem = 4, alignment = 16 : tile<ptr<f32>>
    %50, %51, %52 = get_num_tile_blocks : tile<i32>
    return
  }
  entry @control(%arg: tile<i32>, %arg0: tile<ptr<f32>>, %arg1: tile<f32>, %arg2: tile<i1>) {
    %0 = constant <f32: 0.000000e+00> : tile<4x8xf32>
    %1 = constant <f32: 0.000000e+00> : tile<4x8xf32>
    %2 = constant <i32: 0> : tile<4x8xi32>
    %3 = constant <i32: 0> : tile<4x8xi32>
    %4 = constant <i1: false> : tile<4x8xi1>
    %5 = constant <i64: 0> : tile<4x8xi64>
    %6 = constant <f16: 0.000000e+00> : tile<4x8xf16>
    %7 = constant <i32: 0> : tile<8xi32>
    %8 = constant <i8: 0> : tile<4x8xi8>
    %9 = constant <i8: 0> : tile<8x16xi8>
    %10 = constant <i32: 0> : tile<4x16xi32>
    %11 = int_to_ptr %5 : tile<4x8xi64> -> tile<4x8xptr<f32>>
    %12, %13 = reduce %0, %2 dim=1 identities=[-0.000000e+00 : f32, -1 : i32] : tile<4x8xf32>, tile<4x8xi32> -> tile<4xf32>, tile<4xi32>
    (%arg3: tile<f32>, %arg4: tile<f32>, %arg5: tile<i32>, %arg6: tile<i32>) {
      %14 = addf %arg3, %arg4 : tile<f32>
      %15 = addi %arg5, %arg6 : tile<i32>
      yield %14, %15 : tile<f32>, tile<i32>
    }
    %16, %17 = scan %0, %2 dim=1 reverse=true identities=[-0.000000e+00 : f32, -1 : i32] : tile<4x8xf32>, tile<4x8xi32> -> tile<4x8xf32>, tile<4x8xi32>
    (%arg7: tile<f32>, %arg8: tile<f32>, %arg9: tile<i32>, %arg10: tile<i32>) {
      %18 = addf %arg7, %arg8 : tile<f32>
      %19 = addi %arg9, %arg10 : tile<i32>
      yield %18, %19 : tile<f32>, tile<i32>
    }
    %20, %21 = scan %0, %2 dim=1 reverse=false identities=[-0.000000e+00 : f32, -1 : i32] : tile<4x8xf32>, tile<4x8xi32> -> tile<4x8xf32>, tile<4x8xi32>
    (%arg11: tile<f32>, %arg12: tile<f32>, %arg13: tile<i32>, %arg14: tile<i32>) {
      %22 = addf %arg11, %arg12 : tile<f32>
      %23 = addi %arg13, %arg14 : tile<i32>
      yield %22, %23 : tile<f32>, tile<i32>
    }
    %24 = for unsigned %i in (%arg to %arg, step %arg) : tile<i32> iter_values(%carried = %0) -> (tile<4x8xf32>) {
      continue %carried : tile<4x8xf32>
    }
    for %i0 in (%arg to %arg, step %arg) : tile<i32> {
    }
    %25 = loop iter_values(%carried0 = %0) : tile<4x8xf32> -> tile<4x8xf32> {
      if %arg2 {
        break %carried0 : tile<4x8xf32>
      }
      continue %carried0 : tile<4x8xf32>
    }
    loop {
      break
    }
    %26 = if %arg2 -> (tile<4x8xf32>) {
      yield %0 : tile<4x8xf32>
    } else {
      yield %1 : tile<4x8xf32>
    }
    if %arg2 {
    } else {
    }
    if %arg2 {
    }
    return
  }
  entry @others(%arg: tile<i32>, %arg0: tile<ptr<f32>>, %arg1: tile<f32>, %arg2: tile<i1>) {
    %0 = constant <f32: 0.000000e+00> : tile<4x8xf32>
    %1 = constant <f32: 0.000000e+00> : tile<4x8xf32>
    %2 = constant <i32: 0> : tile<4x8xi32>
    %3 = constant <i32: 0> : tile<4x8xi32>
    %4 = constant <i1: false> : tile<4x8xi1>
    %5 = constant <i64: 0> : tile<4x8xi64>
    %6 = constant <f16: 0.000000e+00> : tile<4x8xf16>
    %7 = constant <i32: 0> : tile<8xi32>
    %8 = constant <i8: 0> : tile<4x8xi8>
    %9 = constant <i8: 0> : tile<8x16xi8>
    %10 = constant <i32: 0> : tile<4x16xi32>
    %11 = int_to_ptr %5 : tile<4x8xi64> -> tile<4x8xptr<f32>>
    %12 = absi %2 : tile<4x8xi32>
    %13 = andi %2, %3 : tile<4x8xi32>
    %14 = cmpi greater_than_or_equal %2, %3, unsigned : tile<4x8xi32> -> tile<4x8xi1>
    %15 = cos %0 : tile<4x8xf32>
    %16 = floor %0 : tile<4x8xf32>
    %17 = log %0 : tile<4x8xf32>
    %18 = maxi %2, %3 signed : tile<4x8xi32>
    %19 = minf %0, %1 : tile<4x8xf32>
    %20 = mini %2, %3 signed : tile<4x8xi32>
    %21 = permute %6 [1, 0] : tile<4x8xf16> -> tile<8x4xf16>
    %22 = constant <f32: 0.000000e+00> : tile<4x4xf32>
    %23 = mmaf %6, %21, %22 : tile<4x8xf16>, tile<8x4xf16>, tile<4x4xf32>
    %24 = mulf %0, %1 : tile<4x8xf32>
    %25 = ori %2, %3 : tile<4x8xi32>
    %26 = sin %0 : tile<4x8xf32>
    %27 = sinh %0 : tile<4x8xf32>
    %28 = subf %0, %1 : tile<4x8xf32>
    %29 = subi %2, %3 : tile<4x8xi32>
    %30 = tan %0 : tile<4x8xf32>
    %31, %32, %33 = get_tile_block_id : tile<i32>
    %34 = get_global @numbers : tile<ptr<f32>>
    %35 = reshape %arg1 : tile<f32> -> tile<1x1xf32>
    %36 = broadcast %35 : tile<1x1xf32> -> tile<4x8xf32>
    %37 = iota : tile<8xi64>
    %38 = reshape %0 : tile<4x8xf32> -> tile<32xf32>
    %39 = select %4, %0, %1 : tile<4x8xi1>, tile<4x8xf32>
    %40 = constant <i8: 1> : tile<8xi8>
    %41 = unpack %40 : tile<8xi8> -> tile<2xf32>
    return
  }
}
