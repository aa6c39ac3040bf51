// form: `pow`, the name of fpowf until cuda-tile 13.3
entry @k(%x: tile<f32>) {
  // CHECK: %a = fpowf %x, %x : tile<f32>
  %a = pow %x, %x : tile<f32>
  return
}
