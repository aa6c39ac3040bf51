// form: identities without a type, as NVIDIA's disassembler prints `true`, `-3` and `-2.5` of i1, i64 and f64
entry @identities() {
  %b = constant <i1: true> : tile<2xi1>
  %i = constant <i64: 1> : tile<2xi64>
  %f = constant <f64: 1.0> : tile<2xf64>
  %0, %1, %2 = reduce %b, %i, %f dim=0 identities=[true, -3, -2.500000e+00] : tile<2xi1>, tile<2xi64>, tile<2xf64> -> tile<i1>, tile<i64>, tile<f64>
  // CHECK: %0, %1, %2 = reduce %b, %i, %f dim=0 identities=[true : i1, -3 : i64, -2.500000e+00 : f64] : tile<2xi1>, tile<2xi64>, tile<2xf64> -> tile<i1>, tile<i64>, tile<f64>
  (%a: tile<i1>, %c: tile<i1>, %d: tile<i64>, %e: tile<i64>, %g: tile<f64>, %h: tile<f64>) {
    yield %a, %d, %g : tile<i1>, tile<i64>, tile<f64>
  }
  return
}
