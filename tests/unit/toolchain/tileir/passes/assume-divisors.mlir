// The pointer and the outer stride of an aligned array, the pointer of a contiguous one, and a size that is a multiple.
// entry: { aligned = ["x"], contiguous = ["out"], multiples = { N = 8 } }
entry @k(%x: tile<ptr<f32>>, %m: tile<i32>, %n: tile<i32>, %row: tile<i32>, %unit: tile<i32>, %out: tile<ptr<f32>>, %out_m: tile<i32>, %out_n: tile<i32>, %out_row: tile<i32>, %out_unit: tile<i32>) {
  %value, %token = load_ptr_tko weak %x : tile<ptr<f32>> -> tile<f32>, token
  %sum = addi %row, %n : tile<i32>
  return
}
// becomes
entry @k(%x: tile<ptr<f32>>, %m: tile<i32>, %n: tile<i32>, %row: tile<i32>, %unit: tile<i32>, %out: tile<ptr<f32>>, %out_m: tile<i32>, %out_n: tile<i32>, %out_row: tile<i32>, %out_unit: tile<i32>) {
  %n_0 = assume div_by<8>, %n : tile<i32>
  %x_0 = assume div_by<16>, %x : tile<ptr<f32>>
  %row_0 = assume div_by<4>, %row : tile<i32>
  %out_n_0 = assume div_by<8>, %out_n : tile<i32>
  %out_0 = assume div_by<16>, %out : tile<ptr<f32>>
  %value, %token = load_ptr_tko weak %x_0 : tile<ptr<f32>> -> tile<f32>, token
  %sum = addi %row_0, %n_0 : tile<i32>
  return
}
// -----
// error: @k has 1 arguments, but op gelu has 10
entry @k(%x: tile<ptr<f32>>) {
  return
}
