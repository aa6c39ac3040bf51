// form: `#name = ...` and `!name = ...`
!pair = !cuda_tile.tile<2xf32>
#sixteen = #cuda_tile.div_by<16>
#0 = #cuda_tile.bounded<0, 7>
cuda_tile.module @m {
  entry @k(%n: tile<i32>) {
    // CHECK: constant <f32: 0.000000e+00> : tile<2xf32>
    %a = constant <f32: 0.0> : !pair
    // CHECK: assume div_by<16>, %n : tile<i32>
    %b = assume #sixteen, %n : tile<i32>
    // CHECK: assume bounded<0, 7>, %n : tile<i32>
    %c = assume #0, %n : tile<i32>
    // CHECK: assume div_by<64>, %n : tile<i32>
    %d = assume #later, %n : tile<i32>
    return
  }
}
#later = #cuda_tile.div_by<64>
