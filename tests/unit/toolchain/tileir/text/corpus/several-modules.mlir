// form: MLIR's `module` around several modules
// CHECK: module {
// CHECK-NEXT: cuda_tile.module @first {
// CHECK: cuda_tile.module @second {
// CHECK: entry @k() {
module @outer attributes {some.name = "x"} {
  cuda_tile.module @first {
    entry @k() {
      return
    }
  }
  cuda_tile.module @second {
    entry @k() {
      return
    }
  }
}
