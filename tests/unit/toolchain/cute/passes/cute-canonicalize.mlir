func.func @f(%m: i32) -> !cute.shape<"(?,4)"> {
  %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,4)">
  %d = cute.static : !cute.stride<"(4,1)">
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,4)">, !cute.stride<"(4,1)">) -> !cute.layout<"(?,4):(4,1)">
  %t = cute.get_shape(%l) : !cute.layout<"(?,4):(4,1)"> -> !cute.shape<"(?,4)">
  func.return %t : !cute.shape<"(?,4)">
}
// becomes
func.func @f(%m: i32) -> !cute.shape<"(?,4)"> {
  %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,4)">
  func.return %s : !cute.shape<"(?,4)">
}
// -----
func.func @f(%m: i32) -> i1 {
  %a = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,4)">
  %b = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,4)">
  %i = cute.to_int_tuple(%b) : !cute.shape<"(?,4)"> -> !cute.int_tuple<"(?,4)">
  %c = cute.to_shape(%i) : !cute.int_tuple<"(?,4)"> -> !cute.shape<"(?,4)">
  %e = cute.equal(%a, %c) : (!cute.shape<"(?,4)">, !cute.shape<"(?,4)">) -> i1
  func.return %e : i1
}
// becomes
func.func @f(%m: i32) -> i1 {
  %a = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,4)">
  %e = cute.equal(%a, %a) : (!cute.shape<"(?,4)">, !cute.shape<"(?,4)">) -> i1
  func.return %e : i1
}
// -----
func.func @f(%l: !cute.layout<"(?,(1,4)):(4,(2,1))">) -> !cute.layout<"(?,4):(4,1)"> {
  %a = cute.coalesce(%l) : (!cute.layout<"(?,(1,4)):(4,(2,1))">) -> !cute.layout<"(?,4):(4,1)">
  %b = cute.coalesce(%a) : (!cute.layout<"(?,4):(4,1)">) -> !cute.layout<"(?,4):(4,1)">
  func.return %b : !cute.layout<"(?,4):(4,1)">
}
// becomes
func.func @f(%l: !cute.layout<"(?,(1,4)):(4,(2,1))">) -> !cute.layout<"(?,4):(4,1)"> {
  %a = cute.coalesce(%l) : (!cute.layout<"(?,(1,4)):(4,(2,1))">) -> !cute.layout<"(?,4):(4,1)">
  func.return %a : !cute.layout<"(?,4):(4,1)">
}
