// form: `fpowf`, the name of pow in NVIDIA's disassembler since 13.4
entry @k(%x: tile<f32>) {
  // CHECK: %a = pow %x, %x : tile<f32>
  %a = fpowf %x, %x : tile<f32>
  // CHECK: %b = pow %x, %x : tile<f32>
  %b = "cuda_tile.fpowf"(%x, %x) : (tile<f32>, tile<f32>) -> tile<f32>
  return
}
