// entry: { sizes = { N = 96 } }
entry @k(%x: tile<ptr<f32>>, %m: tile<i32>, %n: tile<i32>, %row: tile<i32>, %unit: tile<i32>, %out: tile<ptr<f32>>, %out_m: tile<i32>, %out_n: tile<i32>, %out_row: tile<i32>, %out_unit: tile<i32>) {
  %sum = addi %n, %out_n : tile<i32>
  %more = addi %sum, %m : tile<i32>
  return
}
// becomes
entry @k(%x: tile<ptr<f32>>, %m: tile<i32>, %n: tile<i32>, %row: tile<i32>, %unit: tile<i32>, %out: tile<ptr<f32>>, %out_m: tile<i32>, %out_n: tile<i32>, %out_row: tile<i32>, %out_unit: tile<i32>) {
  %n_0 = constant <i32: 96> : tile<i32>
  %out_n_0 = constant <i32: 96> : tile<i32>
  %sum = addi %n_0, %out_n_0 : tile<i32>
  %more = addi %sum, %m : tile<i32>
  return
}
// -----
// entry: { sizes = { N = 96 } }
// error: it has 1 arguments, but op gelu has 10
entry @k(%x: tile<ptr<f32>>) {
  return
}
