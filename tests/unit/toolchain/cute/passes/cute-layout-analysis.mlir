func.func @f() {
  %l = cute.static : !cute.layout<"((2,4),8):((1,2),16)">
  func.return
}
// becomes
func.func @f() {
  %l = cute.static {cute.size = 64 : i64, cute.cosize = 120 : i64, cute.contiguous = 8 : i64} : !cute.layout<"((2,4),8):((1,2),16)">
  func.return
}
// -----
func.func @f(%g: !cute.memref<bf16, gmem, align<8>, "(4,2):(1,64)">, %r: !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">) {
  %c = cute.static : !cute.tiled_copy<"universal.b64", bits<16>, layout_copy_tv = "(1,4):(0,1)", tiler_mn = "[4:1]">
  cute.copy(%c, %g, %r) : (!cute.tiled_copy<"universal.b64", bits<16>, layout_copy_tv = "(1,4):(0,1)", tiler_mn = "[4:1]">, !cute.memref<bf16, gmem, align<8>, "(4,2):(1,64)">, !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">) -> ()
  func.return
}
// becomes
func.func @f(%g: !cute.memref<bf16, gmem, align<8>, "(4,2):(1,64)">, %r: !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">) {
  %c = cute.static : !cute.tiled_copy<"universal.b64", bits<16>, layout_copy_tv = "(1,4):(0,1)", tiler_mn = "[4:1]">
  cute.copy(%c, %g, %r) {cute.vector_bits = 64 : i64} : (!cute.tiled_copy<"universal.b64", bits<16>, layout_copy_tv = "(1,4):(0,1)", tiler_mn = "[4:1]">, !cute.memref<bf16, gmem, align<8>, "(4,2):(1,64)">, !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">) -> ()
  func.return
}
