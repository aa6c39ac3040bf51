func.func @f(%s: !cute.shape<"(?,4)">) -> (!cute.shape<"(?,4)">, i32) {
  %d = cute.static : !cute.stride<"(4,1)">
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,4)">, !cute.stride<"(4,1)">) -> !cute.layout<"(?,4):(4,1)">
  %r = cute.get_shape(%l) : !cute.layout<"(?,4):(4,1)"> -> !cute.shape<"(?,4)">
  %x = arith.constant 3 : i32
  %z = arith.constant 0 : i32
  %y = arith.addi %x, %z : i32
  return %r, %y : !cute.shape<"(?,4)">, i32
}
// becomes
func.func @f(%s: !cute.shape<"(?,4)">) -> (!cute.shape<"(?,4)">, i32) {
  %y = arith.constant 3 : i32
  return %s, %y : !cute.shape<"(?,4)">, i32
}
