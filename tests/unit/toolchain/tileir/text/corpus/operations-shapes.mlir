// form: operations on the shape and the type of tiles
entry @k() {
  // CHECK: %a = constant <f32: 5.000000e-01> : tile<4xf32>
  %a = constant <f32: 5.000000e-01> : tile<4xf32>
  // CHECK: %b = constant <i1: [true, false]> : tile<2xi1>
  %b = constant <i1: [true, false]> : tile<2xi1>
  // CHECK: %c = constant <bf16: [[1.000000e+00, 2.000000e+00]]> : tile<1x2xbf16>
  %c = constant <bf16: [[1.000000e+00, 2.000000e+00]]> : tile<1x2xbf16>
  return
}
// -----
entry @k() {
  // CHECK: %a = iota : tile<8xi32>
  %a = iota : tile<8xi32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = ftof %x : tile<f32> -> tile<f16>
  %a = ftof %x : tile<f32> -> tile<f16>
  // CHECK: %b = ftof %x rounding<zero> : tile<f32> -> tile<f16>
  %b = ftof %x rounding<zero> : tile<f32> -> tile<f16>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = ftoi %x signed : tile<f32> -> tile<i32>
  %a = ftoi %x signed : tile<f32> -> tile<i32>
  // CHECK: %b = ftoi %x unsigned saturating : tile<f32> -> tile<i32>
  %b = ftoi %x unsigned saturating : tile<f32> -> tile<i32>
  return
}
// -----
entry @k(%n: tile<i32>) {
  // CHECK: %a = itof %n signed : tile<i32> -> tile<f32>
  %a = itof %n signed : tile<i32> -> tile<f32>
  return
}
// -----
entry @k(%n: tile<i32>) {
  // CHECK: %a = exti %n unsigned : tile<i32> -> tile<i64>
  %a = exti %n unsigned : tile<i32> -> tile<i64>
  return
}
// -----
entry @k(%n: tile<i32>) {
  // CHECK: %a = trunci %n : tile<i32> -> tile<i8>
  %a = trunci %n : tile<i32> -> tile<i8>
  // CHECK: %b = trunci %n overflow<no_signed_wrap> : tile<i32> -> tile<i8>
  %b = trunci %n overflow<no_signed_wrap> : tile<i32> -> tile<i8>
  return
}
// -----
entry @k(%n: tile<i32>) {
  // CHECK: %a = bitcast %n : tile<i32> -> tile<f32>
  %a = bitcast %n : tile<i32> -> tile<f32>
  return
}
// -----
entry @k(%n: tile<i32>) {
  // CHECK: %a = reshape %n : tile<i32> -> tile<1x1xi32>
  %a = reshape %n : tile<i32> -> tile<1x1xi32>
  // CHECK: %b = broadcast %a : tile<1x1xi32> -> tile<4x8xi32>
  %b = broadcast %a : tile<1x1xi32> -> tile<4x8xi32>
  // CHECK: %c = permute %b [1, 0] : tile<4x8xi32> -> tile<8x4xi32>
  %c = permute %b [1, 0] : tile<4x8xi32> -> tile<8x4xi32>
  return
}
// -----
entry @k() {
  %t = constant <f32: 0.0> : tile<4x8xf32>
  // CHECK: %a = cat %t, %t dim = 0 : tile<4x8xf32>, tile<4x8xf32> -> tile<8x8xf32>
  %a = cat %t, %t dim = 0 : tile<4x8xf32>, tile<4x8xf32> -> tile<8x8xf32>
  return
}
// -----
entry @k(%n: tile<i32>) {
  %t = constant <f32: 0.0> : tile<4x8xf32>
  // CHECK: %a = extract %t[%n, %n] : tile<4x8xf32> -> tile<2x4xf32>
  %a = extract %t[%n, %n] : tile<4x8xf32> -> tile<2x4xf32>
  // CHECK: %b = insert %a, %t[%n, %n] : tile<2x4xf32>, tile<4x8xf32>
  %b = insert %a, %t[%n, %n] : tile<2x4xf32>, tile<4x8xf32>
  return
}
// -----
entry @k() {
  %t = constant <i32: 0> : tile<8xi32>
  // CHECK: %a = pack %t : tile<8xi32> -> tile<32xi8>
  %a = pack %t : tile<8xi32> -> tile<32xi8>
  // CHECK: %b = unpack %a : tile<32xi8> -> tile<8xi32>
  %b = unpack %a : tile<32xi8> -> tile<8xi32>
  return
}
// -----
entry @k() {
  %t = constant <f32: 0.0> : tile<4x8xf32>
  // CHECK: %s = reduce %t dim=1 identities=[0.000000e+00 : f32] : tile<4x8xf32> -> tile<4xf32>
  %s = reduce %t dim=1 identities=[0.000000e+00 : f32] : tile<4x8xf32> -> tile<4xf32>
  (%u: tile<f32>, %v: tile<f32>) {
    %w = addf %u, %v : tile<f32>
    yield %w : tile<f32>
  }
  return
}
// -----
entry @k() {
  %t = constant <f32: 0.0> : tile<4x8xf32>
  // CHECK: %s = scan %t dim=1 reverse=true identities=[0.000000e+00 : f32] : tile<4x8xf32> -> tile<4x8xf32>
  %s = scan %t dim=1 reverse=true identities=[0.000000e+00 : f32] : tile<4x8xf32> -> tile<4x8xf32>
  (%u: tile<f32>, %v: tile<f32>) {
    %w = addf %u, %v : tile<f32>
    yield %w : tile<f32>
  }
  return
}
// -----
entry @k() {
  %t = constant <f32: 0.0> : tile<8xf32>
  %i = iota : tile<8xi32>
  // CHECK: %s, %r = reduce %t, %i dim=0 identities=[0.000000e+00 : f32, -1 : i32] : tile<8xf32>, tile<8xi32> -> tile<f32>, tile<i32>
  %s, %r = reduce %t, %i dim=0 identities=[0.000000e+00 : f32, -1 : i32] : tile<8xf32>, tile<8xi32> -> tile<f32>, tile<i32>
  (%u: tile<f32>, %v: tile<f32>, %p: tile<i32>, %q: tile<i32>) {
    yield %u, %p : tile<f32>, tile<i32>
  }
  return
}
