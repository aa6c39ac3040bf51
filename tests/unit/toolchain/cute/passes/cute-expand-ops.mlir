func.func @f(%a: !cute.shape<"(?,4)">, %b: !cute.shape<"(3,4)">) -> (!cute.int_tuple<"?">, !cute.int_tuple<"12">, i1) {
  %r = cute.size(%a) : (!cute.shape<"(?,4)">) -> !cute.int_tuple<"?">
  %s = cute.size(%b) : (!cute.shape<"(3,4)">) -> !cute.int_tuple<"12">
  %e = cute.equal(%r, %s) : (!cute.int_tuple<"?">, !cute.int_tuple<"12">) -> i1
  return %r, %s, %e : !cute.int_tuple<"?">, !cute.int_tuple<"12">, i1
}
// becomes
func.func @f(%a: !cute.shape<"(?,4)">, %b: !cute.shape<"(3,4)">) -> (!cute.int_tuple<"?">, !cute.int_tuple<"12">, i1) {
  %0 = cute.get_scalars<{only_dynamic}> (%a) : !cute.shape<"(?,4)">
  %1 = arith.constant 4 : i32
  %2 = arith.muli %0, %1 overflow<nsw> : i32
  %r = cute.make_int_tuple(%2) : (i32) -> !cute.int_tuple<"?">
  %s = cute.static : !cute.int_tuple<"12">
  %3 = cute.get_scalars (%r) : !cute.int_tuple<"?">
  %4 = cute.get_scalars (%s) : !cute.int_tuple<"12">
  %e = arith.cmpi eq, %3, %4 : i32
  return %r, %s, %e : !cute.int_tuple<"?">, !cute.int_tuple<"12">, i1
}
// -----
func.func @f(%a: !cute.tile<"[(?,2):(1,?);_]">) -> (!cute.layout<"(?,2):(1,?)">, !cute.tile<"_">) {
  %l, %o = cute.get_leaves(%a) : !cute.tile<"[(?,2):(1,?);_]">
  return %l, %o : !cute.layout<"(?,2):(1,?)">, !cute.tile<"_">
}
// becomes
func.func @f(%a: !cute.tile<"[(?,2):(1,?);_]">) -> (!cute.layout<"(?,2):(1,?)">, !cute.tile<"_">) {
  %0, %1 = cute.get_scalars<{only_dynamic}> (%a) : !cute.tile<"[(?,2):(1,?);_]">
  %2 = cute.make_shape(%0) : (i32) -> !cute.shape<"(?,2)">
  %3 = cute.make_stride(%1) : (i32) -> !cute.stride<"(1,?)">
  %l = cute.make_layout(%2, %3) : (!cute.shape<"(?,2)">, !cute.stride<"(1,?)">) -> !cute.layout<"(?,2):(1,?)">
  %o = cute.static : !cute.tile<"_">
  return %l, %o : !cute.layout<"(?,2):(1,?)">, !cute.tile<"_">
}
