// form: `attributes` of a module, `producer`
// CHECK: cuda_tile.module @m attributes {producer = "a tool 1.0 -O2", my.numbers = [1 : i32, 2 : i32], my.flag} {
cuda_tile.module @m attributes {my.numbers = [1 : i32, 2 : i32], producer = "a tool 1.0 -O2", my.flag} {
  entry @k() {
    return
  }
}
