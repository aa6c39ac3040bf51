// form: floats too large for their type
entry @k() {
  // CHECK: constant <f16: 0x7C00> : tile<f16>
  %a = constant <f16: 70000.0> : tile<f16>
  // CHECK: constant <f32: [0xFF800000, 1.000000e+00]> : tile<2xf32>
  %b = constant <f32: [-1.0e40, 1.0]> : tile<2xf32>
  return
}
