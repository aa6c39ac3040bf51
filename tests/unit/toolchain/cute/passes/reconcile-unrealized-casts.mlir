func.func @f(%a: i32) -> i32 {
  %x = builtin.unrealized_conversion_cast %a : i32 to i64
  %y = builtin.unrealized_conversion_cast %x : i64 to i32
  return %y : i32
}
// becomes
func.func @f(%a: i32) -> i32 {
  return %a : i32
}
