entry @k() {
  %one = constant <f32: 1.0> : tile<4xf32>
  %same = ftof %one : tile<4xf32> -> tile<4xf32>
  %less = ftof %same : tile<4xf32> -> tile<4xf16>
  return
}
// becomes
entry @k() {
  %one = constant <f32: 1.0> : tile<4xf32>
  %less = ftof %one : tile<4xf32> -> tile<4xf16>
  return
}
