// A chain of views goes; a load does not, for it may fault.
entry @k(%x: tile<ptr<f32>>, %n: tile<i32>) {
  %N = assume bounded<0, ?>, %n : tile<i32>
  %view = make_tensor_view %x, shape = [%N], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>
  %tiles = make_partition_view %view : partition_view<tile=(4), tensor_view<?xf32, strides=[1]>>
  %four = constant <i32: 4> : tile<i32>
  %start = make_token : token
  %value, %token = load_ptr_tko weak %x : tile<ptr<f32>> -> tile<f32>, token
  return
}
// becomes
entry @k(%x: tile<ptr<f32>>, %n: tile<i32>) {
  %value, %token = load_ptr_tko weak %x : tile<ptr<f32>> -> tile<f32>, token
  return
}
