// Floats
// Arithmetic, comparisons and functions of floats, element by element.

entry @absf() {
  %x = constant <f32: [-2.5, 0.0, 3.0, -0.5]> : tile<4xf32>
  %y = absf %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @addf() {
  %x = constant <f32: [1.0, 2.0, 3.0, 4.0]> : tile<4xf32>
  %y = constant <f32: 0.5> : tile<4xf32>
  %z = addf %x, %y : tile<4xf32>
  print_tko "%g\0A", %z : tile<4xf32> -> token
}

entry @atan2() {
  %up = constant <f32: [0.0, 1.0, 0.0, -1.0]> : tile<4xf32>
  %right = constant <f32: [1.0, 0.0, -1.0, 0.0]> : tile<4xf32>
  %angle = atan2 %up, %right : tile<4xf32>
  print_tko "%.4f\0A", %angle : tile<4xf32> -> token
}

entry @ceil() {
  %x = constant <f32: [-1.5, 0.2, 2.0, 2.1]> : tile<4xf32>
  %y = ceil %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @cmpf() {
  %x = constant <f32: [1.0, 2.0, 3.0, 0x7FC00000]> : tile<4xf32>
  %two = constant <f32: 2.0> : tile<4xf32>
  %less = cmpf less_than ordered %x, %two : tile<4xf32> -> tile<4xi1>
  %less_or_nan = cmpf less_than unordered %x, %two : tile<4xf32> -> tile<4xi1>
  print_tko "%d\0A%d\0A", %less, %less_or_nan : tile<4xi1>, tile<4xi1> -> token
}

entry @cos() {
  %x = constant <f32: [0.0, 3.1415927]> : tile<2xf32>
  %y = cos %x : tile<2xf32>
  print_tko "%g\0A", %y : tile<2xf32> -> token
}

entry @cosh() {
  %x = constant <f32: [0.0, 1.0]> : tile<2xf32>
  %y = cosh %x : tile<2xf32>
  print_tko "%g\0A", %y : tile<2xf32> -> token
}

entry @divf() {
  %x = constant <f32: [1.0, -1.0, 0.0, 10.0]> : tile<4xf32>
  %y = constant <f32: [3.0, 0.0, 0.0, 4.0]> : tile<4xf32>
  %z = divf %x, %y : tile<4xf32>
  print_tko "%g\0A", %z : tile<4xf32> -> token
}

entry @exp() {
  %x = constant <f32: [0.0, 1.0, -1.0, 100.0]> : tile<4xf32>
  %y = exp %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @exp2() {
  %x = constant <f32: [0.0, 1.0, -1.0, 10.0]> : tile<4xf32>
  %y = exp2 %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @floor() {
  %x = constant <f32: [-1.5, 0.2, 2.0, 2.9]> : tile<4xf32>
  %y = floor %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @fma() {
  %x = constant <f32: [1.0, 2.0, 3.0, 4.0]> : tile<4xf32>
  %scale = constant <f32: 10.0> : tile<4xf32>
  %shift = constant <f32: 1.0> : tile<4xf32>
  %y = fma %x, %scale, %shift : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @pow() {
  %x = constant <f32: [2.0, 9.0]> : tile<2xf32>
  %y = constant <f32: [10.0, 0.5]> : tile<2xf32>
  %z = pow %x, %y : tile<2xf32>
  print_tko "%g\0A", %z : tile<2xf32> -> token
}

entry @fpowi() {
  %x = constant <f32: [2.0, -3.0]> : tile<2xf32>
  %n = constant <i32: [-1, 3]> : tile<2xi32>
  %y = fpowi %x, %n : tile<2xf32>, tile<2xi32>
  print_tko "%g\0A", %y : tile<2xf32> -> token
}

entry @log() {
  %x = constant <f32: [1.0, 2.7182817, 0.0, -1.0]> : tile<4xf32>
  %y = log %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @log2() {
  %x = constant <f32: [1.0, 8.0, 0.5, 0.0]> : tile<4xf32>
  %y = log2 %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @maxf() {
  %x = constant <f32: [1.0, -2.0, 0x7FC00000, 4.0]> : tile<4xf32>
  %zero = constant <f32: 0.0> : tile<4xf32>
  %relu = maxf %x, %zero : tile<4xf32>
  %with_nan = maxf %x, %zero propagate_nan : tile<4xf32>
  print_tko "%g\0A%g\0A", %relu, %with_nan : tile<4xf32>, tile<4xf32> -> token
}

entry @minf() {
  %x = constant <f32: [1.0, -2.0, 3.0, 4.0]> : tile<4xf32>
  %y = constant <f32: 2.5> : tile<4xf32>
  %z = minf %x, %y : tile<4xf32>
  print_tko "%g\0A", %z : tile<4xf32> -> token
}

entry @mulf() {
  %x = constant <f32: [1.0, 2.0, 3.0, 4.0]> : tile<4xf32>
  %y = constant <f32: 0.5> : tile<4xf32>
  %z = mulf %x, %y : tile<4xf32>
  print_tko "%g\0A", %z : tile<4xf32> -> token
}

entry @negf() {
  %x = constant <f32: [1.0, -2.0, 0.0, 4.0]> : tile<4xf32>
  %y = negf %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @remf() {
  %x = constant <f32: [7.5, -7.5, 7.5, 1.0]> : tile<4xf32>
  %y = constant <f32: [2.0, 2.0, -2.0, 4.0]> : tile<4xf32>
  %z = remf %x, %y : tile<4xf32>
  print_tko "%g\0A", %z : tile<4xf32> -> token
}

entry @rsqrt() {
  %x = constant <f32: [4.0, 0.25, 1.0, 0.0]> : tile<4xf32>
  %y = rsqrt %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @sin() {
  %x = constant <f32: [0.0, 1.5707964]> : tile<2xf32>
  %y = sin %x : tile<2xf32>
  print_tko "%g\0A", %y : tile<2xf32> -> token
}

entry @sinh() {
  %x = constant <f32: [0.0, 1.0]> : tile<2xf32>
  %y = sinh %x : tile<2xf32>
  print_tko "%g\0A", %y : tile<2xf32> -> token
}

entry @sqrt() {
  %x = constant <f32: [4.0, 2.0, 0.0, -1.0]> : tile<4xf32>
  %y = sqrt %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}

entry @subf() {
  %x = constant <f32: [1.0, 2.0, 3.0, 4.0]> : tile<4xf32>
  %y = constant <f32: 0.5> : tile<4xf32>
  %z = subf %x, %y : tile<4xf32>
  print_tko "%g\0A", %z : tile<4xf32> -> token
}

entry @tan() {
  %x = constant <f32: [0.0, 0.7853982]> : tile<2xf32>
  %y = tan %x : tile<2xf32>
  print_tko "%g\0A", %y : tile<2xf32> -> token
}

entry @tanh() {
  %x = constant <f32: [0.0, 1.0, -100.0, 0.001]> : tile<4xf32>
  %y = tanh %x : tile<4xf32>
  print_tko "%g\0A", %y : tile<4xf32> -> token
}
