// form: a body without `return`
// CHECK: entry @empty() {
// CHECK-NEXT: return
entry @empty() {}
// CHECK: entry @one(
// CHECK-NEXT: %a = addf %x, %x : tile<f32>
// CHECK-NEXT: return
entry @one(%x: tile<f32>) {
  %a = addf %x, %x : tile<f32>
}
