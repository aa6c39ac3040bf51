// Integers
// Arithmetic, comparisons and bits of integers, element by element. The type has no sign: an operation for which it
// matters says `signed` or `unsigned`.

entry @absi() {
  %x = constant <i8: [-5, 0, 7, -128]> : tile<4xi8>
  %y = absi %x : tile<4xi8>
  print_tko "%d\0A", %y : tile<4xi8> -> token
}

entry @addi() {
  %x = constant <i8: [1, 2, 3, 127]> : tile<4xi8>
  %y = constant <i8: 1> : tile<4xi8>
  %z = addi %x, %y : tile<4xi8>
  print_tko "%d\0A", %z : tile<4xi8> -> token
}

entry @andi() {
  %x = constant <i32: [12, 10, 255, 0]> : tile<4xi32>
  %y = constant <i32: 6> : tile<4xi32>
  %z = andi %x, %y : tile<4xi32>
  print_tko "%d\0A", %z : tile<4xi32> -> token
}

entry @cmpi() {
  %x = constant <i32: [-1, 0, 1, 2]> : tile<4xi32>
  %one = constant <i32: 1> : tile<4xi32>
  %signed = cmpi less_than %x, %one, signed : tile<4xi32> -> tile<4xi1>
  %unsigned = cmpi less_than %x, %one, unsigned : tile<4xi32> -> tile<4xi1>
  print_tko "%d\0A%d\0A", %signed, %unsigned : tile<4xi1>, tile<4xi1> -> token
}

entry @divi() {
  %x = constant <i32: [7, -7, 8, 1]> : tile<4xi32>
  %two = constant <i32: 2> : tile<4xi32>
  %towards_zero = divi %x, %two signed : tile<4xi32>
  %down = divi %x, %two signed rounding<negative_inf> : tile<4xi32>
  %up = divi %x, %two signed rounding<positive_inf> : tile<4xi32>
  print_tko "%d\0A%d\0A%d\0A", %towards_zero, %down, %up : tile<4xi32>, tile<4xi32>, tile<4xi32> -> token
}

entry @maxi() {
  %x = constant <i32: [-1, 0, 5, 2]> : tile<4xi32>
  %y = constant <i32: 1> : tile<4xi32>
  %z = maxi %x, %y signed : tile<4xi32>
  print_tko "%d\0A", %z : tile<4xi32> -> token
}

entry @mini() {
  %x = constant <i32: [-1, 0, 5, 2]> : tile<4xi32>
  %y = constant <i32: 1> : tile<4xi32>
  %z = mini %x, %y signed : tile<4xi32>
  print_tko "%d\0A", %z : tile<4xi32> -> token
}

entry @mulhii() {
  %x = constant <i32: [-1, 65536, 3, 2]> : tile<4xi32>
  %y = constant <i32: 65536> : tile<4xi32>
  %z = mulhii %x, %y : tile<4xi32>
  print_tko "%d\0A", %z : tile<4xi32> -> token
}

entry @muli() {
  %x = constant <i32: [1, -2, 3, 4]> : tile<4xi32>
  %y = constant <i32: 10> : tile<4xi32>
  %z = muli %x, %y : tile<4xi32>
  print_tko "%d\0A", %z : tile<4xi32> -> token
}

entry @negi() {
  %x = constant <i32: [1, -2, 0, 4]> : tile<4xi32>
  %y = negi %x : tile<4xi32>
  print_tko "%d\0A", %y : tile<4xi32> -> token
}

entry @ori() {
  %x = constant <i32: [12, 10, 0, 1]> : tile<4xi32>
  %y = constant <i32: 3> : tile<4xi32>
  %z = ori %x, %y : tile<4xi32>
  print_tko "%d\0A", %z : tile<4xi32> -> token
}

entry @remi() {
  %x = constant <i32: [7, -7, 7, 1]> : tile<4xi32>
  %y = constant <i32: [3, 3, -3, 4]> : tile<4xi32>
  %z = remi %x, %y signed : tile<4xi32>
  print_tko "%d\0A", %z : tile<4xi32> -> token
}

entry @shli() {
  %x = constant <i32: [1, 2, 3, -1]> : tile<4xi32>
  %y = constant <i32: 4> : tile<4xi32>
  %z = shli %x, %y : tile<4xi32>
  print_tko "%d\0A", %z : tile<4xi32> -> token
}

entry @shri() {
  %x = constant <i32: [256, 16, -16, -1]> : tile<4xi32>
  %four = constant <i32: 4> : tile<4xi32>
  %signed = shri %x, %four signed : tile<4xi32>
  %unsigned = shri %x, %four unsigned : tile<4xi32>
  print_tko "%d\0A%d\0A", %signed, %unsigned : tile<4xi32>, tile<4xi32> -> token
}

entry @subi() {
  %x = constant <i32: [1, 2, 3, 4]> : tile<4xi32>
  %y = constant <i32: 10> : tile<4xi32>
  %z = subi %x, %y : tile<4xi32>
  print_tko "%d\0A", %z : tile<4xi32> -> token
}

entry @xori() {
  %x = constant <i32: [12, 10, 3, 0]> : tile<4xi32>
  %y = constant <i32: 3> : tile<4xi32>
  %z = xori %x, %y : tile<4xi32>
  print_tko "%d\0A", %z : tile<4xi32> -> token
}
