// Conversions
// The same values as another type, and the same bits as another type.

entry @bitcast() {
  %x = constant <f32: [1.0, -0.0]> : tile<2xf32>
  %bits = bitcast %x : tile<2xf32> -> tile<2xi32>
  print_tko "%x\0A", %bits : tile<2xi32> -> token
}

entry @exti() {
  %x = constant <i8: [1, -1]> : tile<2xi8>
  %signed = exti %x signed : tile<2xi8> -> tile<2xi32>
  %unsigned = exti %x unsigned : tile<2xi8> -> tile<2xi32>
  print_tko "%d\0A%d\0A", %signed, %unsigned : tile<2xi32>, tile<2xi32> -> token
}

entry @ftof() {
  %x = constant <f32: [0.1, 1000.1]> : tile<2xf32>
  %narrow = ftof %x : tile<2xf32> -> tile<2xbf16>
  %small = ftof %x : tile<2xf32> -> tile<2xf8E4M3FN>
  %back = ftof %small : tile<2xf8E4M3FN> -> tile<2xf32>
  print_tko "%g\0A%g\0A", %narrow, %back : tile<2xbf16>, tile<2xf32> -> token
}

entry @ftoi() {
  %x = constant <f32: [1.9, -1.9, 300.0, -1000.0]> : tile<4xf32>
  %n = ftoi %x signed saturating : tile<4xf32> -> tile<4xi8>
  print_tko "%d\0A", %n : tile<4xi8> -> token
}

entry @int_to_ptr() {
  %start = alloca num_elem = 4, alignment = 16 : tile<ptr<i32>>
  %address = ptr_to_int %start : tile<ptr<i32>> -> tile<i64>
  %four = constant <i64: 4> : tile<i64>
  %next = addi %address, %four : tile<i64>
  %second = int_to_ptr %next : tile<i64> -> tile<ptr<i32>>
  %n = constant <i32: 7> : tile<i32>
  %written = store_ptr_tko weak %second, %n : tile<ptr<i32>>, tile<i32> -> token
  %read, %done = load_ptr_tko weak %second token = %written : tile<ptr<i32>> -> tile<i32>, token
  print_tko "%d\0A", %read : tile<i32> -> token
}

entry @itof() {
  %n = constant <i8: [3, -1]> : tile<2xi8>
  %signed = itof %n signed : tile<2xi8> -> tile<2xf32>
  %unsigned = itof %n unsigned : tile<2xi8> -> tile<2xf32>
  print_tko "%g\0A%g\0A", %signed, %unsigned : tile<2xf32>, tile<2xf32> -> token
}

entry @pack() {
  %x = constant <i32: [1, 513]> : tile<2xi32>
  %bytes = pack %x : tile<2xi32> -> tile<8xi8>
  print_tko "%d\0A", %bytes : tile<8xi8> -> token
}

entry @ptr_to_int() {
  %start = alloca num_elem = 4, alignment = 16 : tile<ptr<f32>>
  %two = constant <i32: 2> : tile<i32>
  %later = offset %start, %two : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
  %a = ptr_to_int %start : tile<ptr<f32>> -> tile<i64>
  %b = ptr_to_int %later : tile<ptr<f32>> -> tile<i64>
  %bytes = subi %b, %a : tile<i64>
  print_tko "%d\0A", %bytes : tile<i64> -> token
}

entry @ptr_to_ptr() {
  %floats = alloca num_elem = 1, alignment = 16 : tile<ptr<f32>>
  %one = constant <f32: 1.0> : tile<f32>
  %written = store_ptr_tko weak %floats, %one : tile<ptr<f32>>, tile<f32> -> token
  %words = ptr_to_ptr %floats : tile<ptr<f32>> -> tile<ptr<i32>>
  %bits, %read = load_ptr_tko weak %words token = %written : tile<ptr<i32>> -> tile<i32>, token
  print_tko "%x\0A", %bits : tile<i32> -> token
}

entry @trunci() {
  %x = constant <i32: [1, 257, -1, 128]> : tile<4xi32>
  %y = trunci %x : tile<4xi32> -> tile<4xi8>
  print_tko "%d\0A", %y : tile<4xi8> -> token
}

entry @unpack() {
  %bytes = constant <i8: [1, 0, 0, 0, 1, 2, 0, 0]> : tile<8xi8>
  %x = unpack %bytes : tile<8xi8> -> tile<2xi32>
  print_tko "%d\0A", %x : tile<2xi32> -> token
}
