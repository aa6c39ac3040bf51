// pass: inline
// entry: { constants = { BN = 8 } }
sizes BN = 8
!line = !cuda_tile.tile<BNxT>

fragment @twice(%a: !line) -> !line {
  %b = addf %a, %a : !line
  yield %b : !line
}

fragment @four_times(%a: !line) -> !line {
  %b = call @twice(%a)
  %c = call @twice(%b)
  yield %c : !line
}

skeleton @s {
  %one = constant <T: 1.0> : !line
  hole @setup
  %y = hole @body(%one) -> !line
  %z = call @twice(%y)
  return
}

kernel @k op = gelu, skeleton = @s {
  @body(%v) {
    %w = call @four_times(%v)
    yield %w : !line
  }
}
// becomes
entry @k(%x_ptr: tile<ptr<f32>>, %x_m: tile<i32>, %x_n: tile<i32>, %x_row_given: tile<i32>, %x_unit_given: tile<i32>, %out_ptr: tile<ptr<f32>>, %out_m: tile<i32>, %out_n: tile<i32>, %out_row_given: tile<i32>, %out_unit_given: tile<i32>) {
  %M = assume bounded<0, ?>, %x_m : tile<i32>
  %N = assume bounded<0, ?>, %x_n : tile<i32>
  %x_row = assume bounded<0, ?>, %x_row_given : tile<i32>
  %out_row = assume bounded<0, ?>, %out_row_given : tile<i32>
  %x_view = make_tensor_view %x_ptr, shape = [%M, %N], strides = [%x_row, 1] : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
  %out_view = make_tensor_view %out_ptr, shape = [%M, %N], strides = [%out_row, 1] : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
  %one = constant <f32: 1.0> : tile<8xf32>
  %b = addf %one, %one : tile<8xf32>
  %b_0 = addf %b, %b : tile<8xf32>
  %b_1 = addf %b_0, %b_0 : tile<8xf32>
  return
}
