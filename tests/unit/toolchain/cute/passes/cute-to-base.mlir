func.func private @g(!cute.shape<"?">) -> !cute.stride<"(?,?{i64})">
func.func @f(%a: !cute.layout<"(?,2):(1,?)">, %t: !cute.tile<"[4:1;(?,?):(1,2);_]">) -> !cute.stride<"(?,?{i64})"> {
  %x, %y = cute.get_scalars<{only_dynamic}> (%a) : !cute.layout<"(?,2):(1,?)">
  %s = cute.make_shape(%x) : (i32) -> !cute.shape<"?">
  %r = func.call @g(%s) : (!cute.shape<"?">) -> !cute.stride<"(?,?{i64})">
  return %r : !cute.stride<"(?,?{i64})">
}
// becomes
func.func private @g(i32) -> !llvm.struct<(i32, i64)>
func.func @f(%a: !llvm.struct<(i32, i32)>, %t: !llvm.struct<(struct<(struct<()>, struct<()>)>, struct<(struct<(i32, i32)>, struct<()>)>)>) -> !llvm.struct<(i32, i64)> {
  %x = llvm.extractvalue %a[0] : !llvm.struct<(i32, i32)>
  %y = llvm.extractvalue %a[1] : !llvm.struct<(i32, i32)>
  %r = func.call @g(%x) : (i32) -> !llvm.struct<(i32, i64)>
  return %r : !llvm.struct<(i32, i64)>
}
// -----
func.func @f(%n: i32) -> !cute.composed_layout<"S<2,4,3> o ? o (?,2):(1,4)"> {
  %w = cute.static : !cute.swizzle<"S<2,4,3>">
  %o = cute.make_int_tuple(%n) : (i32) -> !cute.int_tuple<"?">
  %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,2)">
  %d = cute.static : !cute.stride<"(1,4)">
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,2)">, !cute.stride<"(1,4)">) -> !cute.layout<"(?,2):(1,4)">
  %c = cute.make_composed_layout(%w, %o, %l) : (!cute.swizzle<"S<2,4,3>">, !cute.int_tuple<"?">, !cute.layout<"(?,2):(1,4)">) -> !cute.composed_layout<"S<2,4,3> o ? o (?,2):(1,4)">
  return %c : !cute.composed_layout<"S<2,4,3> o ? o (?,2):(1,4)">
}
// becomes
func.func @f(%n: i32) -> !llvm.struct<(struct<(i32, struct<()>)>, i32, struct<()>)> {
  %w = ub.poison : !llvm.struct<()>
  %d = ub.poison : !llvm.struct<()>
  %0 = ub.poison : !llvm.struct<(i32, struct<()>)>
  %1 = llvm.insertvalue %n, %0[0] : !llvm.struct<(i32, struct<()>)>
  %l = llvm.insertvalue %d, %1[1] : !llvm.struct<(i32, struct<()>)>
  %2 = ub.poison : !llvm.struct<(struct<(i32, struct<()>)>, i32, struct<()>)>
  %3 = llvm.insertvalue %l, %2[0] : !llvm.struct<(struct<(i32, struct<()>)>, i32, struct<()>)>
  %4 = llvm.insertvalue %n, %3[1] : !llvm.struct<(struct<(i32, struct<()>)>, i32, struct<()>)>
  %c = llvm.insertvalue %w, %4[2] : !llvm.struct<(struct<(i32, struct<()>)>, i32, struct<()>)>
  return %c : !llvm.struct<(struct<(i32, struct<()>)>, i32, struct<()>)>
}
// -----
gpu.module @m {
  gpu.func @k(%t: !cute.int_tuple<"(?,4)">) kernel {
    cute.print(%t) : !cute.int_tuple<"(?,4)">
    gpu.return
  }
}
// becomes
gpu.module @m {
  gpu.func @k(%t: i32) kernel {
    gpu.printf "(%d,4)\0A", %t : i32
    gpu.return
  }
}
// -----
func.func @f(%a: !cute.shape<"(?,4)">) -> !cute.int_tuple<"?"> {
  %r = cute.size(%a) : (!cute.shape<"(?,4)">) -> !cute.int_tuple<"?">
  return %r : !cute.int_tuple<"?">
}
// error: k.mlir:2:3: cute-to-base: cute.size is left
