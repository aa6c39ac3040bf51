// form: a module without entries
// CHECK: cuda_tile.module @nothing {
// CHECK-NEXT: }
cuda_tile.module @nothing {
}
