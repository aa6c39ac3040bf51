func.func @f(%a: i32) -> i32 {
  %x = arith.addi %a, %a : i32
  %y = arith.addi %a, %a : i32
  %r = arith.muli %x, %y : i32
  return %r : i32
}
// becomes
func.func @f(%a: i32) -> i32 {
  %x = arith.addi %a, %a : i32
  %r = arith.muli %x, %x : i32
  return %r : i32
}
