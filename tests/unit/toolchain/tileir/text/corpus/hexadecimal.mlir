// form: numbers in hexadecimal
entry @k(%n: tile<i32>) {
  // CHECK: constant <i16: -1> : tile<i16>
  %a = constant <i16: 0xFFFF> : tile<i16>
  // CHECK: constant <i32: 305419896> : tile<4xi32>
  %b = constant <i32: 0x12345678> : tile<4xi32>
  // CHECK: constant <f32: [1.000000e+00, 0x7FC00000]> : tile<2xf32>
  %c = constant <f32: [0x3F800000, 0x7FC00000]> : tile<2xf32>
  // CHECK: constant <f16: -2.000000e+00> : tile<f16>
  %d = constant <f16: 0xC000> : tile<f16>
  // CHECK: assume div_by<32>, %n : tile<i32>
  %e = assume div_by<0x20>, %n : tile<i32>
  return
}
