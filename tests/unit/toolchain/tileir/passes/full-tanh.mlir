entry @k() {
  %one = constant <f32: 1.0> : tile<4xf32>
  %fast = tanh %one rounding<approx> : tile<4xf32>
  %slow = tanh %one : tile<4xf32>
  return
}
// becomes
entry @k() {
  %one = constant <f32: 1.0> : tile<4xf32>
  %fast = tanh %one : tile<4xf32>
  %slow = tanh %one : tile<4xf32>
  return
}
