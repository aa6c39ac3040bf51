// Scaled matrix products
// Products of narrow floats whose elements share scales, from Blackwell on. The table below has what may share one
// among 32 elements, as in the example. One scale of `f8E4M3FN` is for 16 elements of `f4E2M1FN`.

entry @mmaf_scaled() {
  %lhs = constant <f8E4M3FN: 1.0> : tile<16x64xf8E4M3FN>
  %rhs = constant <f8E4M3FN: 1.0> : tile<64x16xf8E4M3FN>
  %acc = constant <f32: 0.0> : tile<16x16xf32>
  %lhs_scale = constant <f8E8M0FNU: 2.0> : tile<16x2xf8E8M0FNU>
  %rhs_scale = constant <f8E8M0FNU: 1.0> : tile<2x16xf8E8M0FNU>
  %product = mmaf_scaled %lhs, %rhs, %acc, %lhs_scale, %rhs_scale : tile<16x64xf8E4M3FN>, tile<64x16xf8E4M3FN>, tile<16x16xf32>, tile<16x2xf8E8M0FNU>, tile<2x16xf8E8M0FNU>
  %zero = constant <i32: 0> : tile<i32>
  %first = extract %product[%zero, %zero] : tile<16x16xf32> -> tile<1x2xf32>
  print_tko "%g\0A", %first : tile<1x2xf32> -> token
}
