func.func @f(%m: i32) -> (i32, i32) {
  %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,64)">
  %t = cute.static : !cute.shape<"(128,16)">
  %n = cute.ceil_div(%s, %t) : (!cute.shape<"(?,64)">, !cute.shape<"(128,16)">) -> !cute.shape<"(?,4)">
  %a, %b = cute.get_scalars (%n) : !cute.shape<"(?,4)">
  func.return %a, %b : i32, i32
}
// becomes
func.func @f(%m: i32) -> (i32, i32) {
  %0 = arith.constant 127 : i32
  %1 = arith.addi %m, %0 : i32
  %2 = arith.constant 128 : i32
  %a = arith.divui %1, %2 : i32
  %b = arith.constant 4 : i32
  func.return %a, %b : i32, i32
}
// -----
func.func @f(%i: i32) -> (i32, i32) {
  %c = cute.make_coord(%i) : (i32) -> !cute.coord<"(?,2)">
  %s = cute.static : !cute.shape<"(4,8)">
  %n = cute.increment_coord(%c, %s) : (!cute.coord<"(?,2)">, !cute.shape<"(4,8)">) -> !cute.coord<"(?,?)">
  %a, %b = cute.get_scalars (%n) : !cute.coord<"(?,?)">
  func.return %a, %b : i32, i32
}
// becomes
func.func @f(%i: i32) -> (i32, i32) {
  %0 = arith.constant 1 : i32
  %1 = arith.addi %i, %0 : i32
  %2 = arith.constant 4 : i32
  %3 = arith.divui %1, %2 : i32
  %a = arith.remui %1, %2 : i32
  %4 = arith.constant 2 : i32
  %b = arith.addi %3, %4 : i32
  func.return %a, %b : i32, i32
}
// -----
func.func @f(%t: !cute.memref<f32, rmem, align<16>, "1:0">, %v: f32) {
  cute.fill(%t, %v) : (!cute.memref<f32, rmem, align<16>, "1:0">, f32) -> ()
  func.return
}
// error: k.mlir:2:3: cute-lower: cute.fill: it is left
