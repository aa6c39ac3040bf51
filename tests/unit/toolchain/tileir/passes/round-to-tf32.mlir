entry @k() {
  %a = constant <f32: 1.0> : tile<8x4xf32>
  %b = constant <f32: 2.0> : tile<4x8xf32>
  %zero = constant <f32: 0.0> : tile<8x8xf32>
  %c = mmaf %a, %b, %zero : tile<8x4xf32>, tile<4x8xf32>, tile<8x8xf32>
  return
}
// becomes
entry @k() {
  %a = constant <f32: 1.0> : tile<8x4xf32>
  %b = constant <f32: 2.0> : tile<4x8xf32>
  %zero = constant <f32: 0.0> : tile<8x8xf32>
  %0 = ftof %a : tile<8x4xf32> -> tile<8x4xtf32>
  %1 = ftof %b : tile<4x8xf32> -> tile<4x8xtf32>
  %c = mmaf %0, %1, %zero : tile<8x4xtf32>, tile<4x8xtf32>, tile<8x8xf32>
  return
}
// -----
// error: tf32 needs f32 operands, not tile<8x4xf16>
entry @k() {
  %a = constant <f16: 1.0> : tile<8x4xf16>
  %b = constant <f16: 2.0> : tile<4x8xf16>
  %zero = constant <f32: 0.0> : tile<8x8xf32>
  %c = mmaf %a, %b, %zero : tile<8x4xf16>, tile<4x8xf16>, tile<8x8xf32>
  return
}
