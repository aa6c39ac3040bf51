// form: visibility of a global
// CHECK: global @seen <f32: [1.000000e+00, 2.000000e+00]> : tile<2xf32>
global public @seen <f32: [1.0, 2.0]> : !cuda_tile.tile<2xf32>
// CHECK: global constant @fixed alignment = 256 <i32: 7> : tile<2xi32>
global public constant @fixed alignment = 0x100 <i32: 7> : tile<2xi32>
// CHECK: global private @hidden <i8: 0> : tile<4xi8>
cuda_tile.global private @hidden <i8: 0> : tile<4xi8>
entry @k() {
  // CHECK: get_global @seen : tile<ptr<f32>>
  %a = get_global @seen : tile<ptr<f32>>
}
