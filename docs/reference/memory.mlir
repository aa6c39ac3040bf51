// Memory and views
// Pointers, views of arrays, loads and stores. An access is ordered after another one only by a token, see
// [ordering](ordering.md).

global @numbers <f32: [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]> : tile<8xf32>

entry @alloca() {
  %start = alloca num_elem = 4, alignment = 16 : tile<ptr<i32>>
  %n = constant <i32: 7> : tile<i32>
  %written = store_ptr_tko weak %start, %n : tile<ptr<i32>>, tile<i32> -> token
  %read, %done = load_ptr_tko weak %start token = %written : tile<ptr<i32>> -> tile<i32>, token
  print_tko "%d\0A", %read : tile<i32> -> token
}

entry @get_global() {
  %start = get_global @numbers : tile<ptr<f32>>
  %first, %read = load_ptr_tko weak %start : tile<ptr<f32>> -> tile<f32>, token
  print_tko "%g\0A", %first : tile<f32> -> token
}

entry @get_index_space_shape() {
  %start = get_global @numbers : tile<ptr<f32>>
  %array = make_tensor_view %start, shape = [7], strides = [1] : tensor_view<7xf32, strides=[1]>
  %tiles = make_partition_view %array : partition_view<tile=(4), padding_value = zero, tensor_view<7xf32, strides=[1]>>
  %count = get_index_space_shape %tiles : partition_view<tile=(4), padding_value = zero, tensor_view<7xf32, strides=[1]>> -> tile<i32>
  print_tko "%d\0A", %count : tile<i32> -> token
}

entry @get_tensor_shape() {
  %start = get_global @numbers : tile<ptr<f32>>
  %rows = constant <i32: 2> : tile<i32>
  %array = make_tensor_view %start, shape = [%rows, 4], strides = [4, 1] : tile<i32> -> tensor_view<?x4xf32, strides=[4,1]>
  %m, %n = get_tensor_shape %array : tensor_view<?x4xf32, strides=[4,1]> -> tile<i32>
  print_tko "%d x %d\0A", %m, %n : tile<i32>, tile<i32> -> token
}

entry @load_ptr_tko() {
  %start = get_global @numbers : tile<ptr<f32>>
  %one = reshape %start : tile<ptr<f32>> -> tile<1xptr<f32>>
  %same = broadcast %one : tile<1xptr<f32>> -> tile<4xptr<f32>>
  %step = iota : tile<4xi32>
  %pointers = offset %same, %step : tile<4xptr<f32>>, tile<4xi32> -> tile<4xptr<f32>>
  %wanted = constant <i1: [true, true, true, false]> : tile<4xi1>
  %zero = constant <f32: 0.0> : tile<4xf32>
  %x, %read = load_ptr_tko weak %pointers, %wanted, %zero : tile<4xptr<f32>>, tile<4xi1>, tile<4xf32> -> tile<4xf32>, token
  print_tko "%g\0A", %x : tile<4xf32> -> token
}

entry @load_view_tko() {
  %start = get_global @numbers : tile<ptr<f32>>
  %array = make_tensor_view %start, shape = [7], strides = [1] : tensor_view<7xf32, strides=[1]>
  %tiles = make_partition_view %array : partition_view<tile=(4), padding_value = zero, tensor_view<7xf32, strides=[1]>>
  %second = constant <i32: 1> : tile<i32>
  %x, %read = load_view_tko weak %tiles[%second] : partition_view<tile=(4), padding_value = zero, tensor_view<7xf32, strides=[1]>>, tile<i32> -> tile<4xf32>, token
  print_tko "%g\0A", %x : tile<4xf32> -> token
}

entry @make_gather_scatter_view() {
  %start = get_global @numbers : tile<ptr<f32>>
  %array = make_tensor_view %start, shape = [4, 2], strides = [2, 1] : tensor_view<4x2xf32, strides=[2,1]>
  %rows = make_gather_scatter_view %array : gather_scatter_view<tile=(2x2), tensor_view<4x2xf32, strides=[2,1]>, sparse_dim=0>
  %chosen = constant <i32: [3, 0]> : tile<2xi32>
  %zero = constant <i32: 0> : tile<i32>
  %x, %read = load_view_tko weak %rows[%chosen, %zero] : gather_scatter_view<tile=(2x2), tensor_view<4x2xf32, strides=[2,1]>, sparse_dim=0>, tile<2xi32>, tile<i32> -> tile<2x2xf32>, token
  print_tko "%g\0A", %x : tile<2x2xf32> -> token
}

entry @make_partition_view() {
  %start = get_global @numbers : tile<ptr<f32>>
  %array = make_tensor_view %start, shape = [2, 4], strides = [4, 1] : tensor_view<2x4xf32, strides=[4,1]>
  %tiles = make_partition_view %array : partition_view<tile=(2x2), tensor_view<2x4xf32, strides=[4,1]>>
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %x, %read = load_view_tko weak %tiles[%zero, %one] : partition_view<tile=(2x2), tensor_view<2x4xf32, strides=[4,1]>>, tile<i32> -> tile<2x2xf32>, token
  print_tko "%g\0A", %x : tile<2x2xf32> -> token
}

entry @make_strided_view() {
  %start = get_global @numbers : tile<ptr<f32>>
  %array = make_tensor_view %start, shape = [8], strides = [1] : tensor_view<8xf32, strides=[1]>
  %windows = make_strided_view %array : strided_view<tile=(4), traversal_strides=[2], tensor_view<8xf32, strides=[1]>>
  %one = constant <i32: 1> : tile<i32>
  %x, %read = load_view_tko weak %windows[%one] : strided_view<tile=(4), traversal_strides=[2], tensor_view<8xf32, strides=[1]>>, tile<i32> -> tile<4xf32>, token
  print_tko "%g\0A", %x : tile<4xf32> -> token
}

entry @make_tensor_view() {
  %start = get_global @numbers : tile<ptr<f32>>
  %stride = constant <i32: 4> : tile<i32>
  %columns = make_tensor_view %start, shape = [4, 2], strides = [1, %stride] : tile<i32> -> tensor_view<4x2xf32, strides=[1,?]>
  %tiles = make_partition_view %columns : partition_view<tile=(4x2), tensor_view<4x2xf32, strides=[1,?]>>
  %zero = constant <i32: 0> : tile<i32>
  %x, %read = load_view_tko weak %tiles[%zero, %zero] : partition_view<tile=(4x2), tensor_view<4x2xf32, strides=[1,?]>>, tile<i32> -> tile<4x2xf32>, token
  print_tko "%g\0A", %x : tile<4x2xf32> -> token
}

entry @offset() {
  %start = get_global @numbers : tile<ptr<f32>>
  %two = constant <i32: 2> : tile<i32>
  %third = offset %start, %two : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
  %x, %read = load_ptr_tko weak %third : tile<ptr<f32>> -> tile<f32>, token
  print_tko "%g\0A", %x : tile<f32> -> token
}

entry @store_ptr_tko() {
  %start = alloca num_elem = 1, alignment = 16 : tile<ptr<f32>>
  %x = constant <f32: 2.5> : tile<f32>
  %written = store_ptr_tko weak %start, %x : tile<ptr<f32>>, tile<f32> -> token
  %y, %read = load_ptr_tko weak %start token = %written : tile<ptr<f32>> -> tile<f32>, token
  print_tko "%g\0A", %y : tile<f32> -> token
}

entry @store_view_tko() {
  %start = alloca num_elem = 4, alignment = 16 : tile<ptr<f32>>
  %array = make_tensor_view %start, shape = [3], strides = [1] : tensor_view<3xf32, strides=[1]>
  %tiles = make_partition_view %array : partition_view<tile=(4), padding_value = zero, tensor_view<3xf32, strides=[1]>>
  %zero = constant <i32: 0> : tile<i32>
  %x = constant <f32: 9.0> : tile<4xf32>
  %written = store_view_tko weak %x, %tiles[%zero] : tile<4xf32>, partition_view<tile=(4), padding_value = zero, tensor_view<3xf32, strides=[1]>>, tile<i32> -> token
  %y, %read = load_view_tko weak %tiles[%zero] token = %written : partition_view<tile=(4), padding_value = zero, tensor_view<3xf32, strides=[1]>>, tile<i32> -> tile<4xf32>, token
  print_tko "%g\0A", %y : tile<4xf32> -> token
}
