// Making and reshaping tiles
// Constants, moves of elements, reductions and scans.

entry @broadcast() {
  %row = constant <i32: [[1, 2, 3, 4]]> : tile<1x4xi32>
  %rows = broadcast %row : tile<1x4xi32> -> tile<2x4xi32>
  print_tko "%d\0A", %rows : tile<2x4xi32> -> token
}

entry @cat() {
  %a = constant <i32: [1, 2]> : tile<2xi32>
  %b = constant <i32: [3, 4]> : tile<2xi32>
  %c = cat %a, %b dim = 0 : tile<2xi32>, tile<2xi32> -> tile<4xi32>
  print_tko "%d\0A", %c : tile<4xi32> -> token
}

entry @constant() {
  %given = constant <i32: [[1, 2], [3, 4]]> : tile<2x2xi32>
  %filled = constant <f32: 0.5> : tile<4xf32>
  print_tko "%d\0A%g\0A", %given, %filled : tile<2x2xi32>, tile<4xf32> -> token
}

entry @extract() {
  %x = constant <f32: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tile<8xf32>
  %n = constant <i32: 3> : tile<i32>
  %part = extract %x[%n] : tile<8xf32> -> tile<2xf32>
  print_tko "%g\0A", %part : tile<2xf32> -> token
}

entry @insert() {
  %x = constant <f32: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tile<8xf32>
  %part = constant <f32: [60.0, 70.0]> : tile<2xf32>
  %n = constant <i32: 3> : tile<i32>
  %y = insert %part, %x[%n] : tile<2xf32>, tile<8xf32>
  print_tko "%g\0A", %y : tile<8xf32> -> token
}

entry @iota() {
  %x = iota : tile<8xi32>
  print_tko "%d\0A", %x : tile<8xi32> -> token
}

entry @permute() {
  %x = constant <i32: [[1, 2, 3, 4], [5, 6, 7, 8]]> : tile<2x4xi32>
  %y = permute %x [1, 0] : tile<2x4xi32> -> tile<4x2xi32>
  print_tko "%d\0A", %y : tile<4x2xi32> -> token
}

entry @reduce() {
  %x = constant <f32: [[1.0, 2.0], [3.0, 4.0]]> : tile<2x2xf32>
  %sums = reduce %x dim=1 identities=[0.0 : f32] : tile<2x2xf32> -> tile<2xf32>
  (%a: tile<f32>, %b: tile<f32>) {
    %sum = addf %a, %b : tile<f32>
    yield %sum : tile<f32>
  }
  print_tko "%g\0A", %sums : tile<2xf32> -> token
}

entry @reshape() {
  %x = iota : tile<8xi32>
  %y = reshape %x : tile<8xi32> -> tile<2x4xi32>
  print_tko "%d\0A", %y : tile<2x4xi32> -> token
}

entry @scan() {
  %x = constant <i32: [1, 2, 3, 4]> : tile<4xi32>
  %sums = scan %x dim=0 reverse=false identities=[0 : i32] : tile<4xi32> -> tile<4xi32>
  (%a: tile<i32>, %b: tile<i32>) {
    %sum = addi %a, %b : tile<i32>
    yield %sum : tile<i32>
  }
  print_tko "%d\0A", %sums : tile<4xi32> -> token
}

entry @select() {
  %x = iota : tile<4xi32>
  %two = constant <i32: 2> : tile<4xi32>
  %many = constant <i32: 99> : tile<4xi32>
  %small = cmpi less_than %x, %two, signed : tile<4xi32> -> tile<4xi1>
  %y = select %small, %x, %many : tile<4xi1>, tile<4xi32>
  print_tko "%d\0A", %y : tile<4xi32> -> token
}
