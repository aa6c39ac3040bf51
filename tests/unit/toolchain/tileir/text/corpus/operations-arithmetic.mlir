// form: operations on numbers
entry @k(%x: tile<f32>) {
  // CHECK: %a = absf %x : tile<f32>
  %a = absf %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = ceil %x : tile<f32>
  %a = ceil %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = cos %x : tile<f32>
  %a = cos %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = cosh %x : tile<f32>
  %a = cosh %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = floor %x : tile<f32>
  %a = floor %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = log %x : tile<f32>
  %a = log %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = log2 %x : tile<f32>
  %a = log2 %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = negf %x : tile<f32>
  %a = negf %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = sin %x : tile<f32>
  %a = sin %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = sinh %x : tile<f32>
  %a = sinh %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = tan %x : tile<f32>
  %a = tan %x : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = exp2 %x : tile<f32>
  %a = exp2 %x : tile<f32>
  // CHECK: %b = exp2 %x flush_to_zero : tile<f32>
  %b = exp2 %x flush_to_zero : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = rsqrt %x : tile<f32>
  %a = rsqrt %x : tile<f32>
  // CHECK: %b = rsqrt %x flush_to_zero : tile<f32>
  %b = rsqrt %x flush_to_zero : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = exp %x : tile<f32>
  %a = exp %x : tile<f32>
  // CHECK: %b = exp %x rounding<approx> : tile<f32>
  %b = exp %x rounding<approx> : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = tanh %x : tile<f32>
  %a = tanh %x : tile<f32>
  // CHECK: %b = tanh %x rounding<approx> : tile<f32>
  %b = tanh %x rounding<approx> : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>) {
  // CHECK: %a = sqrt %x : tile<f32>
  %a = sqrt %x : tile<f32>
  // CHECK: %b = sqrt %x rounding<approx> flush_to_zero : tile<f32>
  %b = sqrt %x rounding<approx> flush_to_zero : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = addf %x, %y : tile<f32>
  %a = addf %x, %y : tile<f32>
  // CHECK: %b = addf %x, %y rounding<negative_inf> flush_to_zero : tile<f32>
  %b = addf %x, %y rounding<negative_inf> flush_to_zero : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = subf %x, %y : tile<f32>
  %a = subf %x, %y : tile<f32>
  // CHECK: %b = subf %x, %y rounding<negative_inf> flush_to_zero : tile<f32>
  %b = subf %x, %y rounding<negative_inf> flush_to_zero : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = mulf %x, %y : tile<f32>
  %a = mulf %x, %y : tile<f32>
  // CHECK: %b = mulf %x, %y rounding<negative_inf> flush_to_zero : tile<f32>
  %b = mulf %x, %y rounding<negative_inf> flush_to_zero : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = divf %x, %y : tile<f32>
  %a = divf %x, %y : tile<f32>
  // CHECK: %b = divf %x, %y rounding<approx> : tile<f32>
  %b = divf %x, %y rounding<approx> : tile<f32>
  // CHECK: %c = divf %x, %y rounding<full> flush_to_zero : tile<f32>
  %c = divf %x, %y rounding<full> flush_to_zero : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = maxf %x, %y : tile<f32>
  %a = maxf %x, %y : tile<f32>
  // CHECK: %b = maxf %x, %y flush_to_zero propagate_nan : tile<f32>
  %b = maxf %x, %y flush_to_zero propagate_nan : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = minf %x, %y : tile<f32>
  %a = minf %x, %y : tile<f32>
  // CHECK: %b = minf %x, %y flush_to_zero propagate_nan : tile<f32>
  %b = minf %x, %y flush_to_zero propagate_nan : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = remf %x, %y : tile<f32>
  %a = remf %x, %y : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = atan2 %x, %y : tile<f32>
  %a = atan2 %x, %y : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = pow %x, %y : tile<f32>
  %a = pow %x, %y : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %n: tile<i32>) {
  // CHECK: %a = fpowi %x, %n : tile<f32>, tile<i32>
  %a = fpowi %x, %n : tile<f32>, tile<i32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = fma %x, %y, %z : tile<f32>
  %a = fma %x, %y, %z : tile<f32>
  // CHECK: %b = fma %x, %y, %z rounding<zero> flush_to_zero : tile<f32>
  %b = fma %x, %y, %z rounding<zero> flush_to_zero : tile<f32>
  return
}
// -----
entry @k(%x: tile<f32>, %y: tile<f32>, %z: tile<f32>) {
  // CHECK: %a = cmpf equal ordered %x, %y : tile<f32> -> tile<i1>
  %a = cmpf equal ordered %x, %y : tile<f32> -> tile<i1>
  // CHECK: %b = cmpf greater_than_or_equal unordered %x, %y : tile<f32> -> tile<i1>
  %b = cmpf greater_than_or_equal unordered %x, %y : tile<f32> -> tile<i1>
  return
}
// -----
entry @k(%n: tile<i32>) {
  // CHECK: %a = absi %n : tile<i32>
  %a = absi %n : tile<i32>
  return
}
// -----
entry @k(%n: tile<i32>) {
  // CHECK: %a = negi %n : tile<i32>
  %a = negi %n : tile<i32>
  // CHECK: %b = negi %n overflow<no_signed_wrap> : tile<i32>
  %b = negi %n overflow<no_signed_wrap> : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = andi %m, %n : tile<i32>
  %a = andi %m, %n : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = ori %m, %n : tile<i32>
  %a = ori %m, %n : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = xori %m, %n : tile<i32>
  %a = xori %m, %n : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = mulhii %m, %n : tile<i32>
  %a = mulhii %m, %n : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = addi %m, %n : tile<i32>
  %a = addi %m, %n : tile<i32>
  // CHECK: %b = addi %m, %n overflow<no_wrap> : tile<i32>
  %b = addi %m, %n overflow<no_wrap> : tile<i32>
  %c = addi %m, %n overflow<none> : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = subi %m, %n : tile<i32>
  %a = subi %m, %n : tile<i32>
  // CHECK: %b = subi %m, %n overflow<no_wrap> : tile<i32>
  %b = subi %m, %n overflow<no_wrap> : tile<i32>
  %c = subi %m, %n overflow<none> : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = muli %m, %n : tile<i32>
  %a = muli %m, %n : tile<i32>
  // CHECK: %b = muli %m, %n overflow<no_wrap> : tile<i32>
  %b = muli %m, %n overflow<no_wrap> : tile<i32>
  %c = muli %m, %n overflow<none> : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = shli %m, %n : tile<i32>
  %a = shli %m, %n : tile<i32>
  // CHECK: %b = shli %m, %n overflow<no_wrap> : tile<i32>
  %b = shli %m, %n overflow<no_wrap> : tile<i32>
  %c = shli %m, %n overflow<none> : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = shri %m, %n signed : tile<i32>
  %a = shri %m, %n signed : tile<i32>
  // CHECK: %b = shri %m, %n unsigned : tile<i32>
  %b = shri %m, %n unsigned : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = remi %m, %n signed : tile<i32>
  %a = remi %m, %n signed : tile<i32>
  // CHECK: %b = remi %m, %n unsigned : tile<i32>
  %b = remi %m, %n unsigned : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = maxi %m, %n signed : tile<i32>
  %a = maxi %m, %n signed : tile<i32>
  // CHECK: %b = maxi %m, %n unsigned : tile<i32>
  %b = maxi %m, %n unsigned : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = mini %m, %n signed : tile<i32>
  %a = mini %m, %n signed : tile<i32>
  // CHECK: %b = mini %m, %n unsigned : tile<i32>
  %b = mini %m, %n unsigned : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = divi %m, %n unsigned : tile<i32>
  %a = divi %m, %n unsigned : tile<i32>
  // CHECK: %b = divi %m, %n signed rounding<negative_inf> : tile<i32>
  %b = divi %m, %n signed rounding<negative_inf> : tile<i32>
  return
}
// -----
entry @k(%m: tile<i32>, %n: tile<i32>) {
  // CHECK: %a = cmpi not_equal %m, %n, signed : tile<i32> -> tile<i1>
  %a = cmpi not_equal %m, %n, signed : tile<i32> -> tile<i1>
  // CHECK: %b = cmpi less_than %m, %n, unsigned : tile<i32> -> tile<i1>
  %b = cmpi less_than %m, %n, unsigned : tile<i32> -> tile<i1>
  return
}
// -----
entry @k() {
  %l = constant <f16: 0.0> : tile<4x8xf16>
  %r = constant <f16: 0.0> : tile<8x16xf16>
  %s = constant <f32: 0.0> : tile<4x16xf32>
  // CHECK: %a = mmaf %l, %r, %s : tile<4x8xf16>, tile<8x16xf16>, tile<4x16xf32>
  %a = mmaf %l, %r, %s : tile<4x8xf16>, tile<8x16xf16>, tile<4x16xf32>
  %q = constant <f8E4M3FN: 0.0> : tile<4x8xf8E4M3FN>
  %t = constant <f8E4M3FN: 0.0> : tile<8x16xf8E4M3FN>
  // CHECK: %b = mmaf %q, %t, %s fast_acc : tile<4x8xf8E4M3FN>, tile<8x16xf8E4M3FN>, tile<4x16xf32>
  %b = mmaf %q, %t, %s fast_acc : tile<4x8xf8E4M3FN>, tile<8x16xf8E4M3FN>, tile<4x16xf32>
  return
}
// -----
entry @k() {
  %l = constant <i8: 0> : tile<4x8xi8>
  %r = constant <i8: 0> : tile<8x16xi8>
  %s = constant <i32: 0> : tile<4x16xi32>
  // CHECK: %a = mmai %l, %r, %s signed unsigned : tile<4x8xi8>, tile<8x16xi8>, tile<4x16xi32>
  %a = mmai %l, %r, %s signed unsigned : tile<4x8xi8>, tile<8x16xi8>, tile<4x16xi32>
  return
}
// -----
entry @k() {
  %l = constant <f4E2M1FN: 0.0> : tile<16x64xf4E2M1FN>
  %r = constant <f4E2M1FN: 0.0> : tile<64x16xf4E2M1FN>
  %s = constant <f32: 0.0> : tile<16x16xf32>
  %u = constant <f8E8M0FNU: 1.0> : tile<16x2xf8E8M0FNU>
  %v = constant <f8E8M0FNU: 1.0> : tile<2x16xf8E8M0FNU>
  // CHECK: %a = mmaf_scaled %l, %r, %s, %u, %v : tile<16x64xf4E2M1FN>, tile<64x16xf4E2M1FN>, tile<16x16xf32>, tile<16x2xf8E8M0FNU>, tile<2x16xf8E8M0FNU>
  %a = mmaf_scaled %l, %r, %s, %u, %v : tile<16x64xf4E2M1FN>, tile<64x16xf4E2M1FN>, tile<16x16xf32>, tile<16x2xf8E8M0FNU>, tile<2x16xf8E8M0FNU>
  return
}
// -----
entry @k(%c: tile<i1>, %x: tile<f32>, %y: tile<f32>) {
  // CHECK: %a = select %c, %x, %y : tile<i1>, tile<f32>
  %a = select %c, %x, %y : tile<i1>, tile<f32>
  return
}
