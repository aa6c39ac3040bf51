// Matrix products
// Products of two tiles, or of a batch of them, for which GPUs have tensor cores.

entry @mmaf() {
  %lhs = constant <f16: [[1.0, 2.0], [3.0, 4.0]]> : tile<2x2xf16>
  %rhs = constant <f16: [[1.0, 0.5], [0.0, 1.0]]> : tile<2x2xf16>
  %acc = constant <f32: 100.0> : tile<2x2xf32>
  %product = mmaf %lhs, %rhs, %acc : tile<2x2xf16>, tile<2x2xf16>, tile<2x2xf32>
  print_tko "%g\0A", %product : tile<2x2xf32> -> token
}

entry @mmai() {
  %lhs = constant <i8: [[1, 2], [3, -1]]> : tile<2x2xi8>
  %rhs = constant <i8: [[1, 0], [0, -1]]> : tile<2x2xi8>
  %acc = constant <i32: 0> : tile<2x2xi32>
  %signed = mmai %lhs, %rhs, %acc signed signed : tile<2x2xi8>, tile<2x2xi8>, tile<2x2xi32>
  %mixed = mmai %lhs, %rhs, %acc signed unsigned : tile<2x2xi8>, tile<2x2xi8>, tile<2x2xi32>
  print_tko "%d\0A%d\0A", %signed, %mixed : tile<2x2xi32>, tile<2x2xi32> -> token
}
