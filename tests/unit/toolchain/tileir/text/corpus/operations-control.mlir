// form: control flow, assumptions and prints
entry @k() {
  // CHECK: %a, %b, %c = get_tile_block_id : tile<i32>
  %a, %b, %c = get_tile_block_id : tile<i32>
  // CHECK: %d, %e, %f = get_num_tile_blocks : tile<i32>
  %d, %e, %f = get_num_tile_blocks : tile<i32>
  return
}
// -----
entry @k(%n: tile<i32>) {
  // CHECK: %a = assume bounded<?, 7>, %n : tile<i32>
  %a = assume bounded<?, 7>, %n : tile<i32>
  return
}
// -----
entry @k(%c: tile<i1>) {
  // CHECK: assert %c, "a \22quoted\22 reason" : tile<i1>
  assert %c, "a \22quoted\22 reason" : tile<i1>
  return
}
// -----
entry @k(%n: tile<i32>) {
  // CHECK: %a = print_tko "n = %i\0A", %n : tile<i32> -> token
  %a = print_tko "n = %i\0A", %n : tile<i32> -> token
  // CHECK: %b = print_tko "no values" token = %a -> token
  %b = print_tko "no values" token = %a -> token
  return
}
// -----
entry @k(%c: tile<i1>, %x: tile<f32>) {
  // CHECK: if %c {
  if %c {
    return
  }
  // CHECK: %a = if %c -> (tile<f32>) {
  %a = if %c -> (tile<f32>) {
    yield %x : tile<f32>
  } else {
    %b = negf %x : tile<f32>
    yield %b : tile<f32>
  }
  return
}
// -----
entry @k(%n: tile<i32>, %x: tile<f32>) {
  // CHECK: for %i in (%n to %n, step %n) : tile<i32> {
  for %i in (%n to %n, step %n) : tile<i32> {
  }
  // CHECK: %a = for %j in (%n to %n, step %n) : tile<i32> iter_values(%y = %x) -> (tile<f32>) {
  %a = for %j in (%n to %n, step %n) : tile<i32> iter_values(%y = %x) -> (tile<f32>) {
    continue %y : tile<f32>
  }
  return
}
