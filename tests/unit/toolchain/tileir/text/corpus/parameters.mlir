// form: attributes of parameters, in the generic form too
// CHECK: entry @k(%p: tile<ptr<f32>> {nv.align = 16 : i32, nv.b = {c = 1.500000e+00 : f64, d = [true, "x"]}}, %n: tile<i32>) {
entry @k(%p: tile<ptr<f32>> {nv.b = {c = 1.5, d = [true, "x"]}, nv.align = 16 : i32}, %n: tile<i32> {}) {
  return
}
// -----
// CHECK: entry @k(%n: tile<i32>, %m: tile<i32> {nv.a = #cuda_tile.div_by<16>, nv.b = !cuda_tile.tile<4xf32>, nv.c = f32, nv.d = 7 : i64, nv.e = #cuda_tile.optimization_hints<sm_90 = {occupancy = 2}>}) {
"cuda_tile.entry"() <{arg_attrs = [{}, {nv.a = #cuda_tile.div_by<16>, nv.b = !cuda_tile.tile<4xf32>, nv.c = f32, nv.d = 7, nv.e = #cuda_tile.optimization_hints<sm_90 = {occupancy = 2}>}], function_type = (!cuda_tile.tile<i32>, !cuda_tile.tile<i32>) -> (), sym_name = "k"}> ({
^bb0(%n: !cuda_tile.tile<i32>, %m: !cuda_tile.tile<i32>):
  "cuda_tile.return"() : () -> ()
}) : () -> ()
