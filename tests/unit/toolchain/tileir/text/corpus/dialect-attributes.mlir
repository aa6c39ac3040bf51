// form: attributes with the dialect's prefix
entry @k(%n: tile<i32>) {
  %t = constant <i32: 8> : tile<4x8xi32>
  // CHECK: assume div_by<32>, %n : tile<i32>
  %a = assume #cuda_tile.div_by<32>, %n : tile<i32>
  // CHECK: assume div_by<8, every 4 along 1>, %t : tile<4x8xi32>
  %b = cuda_tile.assume #cuda_tile.div_by<8, every 4 along 1>, %t : tile<4x8xi32>
  // CHECK: assume bounded<0, ?>, %n : tile<i32>
  %c = assume #cuda_tile.bounded<0, ?>, %n : tile<i32>
  // CHECK: assume same_elements<[4, 1]>, %t : tile<4x8xi32>
  %d = assume #cuda_tile.same_elements<[4, 1]>, %t : tile<4x8xi32>
  return
}
